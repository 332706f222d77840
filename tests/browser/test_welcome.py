"""Two hints for a first visitor, one before and one after the first edit: each once, and nothing moves with them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.explorer_page import ExplorerPage

Open = Callable[..., ExplorerPage]
WELCOME = "[data-welcome]"


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (390, 844)])
def test_the_first_is_seen_at_once_and_gives_way_to_the_second_for_good(
    open_explorer: Open, width: int, height: int
) -> None:
    explorer = open_explorer(width=width, height=height)
    said, first = explorer.page.locator(WELCOME), explorer.cell("resid_pre", 0, 0, 0)
    expect(said).to_be_in_viewport(ratio=1)
    explorer.stage(2)
    expect(said).to_be_hidden()
    explorer.stage(1)
    expect(said).to_be_visible()
    first.focus()
    before = first.bounding_box()
    with explorer.repaint():
        explorer.page.keyboard.type("2")
    expect(said.get_by_text("Click one, type another")).to_be_hidden()
    expect(said.get_by_text("Every number that moved carries a corner now.")).to_be_visible()
    assert first.bounding_box() == before, "the first edit moves the matrices"
    explorer.stage(2)
    expect(said).to_be_hidden()
    explorer.stage(1)
    expect(said).to_be_hidden()
    explorer.page.goto(explorer.page.url.split("?")[0])
    explorer.page.wait_for_selector("[data-ready=true]")
    expect(said).to_be_hidden()


def test_a_link_with_an_edit_needs_no_welcome_and_a_later_visit_still_has_it(open_explorer: Open) -> None:
    explorer = open_explorer("?v=1&e=resid_pre@0.0.1~2")
    said = explorer.page.locator(WELCOME)
    assert said.evaluate("said => said.offsetHeight") == 0
    explorer.page.goto(explorer.page.url.split("?")[0])
    explorer.page.wait_for_selector("[data-ready=true]")
    expect(said).to_be_visible()


def test_it_speaks_the_page_s_language_and_is_no_part_of_a_lesson(open_explorer: Open) -> None:
    explorer = open_explorer("?lang=zh")
    said = explorer.page.locator(WELCOME)
    expect(said).to_contain_text("真实的 MiniMind 块")
    explorer.page.locator("[data-act=present]").click()
    expect(said).to_be_hidden()
