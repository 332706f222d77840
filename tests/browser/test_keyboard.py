"""Without a mouse: stages, cells and undo by keys; and nothing on the page jumps while one types."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.explorer_page import ExplorerPage

FOCUSED = "() => [document.activeElement.dataset.q ?? '', document.activeElement.dataset.i ?? '']"
CURRENT = 'button[data-stage][aria-current="step"]'


def tab_to(explorer: ExplorerPage, selector: str, presses: int = 60) -> None:
    """Press Tab until the focus is on something that matches."""
    for _ in range(presses):
        explorer.page.keyboard.press("Tab")
        if explorer.page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    pytest.fail(f"{presses} presses of Tab do not reach {selector}")


def test_stages_by_keys(explorer: ExplorerPage) -> None:
    tab_to(explorer, "button[data-stage]")
    stage = explorer.page.locator(CURRENT)
    for key, expected in [("ArrowDown", 2), ("ArrowDown", 3), ("ArrowUp", 2), ("End", 8), ("Home", 1)]:
        with explorer.repaint():
            explorer.page.keyboard.press(key)
        expect(stage).to_have_attribute("data-stage", str(expected))


def test_a_cell_is_reached_edited_and_undone_by_keys(explorer: ExplorerPage) -> None:
    before = explorer.texts()
    tab_to(explorer, '[data-q="resid_pre"]')
    assert explorer.page.evaluate(FOCUSED) == ["resid_pre", "0,0,0"]
    for key, index in [("ArrowRight", "0,0,1"), ("ArrowDown", "0,1,1"), ("ArrowUp", "0,0,1")]:
        explorer.page.keyboard.press("ControlOrMeta+a")
        explorer.page.keyboard.press(key)
        assert explorer.page.evaluate(FOCUSED) == ["resid_pre", index], f"after {key}"
    explorer.page.keyboard.press("ControlOrMeta+a")
    with explorer.repaint():
        explorer.page.keyboard.type("2")
    assert explorer.value("resid_pre", 0, 0, 1) == 2
    assert explorer.texts() != before
    with explorer.repaint():
        explorer.page.keyboard.press("ControlOrMeta+z")
    assert explorer.texts() == before


PLACES = """
    parts => Object.fromEntries([...document.querySelectorAll(parts)].filter(part => part.offsetParent).map(part => {
        const {x, y, width, height} = part.getBoundingClientRect(), {q, i, stage, field, figure} = part.dataset;
        const name = q ? `${q}[${i}]` : stage ?? field ?? figure ?? 'ledger';
        return [name, [x + scrollX, y + scrollY, width, height].map(Math.round).join(' ')]; }))
"""
TOUCHED = "[data-q][data-i], button[data-stage]"
BELOW = "[data-figure], [data-field], [data-ledger]"  # a long number may wrap the sentences above on a phone


@pytest.mark.parametrize(("width", "parts"), [(1280, f"{TOUCHED}, {BELOW}"), (390, TOUCHED)])
def test_nothing_jumps_when_numbers_change(open_explorer: Callable[..., ExplorerPage], width: int, parts: str) -> None:
    explorer = open_explorer(width=width, height=800)
    jumped: list[str] = []
    for stage in range(1, 9):
        explorer.stage(stage)
        q, index = explorer.page.locator("input[data-q][data-i]:visible").first.evaluate(
            "cell => [cell.dataset.q, cell.dataset.i]"
        )
        cell = tuple(int(part) for part in index.split(","))
        with explorer.repaint():  # a first edit may add its line to the list of edits
            explorer.type_cell(q, cell, "2")
        before = explorer.page.evaluate(PLACES, parts)
        for text in ("3", "-12345.678", "0.001", "-4"):
            with explorer.repaint():
                explorer.type_cell(q, cell, text)
            after = explorer.page.evaluate(PLACES, parts)
            moved = [name for name in before if before[name] != after.get(name)]
            jumped += [
                f"stage {stage}, {q}{list(cell)} = {text}: {name} was at {before[name]}, is at {after.get(name)}"
                for name in moved[:1]
            ]
    assert not jumped, "\n".join(jumped)


def to_stage(explorer: ExplorerPage, stage: str) -> None:
    with explorer.repaint():
        explorer.page.keyboard.press(stage)
    assert explorer.page.locator(CURRENT).get_attribute("data-stage") == stage


def test_after_escape_keys_are_the_pages_until_a_cell_is_wanted_again(explorer: ExplorerPage) -> None:
    page, cell = explorer.page, explorer.cell("resid_pre", 0, 1, 1)
    with explorer.repaint():
        cell.click()
    with explorer.repaint():
        page.keyboard.press("Escape")
    expect(page.locator("[data-inspector]")).to_be_hidden()
    assert page.evaluate(FOCUSED) == ["resid_pre", "0,1,1"]
    for stage in ("5", "1"):
        to_stage(explorer, stage)
    expect(page.locator("[data-edit]")).to_have_count(0)
    for wake in ("Enter", "click"):
        with explorer.repaint():
            cell.click()
        page.keyboard.press("Escape")
        page.keyboard.press("Enter") if wake == "Enter" else cell.click()
        with explorer.repaint():
            page.keyboard.type("7" if wake == "Enter" else "6")
        expect(cell).to_have_value("7" if wake == "Enter" else "6")
        page.keyboard.press("Enter")


def test_in_present_mode_a_click_chooses_a_cell_and_enter_or_a_double_click_edits_it(
    open_explorer: Callable[..., ExplorerPage],
) -> None:
    explorer = open_explorer("?stage=5&present=1")
    page, cell = explorer.page, explorer.cell("probs", 0, 0, 1, 0)
    with explorer.repaint():
        cell.click()
    expect(page.locator("[data-inspector]")).to_be_visible()
    for stage in ("3", "5"):
        to_stage(explorer, stage)
    expect(page.locator("[data-edit]")).to_have_count(0)
    cell.click()
    page.keyboard.press("Enter")
    with explorer.repaint():
        page.keyboard.type("0.3")
    expect(cell).to_have_value("0.3")
    page.keyboard.press("Enter")
    other = explorer.cell("probs", 0, 0, 1, 1)
    other.click()
    page.keyboard.type("9")
    expect(other).to_have_value("0.5")
    other.dblclick()
    with explorer.repaint():
        page.keyboard.type("0.2")
    expect(other).to_have_value("0.2")
