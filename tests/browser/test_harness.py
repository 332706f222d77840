"""The harness itself: it must see the troubles that it promises to see."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.conftest import Watch
from tests.browser.explorer_page import ExplorerPage, number
from tests.browser.server import Server

PAGE = """<!doctype html><link rel="icon" href="data:,"><main data-ready="true" data-seq="1">
<input data-q="q" data-i="0,0" value="1.5"><span data-q="q" data-i="0,1">\u2212\u221e</span></main>"""
SCRIPT = """
import argparse, http.server
flags = argparse.ArgumentParser(); flags.add_argument("--host"); flags.add_argument("--port", type=int)
at = flags.parse_args()
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header("Content-Type", "text/html; charset=utf-8"); self.end_headers()
        self.wfile.write(PAGE.encode())
http.server.ThreadingHTTPServer((at.host, at.port), Page).serve_forever()
"""


@pytest.fixture(scope="module")
def small_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("small")
    script = folder / "page.py"
    script.write_text(f"PAGE = {PAGE!r}\n{SCRIPT}", encoding="utf-8")
    with Server(folder / "log", script=script) as running:
        yield running


@pytest.fixture
def watched(chromium: Browser, small_server: Server) -> Iterator[tuple[Watch, ExplorerPage]]:
    watch, context = Watch(small_server.url), chromium.new_context()
    watch.attach(context)
    page = ExplorerPage(context.new_page())
    page.open(small_server.url)
    yield watch, page
    context.close()


def test_a_quiet_page_has_no_troubles(watched: tuple[Watch, ExplorerPage]) -> None:
    assert watched[0].troubles == []


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("console.error('boom')", "console error: boom"),
        ("setTimeout(() => { throw new Error('bang') })", "bang"),
        ("fetch('http://127.0.0.2:9/x').catch(() => 0)", "request left the server: http://127.0.0.2:9/x"),
        ("new WebSocket('ws://127.0.0.2:9/s').onerror = () => 0", "request left the server: ws://127.0.0.2:9/s"),
    ],
)
def test_each_trouble_is_seen(watched: tuple[Watch, ExplorerPage], script: str, said: str) -> None:
    watch, explorer = watched
    explorer.page.evaluate(f"() => {{ {script} }}")
    explorer.page.wait_for_timeout(300)
    assert any(said in trouble for trouble in watch.troubles), watch.troubles


def test_cells_are_read_by_name_and_index(watched: tuple[Watch, ExplorerPage]) -> None:
    assert watched[1].cells() == {"q": {(0, 0): 1.5, (0, 1): -float("inf")}}


@pytest.mark.parametrize(
    ("text", "value"), [("1.414", 1.414), ("\u22120.9", -0.9), ("1e-5", 1e-5), ("∞", float("inf"))]
)
def test_number(text: str, value: float) -> None:
    assert number(text) == value


def test_a_server_that_dies_says_why(tmp_path: Path) -> None:
    script = tmp_path / "dead.py"
    script.write_text("raise SystemExit('no port for you')")
    with pytest.raises(RuntimeError, match="no port for you"), Server(tmp_path / "log", script=script):
        pass
