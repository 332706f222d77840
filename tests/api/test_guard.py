"""The layer before Gradio: bounds, headers, health, the log without content, and refusals instead of server errors."""

from __future__ import annotations

import re
import time
from typing import Any

import httpx
import pytest

from explorer.ui.api import endpoints
from explorer.ui.exchange import BODY
from explorer.ui.places import place_of
from tests.api.conftest import Running


def test_health(http: httpx.Client) -> None:
    reply = http.get("healthz")
    assert (reply.status_code, reply.json()["status"]) == (200, "ok")


def test_the_page_has_a_policy_that_its_own_scripts_satisfy(http: httpx.Client) -> None:
    first, second = http.get(""), http.get("")
    policies = [reply.headers["content-security-policy"] for reply in (first, second)]
    nonces = [re.search(r"script-src 'self' 'nonce-([\w-]{20,})' 'unsafe-eval';", policy)[1] for policy in policies]  # type: ignore[index]
    assert nonces[0] != nonces[1]
    assert policies[0].startswith("default-src 'none';")
    tags = re.findall(r"<script[^>]*>", first.text)
    assert len(tags) >= 3
    assert all(f'nonce="{nonces[0]}"' in tag for tag in tags)
    assert int(first.headers["content-length"]) == len(first.content)
    assert first.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path", ["upload", "deep_link", "proxy=https://example.org/x", "vibe-code", "stream/a/b/c/playlist.m3u8", "runs"]
)
def test_what_is_of_no_use_here_is_closed(http: httpx.Client, path: str) -> None:
    for method in ("GET", "POST"):
        reply = http.request(method, f"gradio_api/{path}", files={"files": b"x"} if method == "POST" else None)
        assert (reply.status_code, reply.json()) == (404, {"detail": "There is nothing here."})


def test_files_outside_of_the_assets_are_not_served(http: httpx.Client) -> None:
    for path in ("/etc/passwd", "app.py", "../app.py", "explorer/spec.py", "requirements.txt"):
        assert http.get(f"gradio_api/file={path}").status_code in (403, 404)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("call/v2/nothing", {}),
        ("call/v2/trace", {"setings": {}}),
        ("call/v2/generate", {}),
        ("call/nothing", {"data": []}),
        ("component_server", {}),
        ("component_server", []),
        ("component_server", {"session_hash": "a", "component_id": 999, "fn_name": "update", "data": ""}),
        ("component_server", {"session_hash": [], "component_id": "x", "fn_name": "__class__", "data": ""}),
        ("queue/join", {"data": [], "session_hash": "a", "fn_index": 999}),
        ("queue/join", {"data": "x"}),
        ("queue/join", {"data": [None] * 9, "session_hash": "a", "fn_index": 1}),
        ("queue/join", {"data": [], "session_hash": "a" * 101, "fn_index": 1}),
        ("queue/join", {"data": [], "fn_index": 1}),
        ("queue/join", []),
        ("reset", {}),
        ("cancel", {}),
        ("run/nothing", {"data": [1]}),
    ],
)
def test_malformed_requests_are_the_askers_fault(http: httpx.Client, path: str, body: object) -> None:
    reply = http.post(f"gradio_api/{path}", json=body)
    assert 400 <= reply.status_code < 500, (reply.status_code, reply.text)
    assert "Traceback" not in reply.text
    assert "site-packages" not in reply.text


def test_an_event_that_never_was(http: httpx.Client) -> None:
    for path in ("call/trace/0123abc", "call/v2/trace", "queue/data?session_hash=nobody"):
        reply = http.get(f"gradio_api/{path}")
        assert reply.status_code in (200, 404)
        assert "error" in reply.text or "no such" in reply.text


def test_bodies_that_are_no_json(http: httpx.Client) -> None:
    for path in ("component_server", "call/trace", "call/v2/trace", "queue/join"):
        for content in (b"", b"{", b"\xff\xfe", b"[" * 5000):
            reply = http.post(f"gradio_api/{path}", content=content, headers={"content-type": "application/json"})
            assert 400 <= reply.status_code < 500, (path, content[:5], reply.status_code)


