"""What has the focus and goes, or goes dead, hands it to something near: nobody starts again from the top."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import expect

from tests.browser.explorer_page import ExplorerPage

Open = Callable[..., ExplorerPage]


def test_present_mode_by_its_button_and_out_by_its_cross(explorer: ExplorerPage) -> None:
    page = explorer.page
    with explorer.repaint():
        page.locator("[data-act=present]").click()
    expect(page.locator("h1")).to_be_focused()
    page.keyboard.press(" ")
    expect(page.locator("[data-walk]")).to_have_attribute("data-walk", "playing")
    with explorer.repaint():
        page.locator("[data-act=leave]").click()
    expect(page.locator("[data-act=present]")).to_be_focused()


def test_a_removed_edit_leaves_the_focus_in_the_list(open_explorer: Open) -> None:
    explorer = open_explorer("?v=1&e=resid_pre@0.0.0~2!resid_pre@0.0.1~3")
    page, crosses = explorer.page, explorer.page.locator("[data-remove]")
    expect(crosses).to_have_count(2)
    box = page.locator("[data-edit] input").last
    with explorer.repaint():
        box.click()
    expect(box).to_be_focused()
    with explorer.repaint():
        crosses.last.click()
    expect(crosses).to_have_count(1)
    expect(crosses).to_be_focused()
    with explorer.repaint():
        page.keyboard.press("Enter")
    expect(crosses).to_have_count(0)
    expect(page.locator(".side h2", has_text="Edits")).to_be_focused()


def test_the_last_step_leaves_the_focus_on_the_way_back(open_explorer: Open) -> None:
    explorer = open_explorer("?stage=7")
    page = explorer.page
    with explorer.repaint():
        page.locator('.step[aria-label*="Next"]').click()
    expect(page.locator('.step[aria-label*="Previous"]')).to_be_focused()
    with explorer.repaint():
        page.locator("[data-preset=gqa]").click()
    with explorer.repaint():
        page.locator("[data-act=undo]").click()
    expect(page.locator("[data-act=redo]")).to_be_focused()
