"""The real app in a real browser: one server a session, one watched page a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect

from tests.browser.explorer_page import ExplorerPage
from tests.browser.server import Server

DESKTOP = (1280, 720)
LOCAL_SCHEMES = ("data", "blob", "about")
expect.set_options(timeout=20_000)  # machines that run tests are busy


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder carries the `browser` marker."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """`python app.py` on a free port; the run fails if it wrote a traceback."""
    with Server(tmp_path_factory.mktemp("server") / "app.log") as running:
        yield running
    assert "Traceback" not in running.output(), running.output()


class Watch:
    """Collects what must not happen on a page: console errors, script errors, requests that leave the server."""

    def __init__(self, origin: str):
        self.host = urlsplit(origin).netloc
        self.troubles: list[str] = []

    def attach(self, context: BrowserContext) -> None:
        context.on("console", self.console)
        context.on("weberror", lambda error: self.troubles.append(f"script error: {error.error}"))
        context.on("request", lambda request: self.outside(request.url))
        context.on("page", lambda page: page.on("websocket", lambda socket: self.outside(socket.url)))

    def console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.troubles.append(f"console error: {message.text} ({message.location.get('url', '')})")

    def outside(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in LOCAL_SCHEMES and parts.netloc != self.host:
            self.troubles.append(f"request left the server: {url}")


@pytest.fixture
def new_page(chromium: Browser, server: Server) -> Iterator[Callable[..., Page]]:
    """new_page(width, height, **context options) -> a watched blank page; any trouble fails the test at its end."""
    watch, contexts = Watch(server.url), []

    def make(width: int = DESKTOP[0], height: int = DESKTOP[1], **options: object) -> Page:
        context = chromium.new_context(viewport={"width": width, "height": height}, **options)  # type: ignore[arg-type]
        context.set_default_timeout(20_000)
        contexts.append(context)
        watch.attach(context)
        return context.new_page()

    yield make
    for context in contexts:
        context.close()
    assert not watch.troubles, "\n".join(watch.troubles)


@pytest.fixture
def open_explorer(new_page: Callable[..., Page], server: Server) -> Callable[..., ExplorerPage]:
    """open_explorer(query, width=, height=) -> the explorer, first answer painted."""

    def go(query: str = "", **size: int) -> ExplorerPage:
        explorer = ExplorerPage(new_page(**size))
        explorer.open(server.url + query)
        return explorer

    return go


@pytest.fixture
def explorer(open_explorer: Callable[..., ExplorerPage]) -> ExplorerPage:
    """The default view, first answer painted."""
    return open_explorer()
