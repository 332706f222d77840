"""The README's commands and requests do what it says."""

from __future__ import annotations

import json
import re
import shlex
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch
from gradio_client import Client

from explorer import Edit
from explorer.__main__ import main
from explorer.capture import record
from explorer.offers import OFFERS
from explorer.ui.exchange import BODY
from tests.api.conftest import Running
from tests.browser.server import ROOT
from tests.small_checkpoint import write_checkpoint

README = (ROOT / "README.md").read_text(encoding="utf-8")
SHELL = re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
LOCAL = "http://127.0.0.1:7860"


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    commands = [line for block in SHELL for line in block.splitlines() if line.startswith("python -m explorer")]
    assert len(commands) == 4
    for command in commands:
        assert main(shlex.split(command)[3:]) == 0, command
    assert {path.name for path in tmp_path.iterdir()} == {"run.json", "attention.html", "walk.html"}
    assert "2×3×5×5" in capsys.readouterr().out


def test_the_request(http: httpx.Client) -> None:
    curl = next(block for block in SHELL if block.startswith("curl"))
    words = shlex.split(curl.replace("\\\n", ""))
    path, header, body = words[1].removeprefix(LOCAL), words[3], words[5]
    name, _, value = header.partition(": ")
    answer = http.post(path.lstrip("/"), content=body, headers={name: value}).json()["data"][0]
    assert answer["ok"]
    assert answer["link"] == "v=1&T=3&e=probs@0.0.2.0~0.5&stage=1"
    assert list(answer["quantities"]) == ["resid_post"]


def test_the_client(running: Running) -> None:
    asked = re.search(r'Client\("[^"]*"\)\.predict\((.*)\)$', README, re.MULTILINE)
    assert asked
    assert asked[1] == 'settings={"T": 3}, only=["probs"], api_name="/trace"'
    client = Client(running.url, verbose=False, analytics_enabled=False, httpx_kwargs={"trust_env": False})
    answer = client.predict(settings={"T": 3}, only=["probs"], api_name="/trace")
    assert json.dumps(answer["quantities"]["probs"]["shape"]) == "[1, 1, 3, 3]"


def test_the_examples_in_python() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    runs, own, _ = blocks
    names: dict[str, Any] = {}
    exec(runs, names)  # noqa: S102
    assert names["trace"]["probs"].shape == (2, 3, 5, 5)
    exec(own, names)  # noqa: S102
    given = torch.randn(1, 3, 8), (names["cos"], names["sin"])
    trace = record(names["Block"](), *given)
    assert trace.names[:1] == ("resid_pre",) and {"q", "k", "resid_post"} <= set(trace.names)
    assert trace["q"].shape == (1, 1, 3, 8)
    edited = record(names["Block"](), *given, edits=[Edit("resid_post", (0, 0, 0), 9.0)])
    assert edited["resid_post"][0, 0, 0] == 9


def test_the_example_with_a_checkpoint(tmp_path: Path) -> None:
    told = re.search(r"^A checkpoint is used under a name: (.*?)\n\n", README, re.MULTILINE | re.DOTALL)
    offered, wanted, asked = re.findall(r"`([^`]*)`", told[1]) if told else ("", "", "")
    names: dict[str, Any] = {}
    exec(f"from explorer import RunSpec, run\n{wanted}", names)  # noqa: S102
    before = dict(OFFERS)
    try:
        exec(offered.replace("path/to/minimind-3", str(write_checkpoint(tmp_path / "small"))), names)  # noqa: S102
        assert eval(asked, names).sizes["T"] == 1  # noqa: S307
    finally:
        OFFERS.clear()
        OFFERS.update(before)


def test_what_is_said_of_refusals_is_so(http: httpx.Client) -> None:
    body, headers = b"{}", {"content-type": "application/json"}
    refusals = {
        400: http.post("gradio_api/run/trace", content=body, headers=headers),
        413: http.post("gradio_api/run/trace", content=b" " * (BODY + 1), headers=headers),
    }
    for status, reply in refusals.items():
        assert reply.status_code == status and list(reply.json()) == ["detail"]
    answer = http.post("gradio_api/run/trace", json={"data": ["T=3&colour=red"]}).json()["data"][0]
    assert answer["ok"] and len(answer["notes"]) == 1
    for text in (README, unescape(http.get("api").text)):
        said = " ".join(text.replace("<code>", "`").replace("</code>", "`").split())
        assert '`"notes"`' in said and 'has the status 400 or 413 and `{"detail": message}`' in said


def test_the_page_about_the_endpoints(http: httpx.Client) -> None:
    assert "`/api`" in README and "view=api" not in README
    reply = http.get("api")
    page = unescape(reply.text)
    assert reply.status_code == 200 and reply.headers["content-type"].startswith("text/html")
    assert reply.headers["content-security-policy"].startswith("default-src 'none';") and "<script" not in page
    assert "T and past up to 128" in page and "2,000 numbers in an answer" in page, "the limits in force"
    for name in ("trace", "ledger", "figure", "generate", "generate_stream"):
        assert f'<section id="{name}">' in page
    assert "<td>at most so many</td>" in page and "repetition_penalty" in page
    requests = re.findall(r"<pre>curl (\S+) .*?-d '(.*?)'</pre>", page, re.DOTALL)
    assert len(requests) == 5
    for address, body in requests:
        assert address.startswith(str(http.base_url).rstrip("/"))
        answer = http.post(address, content=body, headers={"content-type": "application/json"}).json()["data"][0]
        assert answer["ok"], (address, answer)


def test_no_address_gets_into_that_page_unread(http: httpx.Client) -> None:
    page = http.get("api", headers={"host": '"><b>'}).text
    assert "<b>" not in page and "curl http://127.0.0.1:7860/gradio_api/run/trace" in page
