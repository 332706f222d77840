"""The button that runs the same block on a GPU: on the page of a ZeroGPU Space, lent one, refused one, or without."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from explorer import RunSpec, run
from explorer.ui.gpu_event import request_of
from explorer.ui.page import answer
from tests.browser.explorer_page import ExplorerPage
from tests.browser.server import Server

ROOT = Path(__file__).resolve().parents[2]
APP = Path(__file__).with_name("lent_gpu_app.py")
QUERY = "?w=random&B=2&T=3&d=8&h=2&dff=8&E=3&k=2"
SPEC = RunSpec(B=2, T=3, d_model=8, h=2, d_ff=8, weights="random", experts=3, experts_per_token=2)


@contextmanager
def page_of(chromium: Browser, log: Path, query: str, *extra: str) -> Iterator[tuple[Page, Server]]:
    with Server(log, script=APP, extra=extra) as server:
        page = chromium.new_page()
        troubles: list[str] = []
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("console", lambda said: troubles.append(said.text) if said.type == "error" else None)
        ExplorerPage(page).open(server.url + query)
        page.locator("[data-group=runtime] > summary").click()
        yield page, server
        page.close()
        assert "Traceback" not in server.output(), server.output()
    assert not troubles, troubles


@pytest.mark.browser
def test_the_button_compares_every_quantity_and_forgets_them_when_something_changes(
    chromium: Browser, tmp_path: Path
) -> None:
    with page_of(chromium, tmp_path / "log", QUERY) as (page, _):
        said, rows = page.locator("[data-gpu=said]"), page.locator("[data-gpu-row]")
        expect(said).to_have_text("")
        asked = []
        page.on("request", lambda request: asked.append(request.url) if "/queue/join" in request.url else None)
        page.locator("[data-gpu=run]").click()
        expect(said).to_contain_text("Every number is the CPU's", timeout=30_000)
        assert len(asked) == 1, "one event of the platform's queue, which knows whose it is"
        names = rows.evaluate_all("rows => rows.map(row => row.dataset.gpuRow)")
        assert names == list(run(SPEC).names)
        page.locator(".gpu summary").click()
        expect(rows.first).to_be_visible()
        with ExplorerPage(page).repaint():
            ExplorerPage(page).type_cell("resid_pre", (0, 0, 1), "2")
        expect(said).to_have_text("")
        expect(rows.first).to_be_hidden()
        page.locator("[data-gpu=run]").click()
        expect(said).to_contain_text("Every number is the CPU's", timeout=30_000)


@pytest.mark.browser
def test_in_chinese_a_refusal_of_the_platform_is_told_without_its_markup(chromium: Browser, tmp_path: Path) -> None:
    with page_of(chromium, tmp_path / "log", "?lang=zh", "--refuse") as (page, _):
        page.locator("[data-gpu=run]").click()
        said = page.locator("[data-gpu=said]")
        expect(said).to_contain_text("You have used it up. Sign in for more.", timeout=30_000)
        expect(said).to_contain_text("GPU：")
        assert said.locator("a").count() == 0
        expect(page.locator("[data-gpu=run]")).to_be_enabled()


def test_without_a_gpu_there_is_no_button() -> None:
    code = """
import json, torch
torch.cuda.is_available = lambda: False
import app
from explorer.ui.page import fixed
scripts = [block.get_config().get("js_on_load") or "" for block in app.demo.blocks.values()]
print(json.dumps([fixed("en")["gpu"], sum("gpu-ask" in script for script in scripts)]))
"""
    environment = {name: value for name, value in os.environ.items() if name != "SPACES_ZERO_GPU"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True, timeout=200
    )
    assert json.loads(done.stdout.splitlines()[-1]) == [False, 0]


@pytest.mark.parametrize("data", [None, 3, {}, {"text": None}, {"text": "["}, {"text": "[" * 99_999}, {"text": "[1]"}])
def test_what_is_no_request_of_the_page_asks_for_the_toy(data: object) -> None:
    assert request_of(data) == {"want": ["gpu"]}


def test_a_wrong_field_is_refused_as_everywhere() -> None:
    text = json.dumps({"seq": 7, "spec": {"h": "3", "d_model": "8", "weights": "random"}})
    reply = answer(request_of({"text": text}))
    assert (reply["ok"], reply["seq"], list(reply["errors"])) == (False, 7, ["h"])
