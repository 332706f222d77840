"""Several people at once, and several servers: every answer is its asker's, whichever server gives it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import numpy as np
import pytest
from playwright.sync_api import Browser

from explorer import Edit, RunSpec, run
from explorer.link import View, encode
from tests.api.conftest import Running
from tests.api.two_servers import Proxy
from tests.bench import load
from tests.browser.explorer_page import ExplorerPage

LINKED = RunSpec(B=2, T=3, d_model=8, h=2, weights="random", seed=5, edits=(Edit("probs", (0, 1, 2, 0), 0.75),))


def test_people_who_edit_at_once_and_hang_up_get_their_own(
    running: Running, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load, "HANG_UP", 0.2)
    tally = asyncio.run(load.visit(running.url, clients=10, seconds=4, pace=0.1))
    assert tally.wrong == []
    assert len(tally.seconds) > 20
    assert tally.left > 0
    assert http.get("healthz").json()["waiting"] == 0
    assert not [entry for entry in running.entries() if entry["outcome"] == "failed"]


def test_the_check_would_notice_somebody_else_s_answer() -> None:
    values = {"resid_pre": [1, 3, 1, -1], "attn_norm": [0.4472135, 1.3416405, 1, -1]}
    answer = {"ok": True, "seq": 4, "panels": [{"q": q, "slices": [{"values": v}]} for q, v in values.items()]}
    assert load.misfit(answer, 4, 3.0) == ""
    assert "expected (1.0, 2.0)" in load.misfit(answer, 4, 2.0)
    assert "question 5" in load.misfit(answer, 5, 3.0)


def update(http: httpx.Client, component: int, request: dict[str, Any]) -> dict[str, Any]:
    body = {"session_hash": "anyone", "component_id": component, "fn_name": "update", "data": json.dumps(request)}
    answer: dict[str, Any] = json.loads(http.post("gradio_api/component_server", json=body).json())
    return answer


def test_either_server_answers_api_calls(proxy: Proxy) -> None:
    with httpx.Client(base_url=proxy.url, trust_env=False, timeout=60) as http:
        for x in range(6):
            asked = {"data": [encode(LINKED), {"edits": [f"resid_pre[0,0,1]={x}"]}, ["resid_post"]]}
            answer = http.post("gradio_api/run/trace", json=asked).json()["data"][0]
            expected = run(RunSpec(**{**LINKED.given(), "edits": (*LINKED.edits, Edit("resid_pre", (0, 0, 1), x))}))
            found = np.array(answer["quantities"]["resid_post"]["values"], dtype=np.float32)
            np.testing.assert_array_equal(found, expected["resid_post"])
        texts = {http.post("gradio_api/run/generate", json={"data": ["the cat", "tiny", 8]}).text for _ in range(4)}
        answers = {json.dumps(json.loads(text)["data"]) for text in texts}
        assert len(answers) == 1, "the same seed writes the same text on both"
    assert min(proxy.counts()) >= 4


def test_either_server_opens_a_link_alike(proxy: Proxy) -> None:
    component = asyncio.run(load.component_of(proxy.url))
    request = {"seq": 1, "query": encode(LINKED, View(stage=5, cell=("probs", (0, 1, 2, 0)), head=1))}
    with httpx.Client(base_url=proxy.url, trust_env=False, timeout=60) as http:
        answers = [update(http, component, request) for _ in range(4)]
    assert answers[0]["ok"]
    assert answers[0]["stage"] == 5
    assert all(answer == answers[0] for answer in answers)


def test_people_edit_through_both_servers(proxy: Proxy) -> None:
    before = proxy.counts()
    tally = asyncio.run(load.visit(proxy.url, clients=4, seconds=3, pace=0.1))
    assert tally.wrong == []
    assert all(now - then >= 5 for now, then in zip(proxy.counts(), before, strict=True))


@pytest.mark.browser
def test_a_browser_works_through_both_servers(proxy: Proxy, chromium: Browser) -> None:
    troubles: list[str] = []
    page = chromium.new_page()
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("console", lambda message: troubles.append(message.text) if message.type == "error" else None)
    explorer = ExplorerPage(page)
    explorer.open(f"{proxy.url}?{encode(LINKED, View(stage=5))}")
    assert explorer.cells()["probs"][0, 1, 2, 0] == 0.75
    for digit in "234":
        with explorer.repaint():
            explorer.type_cell("probs", (0, 0, 1, 0), digit)
    expected = run(RunSpec(**{**LINKED.given(), "edits": (*LINKED.edits, Edit("probs", (0, 0, 1, 0), 4.0))}))
    for index, shown in explorer.cells()["heads"].items():
        assert shown == pytest.approx(expected.value("heads", index), rel=1e-3, abs=1e-6)
    page.close()
    assert not troubles, troubles