def test_large_bodies_are_refused_announced_or_not(http: httpx.Client) -> None:
    large = b'{"data": ["' + b"x" * BODY + b'"]}'
    assert http.post("gradio_api/call/trace", content=large).status_code == 413

    def in_pieces() -> Any:
        for at in range(0, len(large), 65536):
            yield large[at : at + 65536]

    reply = http.post("gradio_api/call/trace", content=in_pieces(), headers={"content-type": "application/json"})
    assert reply.status_code == 413
    assert http.post("gradio_api/call/trace", json={"data": ["x" * (BODY // 2), None, None]}).status_code == 200


def test_the_log_says_what_happened_and_nothing_of_what_was_written(running: Running, http: httpx.Client) -> None:
    def settled() -> int:
        """How many lines there are once everything so far is in: a line follows its answer."""
        seen = [e["endpoint"] for e in running.entries()].count("health")
        http.get("healthz")
        while [e["endpoint"] for e in running.entries()].count("health") == seen:
            time.sleep(0.02)
        return len(running.entries())

    secret = "privatewords"
    before = settled()
    http.get(f"?v=1&text={secret}")
    http.get(f"gradio_api/{secret}")
    http.post(f"gradio_api/call/{secret}", json={"data": [secret]})
    http.post("gradio_api/call/trace", json={"data": [f"text={secret}&T={secret}", {secret: secret}, [secret]]})
    settled()
    entries = running.entries()[before:]
    assert [e["endpoint"] for e in entries if e["endpoint"] != "trace"] == [
        "page",
        "other",
        "other",
        "call trace",
        "health",
    ]
    assert all(set(e) <= {"time", "endpoint", "ms", "outcome", "status", "in", "out"} for e in entries)
    assert entries[2]["outcome"] == "refused"
    assert secret not in running.log.read_text(encoding="utf-8")
    assert secret not in running.server.output()


def test_names_in_the_log_come_from_a_list() -> None:
    def name(path: str) -> str:
        return place_of(path, endpoints()).name

    assert name("/gradio_api/call/trace/0123abc") == "result trace"
    assert name("/gradio_api/call/v2/figure") == "call figure"
    assert name("/gradio_api/run/ledger") == "run ledger"
    assert name("/gradio_api/component_server") == "update"
    assert name("/gradio_api/heartbeat/0123abc") == "heartbeat"
    assert name("/gradio_api/callous") == name("/gradio_api/call/other") == "other"
    assert name("/assets/index.js") == name("/gradio_api/file=assets/js/main.js") == ""
    assert [name("/"), name("/healthz"), name("/healthz/")] == ["page", "health", "health"]
    assert [name("/api"), name("/api/"), name("/apis")] == ["manual", "manual", ""]


FETCHED = {"path": "http://nosuchhost.invalid/x", "meta": {"_type": "gradio.FileData"}}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        *((f"{verb}/{name}", {"data": [FETCHED]}) for verb in ("run", "api", "call") for name in ("trace", "figure")),
        ("run/trace", {"data": [{"deep": [[{"er": FETCHED}]]}]}),
        ("call/v2/trace", {"settings": FETCHED}),
        ("queue/join", {"data": [FETCHED], "fn_index": 0, "session_hash": "q"}),
    ],
)
def test_no_address_that_a_visitor_names_is_fetched(http: httpx.Client, path: str, body: object) -> None:
    reply = http.post(f"gradio_api/{path}", json=body)
    assert (reply.status_code, reply.json()) == (
        400,
        {"detail": "Files cannot be sent here. Send text, numbers and lists."},
    )


@pytest.mark.parametrize("path", ["run/predict", "api/predict"])
def test_a_name_that_no_endpoint_has_is_not_passed_on(http: httpx.Client, path: str) -> None:
    assert http.post(f"gradio_api/{path}", json={"data": [], "fn_index": 0}).status_code == 404
