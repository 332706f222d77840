"""What a visitor typed and chose: a refused number leaves nothing behind, undo brings back whole models, notes go."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.explorer_page import ExplorerPage

Open = Callable[..., ExplorerPage]
X01 = ("resid_pre", (0, 0, 1))


def press(explorer: ExplorerPage, keys: str) -> None:
    with explorer.repaint():
        explorer.page.keyboard.press(keys)


@pytest.mark.parametrize("text", ["1e40", "1/3", "2x"])
def test_a_rejected_number_is_not_partly_applied(explorer: ExplorerPage, text: str) -> None:
    page, cell = explorer.page, explorer.cell("resid_pre", 0, 0, 1)
    explorer.stage(2)
    before = explorer.texts()
    explorer.stage(1)
    with explorer.repaint():
        explorer.type_cell(*X01, text)
    expect(cell).to_have_value(text)
    assert "keeps 1;" in explorer.expect_error("resid_pre:0,0,1")
    expect(page.locator("[data-edit]")).to_have_count(0)
    explorer.stage(2)
    assert explorer.texts() == before
    assert page.locator('[data-act="undo"]').is_disabled(), "nothing was done, so there is nothing to undo"
    explorer.stage(1)
    expect(cell).to_have_value(text)
    cell.focus()
    page.keyboard.press("Escape")
    expect(cell).to_have_value("1")


def test_the_number_from_before_the_visit_stays(explorer: ExplorerPage) -> None:
    page, cell = explorer.page, explorer.cell("resid_pre", 0, 0, 1)
    with explorer.repaint():
        explorer.type_cell(*X01, "0.5")
    page.keyboard.press("Tab")
    with explorer.repaint():
        explorer.type_cell(*X01, "2x")
    assert "keeps 0.5;" in explorer.expect_error("resid_pre:0,0,1")
    expect(page.locator('[data-edit="0"]')).to_contain_text("= 0.5")
    expect(explorer.cell("attn_norm", 0, 0, 1)).to_have_value("0.6325")
    press(explorer, "Backspace")
    expect(page.locator('[data-edit="0"]')).to_contain_text("= 2")
    press(explorer, "ControlOrMeta+z")
    expect(page.locator('[data-edit="0"]')).to_contain_text("= 0.5")
    expect(cell).to_have_value("0.5")
    press(explorer, "ControlOrMeta+z")
    expect(page.locator("[data-edit]")).to_have_count(0)


def test_an_unfinished_number_is_taken_back_once_it_is_called_wrong(explorer: ExplorerPage) -> None:
    with explorer.repaint():
        explorer.type_cell(*X01, "2e")
    assert "keeps 1;" in explorer.expect_error("resid_pre:0,0,1")
    explorer.settle()
    expect(explorer.page.locator("[data-edit]")).to_have_count(0)
    expect(explorer.cell("resid_pre", 0, 0, 1)).to_have_value("2e")


def test_undo_after_a_preset_brings_back_the_model_with_its_edits(explorer: ExplorerPage) -> None:
    page = explorer.page
    with explorer.repaint():
        explorer.type_cell(*X01, "2")
    page.keyboard.press("Tab")
    toy = explorer.texts()
    with explorer.repaint():
        page.locator('[data-preset="gqa"]').click()
    gqa = explorer.texts()
    press(explorer, "ControlOrMeta+z")
    assert explorer.texts() == toy
    expect(page.locator('[data-edit="0"]')).to_contain_text("= 2")
    press(explorer, "ControlOrMeta+Shift+z")
    assert explorer.texts() == gqa
    expect(page.locator("[data-edit]")).to_have_count(0)


def test_a_new_size_is_a_step_of_its_own_and_ends_redo(explorer: ExplorerPage) -> None:
    page = explorer.page
    with explorer.repaint():
        explorer.type_cell("resid_pre", (0, 1, 1), "2")
    press(explorer, "ControlOrMeta+z")
    with explorer.repaint():
        explorer.set_field("T", "3")
    expect(page.locator('[data-act="redo"]')).to_be_disabled()
    press(explorer, "ControlOrMeta+z")
    expect(explorer.field("T")).to_have_value("2")
    press(explorer, "ControlOrMeta+Shift+z")
    expect(explorer.field("T")).to_have_value("3")
    expect(page.locator("[data-edit]")).to_have_count(0)


def test_edits_put_aside_by_a_smaller_size_come_back_with_it(explorer: ExplorerPage) -> None:
    with explorer.repaint():
        explorer.type_cell("resid_pre", (0, 1, 1), "2")
    with explorer.repaint():
        explorer.set_field("T", "1")
    expect(explorer.page.locator("[data-edit]")).to_have_count(0)
    press(explorer, "ControlOrMeta+z")
    expect(explorer.field("T")).to_have_value("2")
    expect(explorer.page.locator('[data-edit="0"]')).to_contain_text("= 2")


def test_undo_of_a_refused_size_shows_the_last_good_one(explorer: ExplorerPage) -> None:
    explorer.set_field("T", "many")
    explorer.expect_error("T")
    press(explorer, "ControlOrMeta+z")
    expect(explorer.field("T")).to_have_value("2")
    explorer.expect_no_errors()


def test_a_note_stays_while_it_is_read_and_then_goes(explorer: ExplorerPage) -> None:
    notes = explorer.page.locator(".notes")
    with explorer.repaint():
        explorer.set_field("d_model", "4")
    expect(notes).to_contain_text("random weights")
    notes.hover(force=True)
    explorer.page.wait_for_timeout(9000)
    expect(notes).to_contain_text("random weights")
    explorer.page.mouse.move(5, 5)
    expect(notes).to_be_empty(timeout=4000)


def test_a_score_set_by_hand_is_a_quiet_line_once_and_only_where_it_acts(open_explorer: Open) -> None:
    explorer = open_explorer()
    page, line = explorer.page, explorer.page.locator(".path-note")
    explorer.stage(5)
    with explorer.repaint():
        explorer.type_cell("probs", (0, 0, 1, 0), "0.25")
    expect(line).to_contain_text("step by step")
    expect(page.locator(".notes")).to_be_empty()
    cell = explorer.cell("probs", 0, 0, 1, 0)
    page.wait_for_timeout(300)
    x, y = cell.evaluate(
        "c => { const r = c.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }"
    )
    assert cell.evaluate("(c, at) => document.elementFromPoint(...at) === c", [x, y]), "nothing lies over the cell"
    explorer.stage(6)
    expect(line).to_be_empty()
    explorer.stage(4)
    expect(line).to_contain_text("step by step")
    address = page.url
    press(explorer, "ControlOrMeta+z")
    expect(line).to_be_empty()
    press(explorer, "ControlOrMeta+Shift+z")
    expect(line).to_be_empty()
    opened = open_explorer("?" + address.split("?")[1])
    opened.stage(5)
    expect(opened.page.locator("[data-edit]")).to_have_count(1)
    expect(opened.page.locator(".path-note")).to_be_empty()


def test_escape_gives_back_what_the_cell_had_before_the_visit(explorer: ExplorerPage) -> None:
    page, cell = explorer.page, explorer.cell("resid_pre", 0, 0, 1)
    with explorer.repaint():
        explorer.type_cell(*X01, "0.5")
    page.keyboard.press("Tab")
    with explorer.repaint():
        explorer.type_cell(*X01, "7")
    press(explorer, "Escape")
    expect(cell).to_have_value("0.5")
    expect(page.locator('[data-edit="0"]')).to_contain_text("= 0.5")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("8")
    press(explorer, "Escape")  # at once, before an answer
    expect(cell).to_have_value("0.5")
    expect(explorer.cell("attn_norm", 0, 0, 1)).to_have_value("0.6325")


def test_enter_does_not_leave_a_refused_text(explorer: ExplorerPage) -> None:
    page, cell = explorer.page, explorer.cell("resid_pre", 0, 0, 1)
    explorer.type_cell(*X01, "abc")
    page.keyboard.press("Enter")
    expect(cell).to_be_focused()
    assert "Esc in the cell" in explorer.expect_error("resid_pre:0,0,1")
    explorer.cell("resid_pre", 0, 0, 0).click()
    cell.click()
    page.keyboard.press("Escape")
    expect(cell).to_have_value("1")
    explorer.expect_no_errors()


def test_a_click_selects_a_taken_number_and_a_second_one_places_the_caret(explorer: ExplorerPage) -> None:
    page, cell = explorer.page, explorer.cell("resid_pre", 0, 0, 1)
    for digit in ("2", "3"):
        cell.click()
        with explorer.repaint():
            page.keyboard.type(digit)
        expect(cell).to_have_value(digit)
    page.keyboard.press("Tab")
    cell.click()
    cell.click()
    assert cell.evaluate("c => c.selectionStart === c.selectionEnd")


def test_settings_on_a_phone_lead_to_the_panel(open_explorer: Open) -> None:
    explorer = open_explorer(width=390, height=844)
    explorer.page.locator('[data-act="panel"]').click()
    side = explorer.page.locator(".side")
    expect(side).to_be_in_viewport()
    expect(side).to_be_focused()
    assert 0 < side.bounding_box()["y"] < 422  # type: ignore[index]
    explorer.page.locator('[data-act="panel"]').click()
    explorer.page.wait_for_function("scrollY === 0")
    expect(explorer.page.locator('[data-act="panel"]')).to_be_focused()


def test_on_a_phone_the_last_setting_is_clear_of_the_tools_of_an_edit(open_explorer: Open) -> None:
    page = open_explorer("?v=1&e=resid_pre@0.0.1~2", width=390, height=844).page
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    page.wait_for_timeout(300)
    last, tools = (page.locator(at).bounding_box() for at in (".side details[data-group=runtime]", ".edit-tools"))
    assert last and tools and last["y"] + last["height"] <= tools["y"], (last, tools)


def test_a_note_about_lost_edits_lies_over_no_matrix(open_explorer: Open) -> None:
    explorer = open_explorer("?v=1&stage=5&e=probs@0.0.1.0~0.9")
    with explorer.repaint():
        explorer.set_field("T", "1")
    expect(explorer.page.locator(".notes")).to_contain_text("P[0, 0, 1, 0] = 0.9")
    note = explorer.page.locator(".notes").bounding_box()
    centre = explorer.page.locator(".centre").bounding_box()
    assert note and centre and note["x"] + note["width"] <= centre["x"], (note, centre)


def test_a_number_that_was_entered_stays_when_escape_closes_the_inspector(explorer: ExplorerPage) -> None:
    page = explorer.page
    explorer.stage(5)
    with explorer.repaint():
        explorer.type_cell("probs", (0, 0, 1, 0), "0.9")
    page.keyboard.press("Enter")  # in the last row the focus stays
    press(explorer, "Escape")
    expect(page.locator("[data-inspector]")).to_be_hidden()
    expect(page.locator('[data-edit="0"]')).to_contain_text("= 0.9")
    expect(explorer.cell("probs", 0, 0, 1, 0)).to_have_value("0.9")
    press(explorer, "ControlOrMeta+z")
    expect(page.locator("[data-edit]")).to_have_count(0)


def test_each_text_that_is_entered_is_a_step_of_its_own(explorer: ExplorerPage) -> None:
    page, field = explorer.page, explorer.field("d_model")
    field.click()
    for text in ("4", "12"):
        page.keyboard.press("ControlOrMeta+a")
        with explorer.repaint():
            page.keyboard.type(text)
        page.keyboard.press("Enter")
    for text in ("4", "2"):
        press(explorer, "ControlOrMeta+z")
        expect(field).to_have_value(text)
    explorer.stage(5)
    explorer.cell("probs", 0, 0, 1, 0).click()
    for text in ("0.9", "0.25"):
        page.keyboard.press("ControlOrMeta+a")
        with explorer.repaint():
            page.keyboard.type(text)
        page.keyboard.press("Enter")
    press(explorer, "ControlOrMeta+z")
    expect(page.locator('[data-edit="0"]')).to_contain_text("= 0.9")
