"""The Studio on the page: all eight exercises by keys alone, and what this browser remembers of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from explorer.stages import STAGES
from explorer.studio.exercise import shuffled
from explorer.studio.mixing import KINDS, kind
from explorer.studio.mixing import _mixed as mixed
from explorer.studio.offset import REASONS
from explorer.studio.where import CLAIMS
from tests.browser.explorer_page import ExplorerPage
from tests.browser.test_accessibility import violations

Open = Callable[..., ExplorerPage]
NAMES = ("where", "order", "shapes", "toy_by_hand", "offset", "mixing", "aloud", "reading_code")
DECODE = ("1", "5", "1x3x1x5", "1x3x5x4")


def opened(explorer: ExplorerPage) -> Locator:
    box = explorer.page.locator("[data-studio='']")
    box.locator("> summary").focus()
    explorer.page.keyboard.press("Enter")
    expect(box.locator(".studio-sheet")).to_be_visible()
    return box


def tab_to(page: Page, selector: str, presses: int = 60) -> None:
    """Press Tab until the focus is on something that matches."""
    for _ in range(presses):
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
        page.keyboard.press("Tab")
    pytest.fail(f"{presses} presses of Tab do not reach {selector}")


def onward(page: Page, box: Locator, n: int) -> None:
    """The exercise is done; to the next by its button, whose task then has the focus."""
    expect(box.locator(".studio-verdict")).to_have_class("studio-verdict done")
    expect(box.locator("[data-studio=count]")).to_have_text(f"{n + 1}/8 done")
    if n < 7:
        tab_to(page, "[data-studio=next]")
        page.keyboard.press("Enter")
        expect(box.locator(f"[data-exercise={NAMES[n + 1]}]")).to_have_attribute("aria-current", "step")
        expect(box.locator("h3")).to_be_focused()
        expect(box.locator("h3")).to_be_in_viewport()


def type_into(page: Page, names: list[str], texts: list[str]) -> None:
    for name, text in zip(names, texts, strict=True):
        tab_to(page, f"[data-studio=''] [data-answer='{name}']")
        page.keyboard.press("ControlOrMeta+a")
        page.keyboard.type(text)
    page.keyboard.press("Enter")


def choose(page: Page, steps: int, selector: str) -> None:
    """The option so many places after the first of a group of radio buttons."""
    tab_to(page, selector)
    page.keyboard.press("Space")
    for _ in range(steps):
        page.keyboard.press("ArrowDown")


def put_in_order(page: Page, box: Locator) -> None:
    items = box.locator(".studio-item").all_inner_texts()
    ids = box.locator(".studio-item").evaluate_all("nodes => nodes.map(node => node.dataset.item)")
    for place, stage in enumerate(STAGES):
        at = items.index(stage.title)
        page.locator(f"[data-item='{ids[at]}']").focus()
        for _ in range(at - place):
            page.keyboard.press("ArrowUp")
        items.insert(place, items.pop(at))
        ids.insert(place, ids.pop(at))
    tab_to(page, "[data-studio=''] button[type=submit]")
    page.keyboard.press("Enter")


def test_all_eight_by_keys_and_what_is_remembered(open_explorer: Open) -> None:
    explorer = open_explorer()
    page, before = explorer.page, explorer.texts()
    box = opened(explorer)
    assert box.locator("[data-exercise]:disabled").count() == 7, "memory is asked first"

    choose(page, shuffled(CLAIMS, 0, "where").index("queries_keys"), "[data-studio=''] [data-answer='0']")
    expect(page.locator(".mbx.recalling")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(box.locator(".studio-mark.right")).to_have_text("✓ right")
    expect(page.locator(".mbx.recalling")).to_have_count(0)
    onward(page, box, 0)

    page.keyboard.press("Tab")
    put_in_order(page, box)
    onward(page, box, 1)

    type_into(page, list("012345"), ["2x5x3x4", "[2,3,5,4]", "2 3 5 5", "5×5", "2*5*12", "2,5,12"])
    expect(box.locator(".studio-mark.wrong")).to_have_text("✗ not yet")
    expect(box.locator(".studio-hint:not(:empty)")).to_contain_text("changed places")
    box.locator("[data-answer='0']").focus()
    type_into(page, ["0"], ["2x3x5x4"])
    onward(page, box, 2)

    type_into(page, list("01234567"), ["1", "2/2", "1,0", "0", "2", "√4", "2", "−1"])
    onward(page, box, 3)

    choose(page, shuffled(REASONS, 0, "offset").index("offset"), "[data-studio=''] [data-answer='0']")
    page.keyboard.press("Enter")
    expect(box.locator("[data-answer='position-0']")).to_be_focused()
    type_into(page, ["position-0", "position-1", "position-2"], ["7", "2", "30"])
    scores = box.locator(".studio-scores tbody tr")
    expect(scores).to_have_count(3)
    plain, both, one = (scores.nth(n).locator("td").all_inner_texts() for n in range(3))
    assert plain[2:] == both[2:] and plain[3] != one[3] and plain[:2] == ["7", "2"]
    onward(page, box, 4)

    for n, name in enumerate(mixed(0)):
        choose(page, KINDS.index(kind(name)), f"[data-kind='{n}-0']")
    tab_to(page, "[data-prove='7']")
    page.keyboard.press("Enter")
    expect(box.locator(".studio-proof")).not_to_have_count(0)
    expect(box.locator("[data-studio=count]")).to_have_text("5/8 done")
    tab_to(page, "[data-studio=''] button[type=submit]")
    page.keyboard.press("Enter")
    onward(page, box, 5)

    tab_to(page, "[data-studio=start]")
    page.keyboard.press("Enter")
    expect(box.locator("[data-told='0']")).to_be_focused()
    assert not box.locator("dd").count(), "inputs and outputs come afterwards"
    page.keyboard.press("Space")
    page.keyboard.press("Shift+Tab")
    expect(box.locator("[data-studio=stop]")).to_be_focused()
    page.keyboard.press("Enter")
    expect(box.locator("dd")).to_have_count(16)
    expect(box.locator("[data-told='0']")).to_be_focused()
    for n in range(8):
        tab_to(page, f"[data-told='{n}']")
        page.keyboard.press("Space")
    tab_to(page, "[data-studio=named]")
    page.keyboard.press("Enter")
    onward(page, box, 6)

    for n, start in enumerate(("T,", "d_m", "d_h", "d_m", "d_m", "V,")):
        tab_to(page, f"[data-answer='axis-{n}']")
        page.keyboard.type(start)
    type_into(page, [f"decode-{n}" for n in range(4)], list(DECODE))
    onward(page, box, 7)
    expect(box.locator(".studio-finish")).to_contain_text("All eight are done, 7 of them at the first try.")
    assert explorer.texts() == before, "no exercise changes a number of the page"
    expect(page.locator("[data-stage='1']")).to_have_attribute("aria-current", "step")

    page.reload()
    page.wait_for_selector("[data-ready=true]")
    box.scroll_into_view_if_needed()
    expect(box.locator("[data-studio=count]")).to_have_text("8/8 done")
    label = box.locator("[data-exercise=shapes]").get_attribute("aria-label")
    assert label == "Exercise 2: The shape ledger (done at try 2)"
    box.locator("[data-exercise=where]").click()
    expect(box.locator(".studio-mark.right")).to_be_visible()  # shown again, not asked again
    assert box.locator("[data-answer]:enabled").count() == 0

    box.locator("[data-studio=over]").click()
    expect(box.locator("[data-studio=count]")).to_have_text("8/8 done")
    box.locator("[data-studio=over]").click()
    expect(box.locator("[data-studio=count]")).to_have_text("0/8 done")
    assert box.locator("[data-exercise]:disabled").count() == 7
    page.reload()
    page.wait_for_selector("[data-ready=true]")
    box.scroll_into_view_if_needed()
    expect(box.locator("[data-studio=count]")).to_have_text("0/8 done")


def answer_first(box: Locator) -> None:
    box.locator("[data-answer='0']").press("Space")  # figures that come into sight would move a click's goal
    expect(box.locator("[data-answer='0']")).to_be_checked()
    box.locator("button[type=submit]").press("Enter")
    expect(box.locator(".studio-why")).to_be_visible()


def test_a_line_can_be_dragged(explorer: ExplorerPage) -> None:
    box = opened(explorer)
    answer_first(box)
    box.locator("[data-exercise=order]").click()
    lines = box.locator(".studio-order li")
    expect(lines).to_have_count(8)
    first, second = box.locator(".studio-item").all_inner_texts()[:2]
    lines.nth(0).drag_to(lines.nth(3), target_position={"x": 100, "y": 30})
    expect(box.locator(".studio-item").first).to_have_text(second)
    expect(box.locator(".studio-item").nth(3)).to_have_text(first)


def test_a_wrong_recollection_is_explained_and_its_place_shown(explorer: ExplorerPage) -> None:
    box = opened(explorer)
    wrong = shuffled(CLAIMS, 0, "where").index("with_values")
    box.locator(f"[data-answer='{wrong}']").press("Space")
    box.locator("button[type=submit]").click()
    expect(box.locator(".studio-mark.wrong")).to_have_text("✗ not this one")
    expect(box.locator(".studio-mark.right")).to_have_text("✓ this is it")
    expect(box.locator(".studio-why")).to_contain_text("at stage 4")
    with explorer.repaint():
        box.locator("[data-studio=look]").click()
    expect(explorer.page.locator("[data-stage='3']")).to_have_attribute("aria-current", "step")
    expect(explorer.page.locator("h1")).to_be_in_viewport()


def test_show_me_where_is_an_ordinary_undoable_step(open_explorer: Open) -> None:
    explorer = open_explorer("?v=1&T=4&d=8&h=2&w=random&stage=2")
    box, page = opened(explorer), explorer.page
    answer_first(box)
    box.locator("[data-exercise=toy_by_hand]").click()
    with explorer.repaint():
        box.locator("[data-studio='look-7']").click()
    expect(page.locator("[data-stage='7']")).to_have_attribute("aria-current", "step")
    assert explorer.array("resid_mid").shape == (1, 2, 2)
    with explorer.repaint():
        page.locator("[data-act=undo]").click()
    assert explorer.array("resid_mid").shape == (1, 4, 8)


def test_another_case_and_what_was_typed_stay_through_a_change_of_language(explorer: ExplorerPage) -> None:
    box, page = opened(explorer), explorer.page
    answer_first(box)
    box.locator("[data-exercise=shapes]").click()
    given = box.locator(".studio-given").inner_text()
    assert given == "B = 2, T = 5, dmodel = 12, h = 3"
    box.locator("[data-studio=another]").click()
    expect(box.locator(".studio-given")).not_to_have_text(given)
    box.locator("[data-answer='2']").fill("1x2x3")
    with explorer.repaint():
        page.locator("[data-act=language]").click()
    expect(page.locator("[data-act=language]")).to_have_text("EN")
    box.scroll_into_view_if_needed()
    expect(box.locator("h3")).to_have_text("形状表")
    expect(box.locator("[data-answer='2']")).to_have_value("1x2x3")
    box.locator("button[type=submit]").click()
    expect(box.locator(".studio-hint:not(:empty)").first).to_contain_text("轴")
    expect(box.locator("[data-studio=count]")).to_have_text("完成 1/8")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_exercise_is_accessible_and_fits(open_explorer: Open, lang: str) -> None:
    for width, theme in ((1280, "light"), (390, "dark")):
        explorer = open_explorer(f"?lang={lang}&__theme={theme}", width=width, height=844)
        box, page = opened(explorer), explorer.page
        answer_first(box)
        troubles = []
        for name in NAMES:
            box.locator(f"[data-exercise={name}]").click()
            expect(box.locator(f"[data-exercise={name}]")).to_have_attribute("aria-current", "step")
            page.wait_for_timeout(300)
            troubles += [f"{name}: {trouble}" for trouble in violations(explorer, ".studio")]
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        assert not troubles, "\n".join(dict.fromkeys(troubles))


def test_from_the_bar_and_not_in_present_mode(explorer: ExplorerPage) -> None:
    page, box = explorer.page, explorer.page.locator("[data-studio='']")
    page.locator("[data-act=studio]").click()
    expect(box.locator(".studio-sheet")).to_be_visible()
    expect(box.locator("> summary")).to_be_in_viewport()
    page.keyboard.press("3")
    page.wait_for_timeout(300)
    expect(page.locator("[data-stage='1']")).to_have_attribute("aria-current", "step")
    page.locator("[data-act=present]").click()
    expect(box).to_be_hidden()


def test_a_phone_has_its_way_there_below_the_stage(open_explorer: Open) -> None:
    page = open_explorer(width=390, height=844).page
    page.locator("[data-act=to-studio]").click()
    expect(page.locator("[data-studio=''] > summary")).to_be_in_viewport()
    expect(page.locator("[data-studio=''] h3")).to_be_visible()


def test_memory_that_holds_nonsense_is_no_hindrance(explorer: ExplorerPage) -> None:
    for nonsense in ("[", "7", '{"done": {"where": 3, "order": null}, "tries": [1], "seeds": "x", "current": 5}',
                     '{"done": {"where": {"at": 1, "right": true, "answer": "x"}}, "current": "cooking"}'):  # fmt: skip
        explorer.page.evaluate("text => localStorage.setItem('explorer.studio', text)", nonsense)
        explorer.page.reload()
        explorer.page.wait_for_selector("[data-ready=true]")
        box = explorer.page.locator("[data-studio='']")
        if box.get_attribute("open") is None:
            box.locator("> summary").click()
        box.scroll_into_view_if_needed()
        expect(box.locator("[data-exercise]")).to_have_count(8)
