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


def test_a_focused_cell_fits_all_its_digits(explorer: ExplorerPage) -> None:
    cell = explorer.cell("resid_pre", 0, 0, 0)
    for text in ("1.2649108", "0.99999994", "-0.123456789"):
        with explorer.repaint():
            explorer.type_cell("resid_pre", (0, 0, 0), text)
        assert cell.evaluate("c => c.scrollWidth <= c.clientWidth"), text


def test_on_a_phone_a_typed_cell_is_not_covered(open_explorer: Callable[..., ExplorerPage]) -> None:
    explorer = open_explorer("?stage=5", width=390, height=844)
    for index in ((0, 0, 0, 0), (0, 0, 1, 0), (0, 0, 1, 1)):
        with explorer.repaint():
            explorer.type_cell("probs", index, "0.7")
        explorer.page.wait_for_timeout(300)
        seen = "c => { const r = c.getBoundingClientRect(), at = [r.x + 8, r.y + 3, r.x + 8, r.bottom - 3];"
        seen += " return [0, 2].every(n => document.elementFromPoint(at[n], at[n + 1]) === c); }"
        assert explorer.cell("probs", *index).evaluate(seen), index


def test_on_a_phone_a_wide_figure_shows_that_it_goes_on(open_explorer: Callable[..., ExplorerPage]) -> None:
    box = open_explorer("?T=16", width=390, height=844).page.locator(".figures .figure-box").first
    box.scroll_into_view_if_needed()
    expect(box.locator("svg").first).to_be_visible()
    expect(box).to_have_attribute("data-more", "right")
    box.evaluate("box => { box.scrollLeft = 1000; }")
    expect(box).to_have_attribute("data-more", "left")


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (390, 844)])
def test_a_refused_size_is_named_above_the_stage(
    open_explorer: Callable[..., ExplorerPage], width: int, height: int
) -> None:
    explorer = open_explorer(width=width, height=height)
    lead = explorer.page.locator("[data-not-run] button")
    explorer.set_field("h", "3")
    expect(lead).to_have_text("Not run: see the message beside h")
    explorer.page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    lead.click()
    expect(explorer.field("h")).to_be_focused()
    expect(explorer.field("h")).to_be_in_viewport()
    with explorer.repaint():
        explorer.set_field("h", "1")
    expect(lead).to_have_count(0)


@pytest.mark.parametrize("stage", [1, 5])
def test_the_ledger_is_reached_whatever_is_drawn_on_the_way(
    open_explorer: Callable[..., ExplorerPage], stage: int
) -> None:
    page = open_explorer(f"?stage={stage}").page
    page.locator("[data-act=table]").click()
    page.wait_for_timeout(1800)
    assert page.locator(".ledger h2").evaluate("h => h.getBoundingClientRect().top") == pytest.approx(72, abs=4)
