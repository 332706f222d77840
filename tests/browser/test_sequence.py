"""The walk of a token: by itself, step by step, by keys alone, without motion; and present mode."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.browser.explorer_page import ExplorerPage
from tests.browser.server import Server

CURRENT = 'button[data-stage][aria-current="step"]'
BANDS = """
    () => [...document.querySelectorAll('.walk-band.own')].map(
        band => [band.closest('[data-panel]').dataset.panel, band.dataset.walkRow])
"""
MARKER = "['cx', 'cy'].map(name => Number(document.querySelector('.walker-dot.lane-q').getAttribute(name)))"
READS = "[...document.querySelectorAll('[data-panel=k_rot] .walk-band.read')].map(band => band.style.gridRow)"


def stage_of(page: Page) -> int:
    return int(page.locator(CURRENT).get_attribute("data-stage") or 0)


def address(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def walking(page: Page) -> str:
    return page.locator("[data-walk]").get_attribute("data-walk") or ""


def fast(page: Page) -> None:
    """Walk at double speed."""
    button = page.locator("[data-act=walk-speed]")
    button.click()
    expect(button).to_have_text("2×")


def test_the_whole_walk_with_the_keyboard_alone(explorer: ExplorerPage) -> None:
    page = explorer.page
    page.keyboard.press(" ")
    assert walking(page) == "playing"
    page.keyboard.press(" ")
    assert walking(page) == "paused"
    for n in range(2, 9):
        with explorer.repaint():
            page.keyboard.press("ArrowRight")
        assert stage_of(page) == n
        rows = page.evaluate(BANDS)
        assert rows and {row for _, row in rows} == {"1"}, f"stage {n}: {rows}"
        page.wait_for_function(f"location.search.includes('stage={n}')")
    for key, n in [("Home", 1), ("End", 8), ("ArrowLeft", 7), ("3", 3)]:
        with explorer.repaint():
            page.keyboard.press(key)
        assert stage_of(page) == n
    page.keyboard.press("Escape")
    assert walking(page) == "off"
    assert page.evaluate(BANDS) == []
    page.keyboard.press("?")
    expect(page.locator("dialog[open]")).to_contain_text("play or pause the walk")
    page.keyboard.press("Escape")
    expect(page.locator("dialog[open]")).to_have_count(0)


def test_it_plays_by_itself_to_the_end(explorer: ExplorerPage) -> None:
    page = explorer.page
    explorer.stage(6)
    page.locator("[data-act=walk]").click()
    fast(page)
    seen = {stage_of(page)}
    while walking(page) == "playing":
        page.wait_for_timeout(100)
        seen.add(stage_of(page))
    assert seen == {6, 7, 8}
    page.wait_for_function("document.querySelector('.map-walker').dataset.at === '9'")
    with explorer.repaint():
        page.locator("[data-act=walk]").click()  # once more, from the beginning
    assert stage_of(page) == 1 and walking(page) == "playing"


def test_it_follows_the_token_that_is_chosen(open_explorer: Callable[..., ExplorerPage]) -> None:
    explorer = open_explorer("?T=4&d=4&h=2&w=random&stage=4")
    page = explorer.page
    page.locator("[data-act=walk]").click()
    page.locator("[data-walk-token]").select_option("2")
    assert {row for _, row in page.evaluate(BANDS)} == {"2"}
    reads = page.evaluate(READS)
    assert reads == ["2 / 4"] * 2, "a query reads its own row and those before it, in both heads"


def test_typing_and_spaces_in_fields_leave_the_walk_alone(explorer: ExplorerPage) -> None:
    page = explorer.page
    explorer.field("T").click()
    page.keyboard.press(" ")
    assert walking(page) == "off"
    page.locator("[data-act=walk]").click()
    explorer.cell("resid_pre", 0, 0, 0).click()
    assert walking(page) == "paused"


def test_without_motion_it_steps(new_page: Callable[..., Page], server: Server) -> None:
    explorer = ExplorerPage(new_page(reduced_motion="reduce"))
    explorer.open(server.url)
    page = explorer.page
    page.keyboard.press(" ")
    page.keyboard.press(" ")
    before = page.evaluate(MARKER)
    with explorer.repaint():
        page.keyboard.press("ArrowRight")
    after = page.evaluate(MARKER)
    assert after[1] > before[1]
    page.wait_for_timeout(300)
    assert page.evaluate(MARKER) == after
    assert page.evaluate("document.getAnimations().length") == 0


def test_present_mode(explorer: ExplorerPage) -> None:
    page = explorer.page
    size = page.locator("h1").evaluate("h => parseFloat(getComputedStyle(h).fontSize)")
    with explorer.repaint():
        page.keyboard.press("p")
    for hidden in (".top", ".side", ".steps", ".ledger"):
        expect(page.locator(hidden).first).to_be_hidden()
    for shown in (".map", "h1", ".board", ".facts"):
        expect(page.locator(shown).first).to_be_visible()
    assert page.locator("h1").evaluate("h => parseFloat(getComputedStyle(h).fontSize)") > 1.4 * size
    page.wait_for_function("location.search.includes('present=1')")
    with explorer.repaint():
        page.keyboard.press("ArrowRight")
    assert stage_of(page) == 2
    with explorer.repaint():
        page.keyboard.press("Escape")
    expect(page.locator(".top")).to_be_visible()
    page.wait_for_function("!location.search.includes('present')")


def test_a_link_opens_in_present_mode(open_explorer: Callable[..., ExplorerPage]) -> None:
    explorer = open_explorer("?v=1&stage=3&present=1")
    expect(explorer.page.locator(".top")).to_be_hidden()
    assert stage_of(explorer.page) == 3
    assert address(explorer.page)["present"] == ["1"]


def test_what_stops_the_walk_stays_in_sight(open_explorer: Callable[..., ExplorerPage]) -> None:
    page = open_explorer("?stage=3").page
    page.locator("[data-act=walk]").click()
    page.wait_for_function("scrollY > 0")  # it brings the row that comes out into sight
    expect(page.locator("h1")).to_be_in_viewport(ratio=1)
    page.locator("[data-act=walk]").click(timeout=1500)
    expect(page.locator("[data-walk]")).to_have_attribute("data-walk", "paused")
    page.locator("[data-act=walk-end]").click()


@pytest.mark.parametrize("width", [390, 1280])
def test_starting_the_walk_moves_nothing(open_explorer: Callable[..., ExplorerPage], width: int) -> None:
    page = open_explorer("?stage=2", width=width, height=800).page
    places = "[...document.querySelectorAll('h1, .equation, [data-q]')].map(n => n.getBoundingClientRect().top)"
    before = page.evaluate(places)
    page.locator("[data-act=walk]").click()
    assert page.evaluate(places) == before


def test_the_walk_ends_with_its_last_row_in_sight(explorer: ExplorerPage) -> None:
    page = explorer.page
    explorer.stage(7)
    page.locator("[data-act=walk]").click()
    fast(page)
    expect(page.locator("[data-walk]")).to_have_attribute("data-walk", "paused")
    assert stage_of(page) == 8
    page.wait_for_timeout(500)
    expect(page.locator("[data-panel=resid_post] .walk-band.own")).to_be_in_viewport(ratio=0.9)


def test_on_a_phone_the_tools_of_an_edit_do_not_cover_the_row(open_explorer: Callable[..., ExplorerPage]) -> None:
    page = open_explorer("?v=1&stage=5&e=probs@0.0.1.0~0.9", width=390, height=844).page
    page.locator("[data-act=walk]").click()
    lowest = "at => Math.max(...[...document.querySelectorAll(at)].map(n => n.getBoundingClientRect().bottom))"
    tools = page.locator(".edit-tools").bounding_box()
    assert tools
    page.wait_for_function(f"y => ({lowest})('[data-panel=heads] .walk-band.own') < y", arg=tools["y"], timeout=4500)
    assert stage_of(page) == 5


def test_a_presented_link_says_what_is_in_force(open_explorer: Callable[..., ExplorerPage]) -> None:
    explorer = open_explorer("?v=1&s=no_mask&e=resid_pre@0.0.1~2&present=1")
    line = explorer.page.locator(".present-force")
    expect(line).to_be_visible()
    expect(line).to_contain_text("mask")
    expect(line).to_contain_text("edits: 1")
    with explorer.repaint():
        explorer.page.keyboard.press("Escape")
    expect(line).to_be_hidden()
