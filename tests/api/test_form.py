"""Streams of events have Gradio's own form, byte for byte: the same app without the layer before it says the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.conftest import Running
from tests.browser.server import Server

HEARTBEAT = b"event: heartbeat\ndata: null\n\n"
ASKED: list[tuple[str, list[Any]]] = [
    ("trace", ["v=1&T=3", {"edits": ["probs[0,0,2,0]=0.5"]}, ["resid_post", "masked_scores"]]),
    ("trace", ["", {"weights": "checkpoint:tiny", "text": "\u732b and \xfc"}, ["probs"]]),
    ("ledger", ["", {"T": 10**6}]),
    ("figure", ["attention", "", None, 0, 0]),
    ("generate", ["the cat", "tiny", 6, 0.85, 50, 0.85, 1.0, 0]),
]


@pytest.fixture(scope="module")
def own(running: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """The same app as Gradio alone serves it."""
    script = Path(__file__).with_name("own_stream_app.py")
    log = tmp_path_factory.mktemp("own") / "app.log"
    extra = running.server.extra[:-2]  # the same limits and checkpoint, no log
    with Server(log, script, extra) as server, httpx.Client(base_url=server.url, trust_env=False, timeout=60) as http:
        assert http.get("healthz").status_code == 404
        yield http


def said(http: httpx.Client, name: str, data: list[Any]) -> httpx.Response:
    event = http.post(f"gradio_api/call/{name}", json={"data": data}).json()["event_id"]
    return http.get(f"gradio_api/call/{name}/{event}")


@pytest.mark.parametrize(("name", "data"), ASKED)
def test_a_call_in_two_steps(http: httpx.Client, own: httpx.Client, name: str, data: list[Any]) -> None:
    ours, theirs = said(http, name, data), said(own, name, data)
    assert ours.content.replace(HEARTBEAT, b"") == theirs.content.replace(HEARTBEAT, b"")
    assert ours.headers["content-type"] == theirs.headers["content-type"]


def test_a_text_as_it_is_written(http: httpx.Client, own: httpx.Client) -> None:
    """How many parts there are is a matter of time; the first and the last are not."""

    def parts(client: httpx.Client) -> list[bytes]:
        content = said(client, "generate_stream", ["the cat", "tiny", 20, 0.85, 50, 0.85, 1.0, 0]).content
        return content.replace(HEARTBEAT, b"").split(b"\n\n")

    ours, theirs = parts(http), parts(own)
    assert ours[-2:] == theirs[-2:]
    assert all(part.startswith(b"event: generating\ndata: [{") for part in (*ours[:-2], *theirs[:-2]))


def queue(http: httpx.Client, name: str, data: list[Any]) -> list[dict[str, Any]]:
    number = next(d["id"] for d in http.get("config").json()["dependencies"] if d["api_name"] == name)
    body = {"data": data, "fn_index": number, "session_hash": f"form-{name}"}
    event = http.post("gradio_api/queue/join", json=body).json()["event_id"]
    text = http.get(f"gradio_api/queue/data?session_hash=form-{name}").text
    messages = [json.loads(line.removeprefix("data: ")) for line in text.strip().split("\n\n")]
    assert all(message["event_id"] == event for message in messages[:-1] if message["msg"] != "heartbeat")
    return messages


def test_the_queue(http: httpx.Client, own: httpx.Client) -> None:
    """The same messages with the same parts, but for times and the name of the event."""
    for name, data in ASKED[:2]:
        ours, theirs = queue(http, name, data), queue(own, name, data)
        assert [list(message) for message in ours] == [list(message) for message in theirs]
        assert [message["msg"] for message in ours][-2:] == ["process_completed", "close_stream"]
        assert ours[-2]["output"]["data"] == theirs[-2]["output"]["data"]
        assert ours[-1] == theirs[-1]


def test_a_heartbeat_while_it_takes_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADIO_HEARTBEAT_INTERVAL", "0.2")
    (tmp_path / "runs").touch()
    extra = ("--count", str(tmp_path / "runs"), "0.7")
    script = Path(__file__).with_name("counted_app.py")
    with (
        Server(tmp_path / "app.log", script, extra) as server,
        httpx.Client(base_url=server.url, trust_env=False, timeout=60) as http,
    ):
        content = said(http, "ledger", ["T=7"]).content
    assert content.startswith(2 * HEARTBEAT)
    assert b'event: complete\ndata: [{"ok": true' in content
