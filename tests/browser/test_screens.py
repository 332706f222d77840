"""Every stage on every screen, light and dark: no trouble, nothing cut off, every figure drawn.

Set EXPLORER_SCREENSHOTS to a folder to keep the pictures and look at them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.explorer_page import ExplorerPage

SCREENS = {"laptop": (1280, 720), "desktop": (1920, 1080), "phone": (390, 844)}
CUT_OFF = """
    () => [...document.querySelectorAll('[data-q][data-i]')]
        .filter(cell => cell.offsetParent && cell.scrollWidth > cell.clientWidth)
        .map(cell => `${cell.dataset.q}[${cell.dataset.i}]: ${cell.value ?? cell.textContent}`)
"""


def keep_picture(explorer: ExplorerPage, name: str, *, whole: bool = False) -> None:
    if folder := os.environ.get("EXPLORER_SCREENSHOTS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        explorer.page.screenshot(path=Path(folder) / f"{name}.png", full_page=whole)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("screen", SCREENS)
def test_stages_fit_the_screen(open_explorer: Callable[..., ExplorerPage], screen: str, theme: str) -> None:
    width, height = SCREENS[screen]
    explorer = open_explorer(f"?__theme={theme}", width=width, height=height)
    for stage in range(1, 9):
        explorer.stage(stage)
        explorer.page.evaluate("scrollTo(0, 0)")
        keep_picture(explorer, f"stage{stage}-{screen}-{theme}")
        wide = explorer.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"stage {stage} is {wide} px wide on a screen of {width}"
        assert explorer.page.evaluate(CUT_OFF) == [], f"stage {stage} cuts numbers off"
        for figure in explorer.page.locator("[data-figure]:visible").all():  # some lie in what is folded
            figure.scroll_into_view_if_needed()  # figures are drawn when they come into sight
            expect(figure.locator("svg, canvas").first).to_be_visible()
        keep_picture(explorer, f"stage{stage}-{screen}-{theme}-whole", whole=True)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_width_between_a_phone_and_a_desktop_holds_the_bar(
    open_explorer: Callable[..., ExplorerPage], lang: str
) -> None:
    explorer = open_explorer(f"?lang={lang}")
    for width in (320, 390, 600, 760, 761, 800, 900, 980, 981, 1001, 1080, 1081, 1240, 1241, 1500):
        explorer.page.set_viewport_size({"width": width, "height": 700})
        assert explorer.page.evaluate("document.documentElement.scrollWidth") <= width, width
        cut = explorer.page.evaluate(
            "[...document.querySelectorAll('.top button')].filter(b => b.offsetParent)"
            ".some(b => b.getBoundingClientRect().right > innerWidth || b.getBoundingClientRect().left < 0)"
        )
        assert not cut, width
