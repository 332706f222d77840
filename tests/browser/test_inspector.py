"""The cell inspector: what it says, what it lights up, the way back to X, edits by index, keys, nothing jumps."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.explorer_page import ExplorerPage, number
from tests.browser.test_keyboard import PLACES

CELLS = "[data-q][data-i]"
CAPSTONE = "?v=1&B=2&T=5&d=12&h=3&w=random"
LIT = """
    mark => [...document.querySelectorAll(`[data-lit="${mark}"] [data-q]`)]
        .map(cell => `${cell.dataset.q}[${cell.dataset.i}]`).sort()
"""


def card(explorer: ExplorerPage) -> Locator:
    return explorer.page.locator("[data-inspector]")


def title(explorer: ExplorerPage) -> Locator:
    return card(explorer).locator("h2 > .num")


def check(explorer: ExplorerPage) -> Locator:
    return card(explorer).locator(".inspector-check")


def force(explorer: ExplorerPage) -> Locator:
    """What counts instead of the computed number."""
    return card(explorer).locator(".inspector-force")


def choose(explorer: ExplorerPage, q: str, *index: int) -> None:
    with explorer.repaint():
        explorer.cell(q, *index).click()
    expect(title(explorer)).to_have_text(f"[{', '.join(map(str, index))}]")


def lit(explorer: ExplorerPage, mark: str = "from") -> list[str]:
    return list(explorer.page.evaluate(LIT, mark))


def test_a_score_says_how_it_was_made(explorer: ExplorerPage) -> None:
    explorer.stage(4)
    expect(card(explorer)).to_be_hidden()
    choose(explorer, "scores", 0, 0, 1, 0)
    expect(card(explorer)).to_be_visible()
    terms = [number(text) for text in card(explorer).locator("[data-term]").all_inner_texts()]
    assert terms == [1, 1, 1, 1]
    expect(card(explorer).locator("math").first).to_be_visible()
    expect(check(explorer)).to_contain_text("in float64; the block computed 1.4142")
    expect(check(explorer)).to_contain_text("rounding")
    assert lit(explorer) == ["k_rot[0,0,0,0]", "k_rot[0,0,0,1]", "q_rot[0,0,1,0]", "q_rot[0,0,1,1]"]
    assert lit(explorer, "chosen") == ["scores[0,0,1,0]"]
    assert "cell=scores@0.0.1.0" in explorer.page.url


def test_only_what_a_query_may_see_lights_up(open_explorer: Callable[..., ExplorerPage]) -> None:
    explorer = open_explorer(CAPSTONE + "&hkv=1&stage=5")
    choose(explorer, "heads", 0, 1, 2, 1)
    keys = [0, 1, 2]
    expected = [f"probs[0,1,2,{j}]" for j in keys] + [f"v[0,0,{j},1]" for j in keys]
    assert lit(explorer) == sorted(expected), "query 2 sees keys 0 to 2, and head 1 reads the only kv head"


def test_terms_lead_back_to_the_input(explorer: ExplorerPage) -> None:
    explorer.stage(4)
    choose(explorer, "scores", 0, 0, 1, 0)
    for stage, name in [(3, "q_rot"), (2, "q"), (1, "attn_norm"), (1, "resid_pre")]:
        for _ in range(3):  # a stage may show its input before what computes it
            if card(explorer).locator(f'.terms [data-term="{name}"]').count():
                break
            with explorer.repaint():
                card(explorer).locator(".terms [data-term]").first.click()
        with explorer.repaint():
            card(explorer).locator(f'.terms [data-term="{name}"]').first.click()
        assert explorer.page.locator('[data-lit="chosen"]').count() == 1, f"{name} is not in view"
        current = explorer.page.locator('button[data-stage][aria-current="step"]').get_attribute("data-stage")
        assert int(current or 0) >= stage
    expect(check(explorer)).to_contain_text("Given")
    crumbs = card(explorer).locator(".crumbs button")
    assert crumbs.count() >= 4
    with explorer.repaint():
        crumbs.first.click()
    expect(title(explorer)).to_have_text("[0, 0, 1, 0]")
    assert crumbs.count() == 0


def test_pointing_at_a_term_points_at_its_cell(explorer: ExplorerPage) -> None:
    explorer.stage(4)
    choose(explorer, "scores", 0, 0, 1, 0)
    card(explorer).locator('.terms [data-term="k_rot"][data-at="0,0,0,1"]').hover()
    hot = explorer.page.locator("[data-hot] [data-q]")
    expect(hot).to_have_count(1)
    assert (hot.get_attribute("data-q"), hot.get_attribute("data-i")) == ("k_rot", "0,0,0,1")


def test_an_edited_cell_says_so_and_its_numbers_change_in_place(explorer: ExplorerPage) -> None:
    explorer.stage(4)
    choose(explorer, "scores", 0, 0, 1, 0)
    explorer.page.evaluate("() => { window.kept = document.querySelector('.terms [data-term]'); }")
    with explorer.repaint():
        explorer.type_cell("scores", (0, 0, 1, 0), "2")
    expect(force(explorer)).to_contain_text("2, set by hand (the block had computed 1.414)")
    choose(explorer, "scores", 0, 0, 1, 1)
    choose(explorer, "scores", 0, 0, 1, 0)
    explorer.page.evaluate("() => { window.kept = document.querySelector('.terms [data-term]'); }")
    with explorer.repaint():
        explorer.set_field("angle_step", "0.5")
    assert explorer.page.evaluate("document.querySelector('.terms [data-term]') === window.kept"), "drawn anew"


def test_keys_alone(explorer: ExplorerPage) -> None:
    explorer.stage(4)
    choose(explorer, "scores", 0, 0, 0, 0)
    with explorer.repaint():
        explorer.page.keyboard.press("ArrowDown")
    expect(title(explorer)).to_have_text("[0, 0, 1, 0]")
    for _ in range(4):
        explorer.page.keyboard.press("Tab")
        if explorer.page.evaluate("() => Boolean(document.activeElement.closest('[data-inspector]'))"):
            break
    explorer.page.keyboard.press("F2")
    explorer.settle()  # each matrix on the way was asked about, and an answer writes the terms anew
    for _ in range(6):
        explorer.page.keyboard.press("Tab")
        if explorer.page.evaluate("() => document.activeElement.matches('.terms [data-term]')"):
            break
    else:
        pytest.fail("Tab does not reach the terms")
    with explorer.repaint():
        explorer.page.keyboard.press("Enter")
    assert explorer.page.evaluate("() => Boolean(document.activeElement.closest('[data-inspector]'))"), "focus was lost"
    with explorer.repaint():
        explorer.page.keyboard.press("Escape")
    expect(card(explorer)).to_be_hidden()
    assert lit(explorer) == [] and "cell=" not in explorer.page.url


def test_escape_takes_back_a_text_before_it_closes(explorer: ExplorerPage) -> None:
    choose(explorer, "resid_pre", 0, 0, 1)
    explorer.type_cell("resid_pre", (0, 0, 1), "abc")
    explorer.page.keyboard.press("Escape")
    expect(explorer.cell("resid_pre", 0, 0, 1)).to_have_value("1")
    expect(card(explorer)).to_be_visible()
    explorer.page.keyboard.press("Escape")
    expect(card(explorer)).to_be_hidden()


def test_never_more_than_one_question_under_way(explorer: ExplorerPage) -> None:
    open_now = most = 0

    def began(request: object) -> None:
        nonlocal open_now, most
        open_now += "component_server" in request.url  # type: ignore[attr-defined]
        most = max(most, open_now)

    def ended(request: object) -> None:
        nonlocal open_now
        open_now -= "component_server" in request.url  # type: ignore[attr-defined]

    explorer.page.on("request", began)
    explorer.page.on("requestfinished", ended)
    explorer.stage(2)
    choose(explorer, "q", 0, 0, 0, 0)
    for key in ["ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp"] * 6:
        explorer.page.keyboard.press(key)
    explorer.settle()
    assert most == 1
    expect(title(explorer)).to_have_text("[0, 0, 0, 0]")


def test_a_heatmap_is_inspected_and_edited_by_index(open_explorer: Callable[..., ExplorerPage]) -> None:
    explorer = open_explorer("?v=1&T=24&d=192&h=2&w=random&stage=1")
    heat = explorer.page.locator('[data-panel="resid_pre"] canvas.heat')
    heat.scroll_into_view_if_needed()
    with explorer.repaint():
        heat.click(position={"x": 30, "y": 20})
    expect(card(explorer)).to_be_visible()
    with explorer.repaint():
        explorer.page.keyboard.press("ArrowRight")
    first = title(explorer).inner_text()
    with explorer.repaint():
        explorer.page.keyboard.press("ArrowRight")
    assert title(explorer).inner_text() != first
    with explorer.repaint():
        card(explorer).locator('[name="cell-1"]').fill("3")
    with explorer.repaint():
        card(explorer).locator('[name="cell-2"]').fill("100")
    expect(title(explorer)).to_have_text("[0, 3, 100]")
    card(explorer).locator('[name="cell-1"]').fill("99")
    assert "Type a whole number from 0 to 23" in explorer.expect_error("cell")
    with explorer.repaint():
        card(explorer).locator('[name="cell-1"]').fill("4")
    card(explorer).locator('[name="cell-value"]').fill("lots")
    explorer.page.keyboard.press("Enter")
    assert "is not a number" in explorer.expect_error("cell")
    card(explorer).locator('[name="cell-value"]').fill("7.5")
    with explorer.repaint():
        explorer.page.keyboard.press("Enter")
    expect(explorer.page.locator("[data-edit]")).to_contain_text("[0, 4, 100]")
    expect(force(explorer)).to_contain_text("7.5, set by hand")
    moved = explorer.page.locator(".thumb-box.moved")
    assert moved.count() > 5, "everything downstream is marked"
    with explorer.repaint():
        explorer.page.locator('[data-compare="change"]').click()
    with explorer.repaint():
        explorer.page.locator('[data-edit] input[type="checkbox"]').uncheck()
    assert moved.count() == 0
    with explorer.repaint():
        explorer.page.locator("h1").click()
        explorer.page.keyboard.press("ControlOrMeta+z")
    assert moved.count() > 5
    with explorer.repaint():
        explorer.page.keyboard.press("ControlOrMeta+z")
    expect(explorer.page.locator("[data-edit]")).to_have_count(0)
    with explorer.repaint():
        explorer.page.keyboard.press("ControlOrMeta+Shift+z")
    expect(explorer.page.locator("[data-edit]")).to_have_count(1)


def test_no_number_is_written_to_a_cell_that_the_fields_do_not_name(explorer: ExplorerPage) -> None:
    choose(explorer, "resid_pre", 0, 0, 0)
    card(explorer).locator('[data-act="set-form"]').click()
    token, value = card(explorer).locator('[name="cell-1"]'), card(explorer).locator('[name="cell-value"]')
    token.fill("9")
    value.fill("4")
    explorer.page.keyboard.press("Enter")
    assert "9 does not exist here" in explorer.expect_error("cell")
    explorer.settle()
    expect(token).to_have_value("9")
    expect(token).to_be_focused()
    expect(value).to_have_value("4")
    expect(explorer.page.locator("[data-edit]")).to_have_count(0)
    with explorer.repaint():
        token.fill("1")
    value.fill("4")
    with explorer.repaint():
        explorer.page.keyboard.press("Enter")
    expect(explorer.page.locator("[data-edit]")).to_contain_text("[0, 1, 0] = 4")


def test_nothing_moves_when_the_inspector_opens(open_explorer: Callable[..., ExplorerPage]) -> None:
    explorer = open_explorer(CAPSTONE + "&stage=5")
    before = explorer.page.evaluate(PLACES, CELLS)
    for q, index in [("probs", (0, 0, 2, 1)), ("v", (0, 1, 3, 2)), ("heads", (0, 2, 4, 0))]:
        choose(explorer, q, *index)
        assert explorer.page.evaluate(PLACES, CELLS) == before


def test_the_chosen_cell_is_never_behind_the_card(open_explorer: Callable[..., ExplorerPage]) -> None:
    for width, height in [(1280, 720), (390, 844)]:
        explorer = open_explorer(CAPSTONE + "&stage=5&cell=probs@0.2.4.1", width=width, height=height)
        explorer.settle()
        cell = explorer.page.locator('[data-lit="chosen"]').bounding_box()
        over = card(explorer).bounding_box()
        assert cell and over and cell["y"] + cell["height"] <= over["y"]
        assert over["y"] + over["height"] <= height + 1 and over["y"] > height * 0.3


def test_closed_from_within_it_leaves_a_cell_that_keys_do_not_change(explorer: ExplorerPage) -> None:
    choose(explorer, "resid_pre", 0, 0, 0)
    explorer.page.keyboard.press("F2")
    with explorer.repaint():
        explorer.page.keyboard.press("Escape")
    expect(explorer.cell("resid_pre", 0, 0, 0)).to_be_focused()
    with explorer.repaint():
        explorer.page.keyboard.press("4")
    expect(explorer.page.locator('button[data-stage="4"]')).to_have_attribute("aria-current", "step")
    expect(explorer.page.locator("[data-edit]")).to_have_count(0)
