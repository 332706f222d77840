"""The page under a person's hands: keyboard, texts that stay, undo, slow and silent servers, links."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import numpy as np
import pytest
from playwright.sync_api import Page, Route, expect

from tests import toy_reference
from tests.browser.conftest import explorer, new_page, open_explorer, server  # noqa: F401
from tests.browser.explorer_page import ExplorerPage

pytestmark = pytest.mark.browser
Open = Callable[..., ExplorerPage]
X01 = ("resid_pre", (0, 0, 1))
FOCUSED = "document.activeElement.dataset.q + '@' + document.activeElement.dataset.i"


def focused(page: Page) -> str:
    return str(page.evaluate(FOCUSED))


def test_grid_by_keyboard_alone(explorer: ExplorerPage) -> None:  # noqa: F811
    page = explorer.page
    grid = page.locator('[data-panel="resid_pre"]')
    assert grid.locator('input[tabindex="0"]').count() == 1, "one stop for Tab in a grid"
    grid.locator("input").first.focus()
    page.keyboard.press("ArrowRight")
    assert focused(page) == "resid_pre@0,0,1"
    page.keyboard.press("ArrowRight")
    assert focused(page) == "resid_pre@0,0,1", "the edge holds"
    with explorer.repaint():
        page.keyboard.type("2")
    page.keyboard.press("Enter")
    assert focused(page) == "resid_pre@0,1,1"
    page.keyboard.press("Home")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowUp")
    assert focused(page) == "resid_pre@0,0,0"
    page.keyboard.press("Tab")
    assert focused(page) == "input_layernorm.weight@0"
    assert explorer.value("resid_pre", 0, 0, 1) == 2


def test_caret_moves_inside_a_text_that_is_being_typed(explorer: ExplorerPage) -> None:  # noqa: F811
    explorer.type_cell(*X01, "24")
    explorer.page.keyboard.press("ArrowLeft")
    with explorer.repaint():
        explorer.page.keyboard.type("5")
    assert focused(explorer.page) == "resid_pre@0,0,1"
    expect(explorer.cell("resid_pre", 0, 0, 1)).to_have_value("254")


def test_typed_text_is_left_alone_until_the_focus_goes(explorer: ExplorerPage) -> None:  # noqa: F811
    cell = explorer.cell("resid_pre", 0, 0, 1)
    with explorer.repaint():
        explorer.type_cell(*X01, "0.50")
    expect(cell).to_have_value("0.50")
    explorer.page.keyboard.press("Tab")
    expect(cell).to_have_value("0.5")


def test_full_number_on_focus_and_on_hover_four_digits_otherwise(explorer: ExplorerPage) -> None:  # noqa: F811
    explorer.stage(4)
    cell = explorer.cell("scores", 0, 0, 0, 0)
    expect(cell).to_have_value("1.414")
    cell.hover()
    expect(explorer.page.locator(".tip")).to_contain_text(re.compile(r"1\.41421"))
    cell.focus()
    expect(cell).to_have_value(re.compile(r"^1\.41421\d*$"))
    explorer.page.keyboard.press("Tab")
    expect(cell).to_have_value("1.414")


def test_minus_sign_and_comma_are_understood(explorer: ExplorerPage) -> None:  # noqa: F811
    for text in ("\u22122.5", "-2.5", "-2,5", "-25e-1", "－２．５"):
        with explorer.repaint():
            explorer.type_cell(*X01, text)
        assert float(explorer.page.evaluate("document.activeElement.cell.x")) == -2.5
    explorer.page.keyboard.press("Tab")
    expect(explorer.cell("resid_pre", 0, 0, 1)).to_have_value("\u22122.5")


def test_unfinished_number_is_not_called_wrong_at_once(explorer: ExplorerPage) -> None:  # noqa: F811
    cell = explorer.cell("resid_pre", 0, 0, 1)
    explorer.type_cell(*X01, "-")
    assert cell.get_attribute("aria-invalid") is None
    expect(cell).to_have_attribute("aria-invalid", "true")
    with explorer.repaint():
        explorer.page.keyboard.type("3")
    assert cell.get_attribute("aria-invalid") is None


def test_wrong_text_survives_answers_and_changes_of_stage_until_escape(explorer: ExplorerPage) -> None:  # noqa: F811
    cell = explorer.cell("resid_pre", 0, 0, 1)
    explorer.type_cell(*X01, "abc")
    with explorer.repaint():
        explorer.type_cell("resid_pre", (0, 1, 1), "4")
    expect(cell).to_have_value("abc")
    explorer.stage(2)
    explorer.stage(1)
    expect(cell).to_have_value("abc")
    expect(cell).to_have_attribute("aria-invalid", "true")
    assert "abc" in explorer.expect_error("resid_pre:0,0,1")
    cell.focus()
    explorer.page.keyboard.press("Escape")
    expect(cell).to_have_value("1")
    explorer.expect_no_errors()


def test_number_too_large_for_float32(explorer: ExplorerPage) -> None:  # noqa: F811
    explorer.type_cell(*X01, "1e39")
    assert "float32" in explorer.expect_error("resid_pre:0,0,1")


def test_undo_and_redo_take_a_visit_to_a_cell_as_one_step(explorer: ExplorerPage) -> None:  # noqa: F811
    page = explorer.page
    with explorer.repaint():
        explorer.type_cell(*X01, "2.75")
    with explorer.repaint():
        explorer.type_cell("resid_pre", (0, 1, 0), "3")
    with explorer.repaint():
        page.keyboard.press("Control+z")
    assert page.locator("[data-edit]").count() == 1
    assert explorer.value(X01[0], *X01[1]) == 2.75
    with explorer.repaint():
        page.keyboard.press("Control+z")
    assert page.locator("[data-edit]").count() == 0
    with explorer.repaint():
        page.keyboard.press("Control+Shift+z")
    assert page.locator("[data-edit]").count() == 1


def test_edits_off_and_on_again(explorer: ExplorerPage) -> None:  # noqa: F811
    with explorer.repaint():
        explorer.type_cell(*X01, "2")
    box = explorer.page.locator('[data-edit="0"] input')
    with explorer.repaint():
        box.uncheck()
    assert explorer.value("attn_norm", 0, 0, 1) == 1
    with explorer.repaint():
        explorer.page.get_by_role("button", name="Switch all on").click()
    assert explorer.value("attn_norm", 0, 0, 1) == pytest.approx(1.265, rel=1e-3)
    with explorer.repaint():
        explorer.page.get_by_role("button", name="Remove all").click()
    expect(explorer.page.locator("[data-edit]")).to_have_count(0)


def test_marks_of_edited_and_moved_cells_and_the_change(explorer: ExplorerPage) -> None:  # noqa: F811
    with explorer.repaint():
        explorer.type_cell(*X01, "2")
    boxes = {q: explorer.cell(q, 0, 0, 1).locator("..") for q in ("resid_pre", "attn_norm")}
    expect(boxes["resid_pre"]).to_have_class(re.compile("edited"))
    expect(boxes["attn_norm"]).to_have_class(re.compile("changed"))
    expect(explorer.cell("attn_norm", 0, 1, 1).locator("..")).not_to_have_class(re.compile("changed"))
    with explorer.repaint():
        explorer.page.locator('[data-compare="change"]').click()
    expect(explorer.cell("attn_norm", 0, 0, 1)).to_have_value("+0.2649")
    with explorer.repaint():
        explorer.page.locator('[data-compare="both"]').click()
    expect(explorer.cell("attn_norm", 0, 0, 1)).to_have_value("1.265")
    expect(boxes["attn_norm"].locator(".delta")).to_have_text("+0.2649")


def test_only_one_question_is_under_way_and_the_last_one_wins(explorer: ExplorerPage) -> None:  # noqa: F811
    under_way, most = 0, 0

    def slow(route: Route) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        time.sleep(0.25)
        under_way -= 1
        route.continue_()

    explorer.page.route("**/component_server**", slow)
    with explorer.repaint():
        explorer.type_cell(*X01, "123456")
    explorer.page.wait_for_timeout(1200)
    explorer.settle(400)
    assert most == 1
    expected = toy_reference.toy(np.array([[1.0, 123456.0], [1.0, -1.0]]))
    assert explorer.value("attn_norm", 0, 0, 1) == pytest.approx(expected["attn_norm"][0, 0, 1], rel=1e-3)
    assert int(explorer.root.get_attribute("data-seq") or 0) >= 6


def test_silent_server_is_said_and_asked_again(new_page: Callable[..., Page], server) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    page = new_page()
    explorer = ExplorerPage(page)  # noqa: F811
    explorer.open(server.url)
    failed = 0

    def fail_twice(route: Route) -> None:
        nonlocal failed
        failed += 1
        if failed <= 2:
            route.fulfill(status=200, body="no JSON")
        else:
            route.continue_()

    page.route("**/component_server**", fail_twice)
    with explorer.repaint():
        explorer.type_cell(*X01, "2")
        expect(page.locator('[data-error-for=""]')).to_contain_text("does not answer")
    explorer.expect_no_errors()
    assert explorer.value("attn_norm", 0, 0, 1) == pytest.approx(1.265, rel=1e-3)


def test_link_reproduces_the_picture(explorer: ExplorerPage, open_explorer: Open) -> None:  # noqa: F811
    with explorer.repaint():
        explorer.page.locator('[data-preset="capstone"]').click()
    explorer.stage(5)
    with explorer.repaint():
        explorer.type_cell("probs", (0, 1, 2, 0), "0.25")
    explorer.page.wait_for_timeout(300)
    query = explorer.page.evaluate("location.search")
    assert "B=2" in query and "stage=5" in query
    again = open_explorer(query)
    explorer.page.keyboard.press("Tab")
    assert again.texts() == explorer.texts()


def test_hostile_text_stays_text(explorer: ExplorerPage) -> None:  # noqa: F811
    markup = "<img src=x onerror=window.hit=1>"
    explorer.set_field("T", markup)
    assert markup in explorer.expect_error("T")
    explorer.type_cell(*X01, markup)
    assert "img" in explorer.expect_error("resid_pre:0,0,1")
    assert explorer.page.evaluate("window.hit") is None
    assert explorer.page.locator(".mbx img").count() == 0


def test_hostile_link_stays_text(open_explorer: Open) -> None:  # noqa: F811
    page = open_explorer("?v=1&T=<img src=x onerror=window.hit=1>&e=<b>@0~1&<i>=1").page
    assert page.evaluate("window.hit") is None
    assert "Ignored" in page.locator(".notes").inner_text() or "ignored" in page.locator(".notes").inner_text()


def test_numbers_move_nothing(explorer: ExplorerPage) -> None:  # noqa: F811
    places = """[...document.querySelectorAll('.panel, .centre > .legend, .map-row, .grid .cell')].map(
        n => {const b = n.getBoundingClientRect(); return [b.left, b.top, b.width].map(Math.round)})"""
    for stage in (1, 4, 5):
        explorer.stage(stage)
        before = explorer.page.evaluate(places)
        q, i = explorer.page.evaluate(
            "(() => {const c = document.querySelector('input[data-q]'); return [c.dataset.q, c.dataset.i]})()"
        )
        with explorer.repaint():
            explorer.type_cell(q, tuple(map(int, i.split(","))), "-0.12345")
        after = explorer.page.evaluate(places)
        explorer.page.locator('[data-remove="0"]').click()
        explorer.settle()
        assert after == before, f"stage {stage}"


@pytest.mark.parametrize("preset", ["toy", "capstone", "gqa", "minimind3"])
def test_nothing_is_wider_than_a_phone(open_explorer: Open, preset: str) -> None:  # noqa: F811
    explorer = open_explorer(width=390, height=844)  # noqa: F811
    with explorer.repaint():
        explorer.page.locator(f'[data-preset="{preset}"]').click()
    for stage in range(1, 9):
        explorer.stage(stage)
        assert explorer.page.evaluate("document.documentElement.scrollWidth") <= 390, f"stage {stage}"


def test_batch_row_and_head_can_be_chosen(explorer: ExplorerPage) -> None:  # noqa: F811
    with explorer.repaint():
        explorer.page.locator('[data-preset="capstone"]').click()
    with explorer.repaint():
        explorer.page.locator('[data-slice="b1"]').click()
    assert {index[0] for index in explorer.cells()["resid_pre"]} == {1}


def test_theme_can_be_turned_and_stays_in_the_address(explorer: ExplorerPage) -> None:  # noqa: F811
    page = explorer.page
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.locator('[data-act="theme"]').click()
    assert page.evaluate(paper) != light
    explorer.stage(3)
    page.wait_for_timeout(300)
    assert "__theme=dark" in page.evaluate("location.search")
