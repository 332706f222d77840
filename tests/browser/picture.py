"""`python -m tests.browser.picture` takes the README's picture anew from the running app."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

from tests.browser.chromium import launch
from tests.browser.explorer_page import ExplorerPage
from tests.browser.server import ROOT, Server

TARGET = ROOT / "docs" / "screenshot.png"
STAGE = 5


def main() -> None:
    with TemporaryDirectory() as folder, Server(Path(folder) / "log") as server, sync_playwright() as playwright:
        browser = launch(playwright)
        explorer = ExplorerPage(browser.new_page(viewport={"width": 1280, "height": 720}))
        explorer.open(f"{server.url}?__theme=light")
        explorer.stage(STAGE)
        explorer.page.mouse.move(1279, 719)
        explorer.page.evaluate("document.activeElement.blur()")
        TARGET.parent.mkdir(exist_ok=True)
        explorer.page.screenshot(path=TARGET)
        browser.close()


if __name__ == "__main__":
    main()
