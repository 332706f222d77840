"""Questions on the page: asked about the run that is shown, marked at once, and the number in question is covered."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

from explorer import Edit, RunSpec, run
from explorer.link import encode
from explorer.ui.words import words
from tests.browser.explorer_page import ExplorerPage, number
from tests.browser.server import Server

Open = Callable[..., ExplorerPage]
SPEC = RunSpec(B=1, T=2, d_model=4, h=2, d_ff=4, weights="random", seed=2)
CELL = ("resid_mid", (0, 0, 0))

PLACES = (
    "marked => marked.map(one => [one.closest('[data-question]').dataset.question, one.dataset.answer, one.className])"
)
WAITING = re.compile(r"\bwaiting\b")  # while other questions are on their way


def opened(explorer: ExplorerPage) -> Locator:
    box = explorer.page.locator("[data-quiz='']")
    box.locator("> summary").click()
    expect(box.locator("[data-question]").first).to_be_visible()
    return box


def answers(question: Locator) -> list[str]:
    return question.locator(".answer").all_inner_texts()


def test_the_right_answers_are_those_of_the_run_and_first_tries_count(open_explorer: Open) -> None:
    explorer = open_explorer(f"?{encode(SPEC)}&stage=7")
    box = opened(explorer)
    assert box.locator("[data-question=stage]").count() == 0, "the page itself would say it"

    shape = box.locator("[data-question=shape]")
    right = answers(shape).index("×".join(map(str, run(SPEC).shape("resid_mid"))))
    wrong = (right + 1) % 4
    shape.locator(".answer").nth(wrong).click()
    expect(shape.locator(".verdict")).to_have_text("Not this one. Try again.")
    expect(shape.locator(".why")).to_be_hidden()
    shape.locator(".answer").nth(right).click()
    expect(shape.locator(".verdict")).to_have_text("Right.")
    expect(shape.locator(".why")).to_be_visible()

    value = box.locator("[data-question=value]")
    covered = explorer.page.locator(".covered")
    expect(covered).to_have_count(1)
    assert covered.get_attribute("data-q") == "resid_mid"
    cell = tuple(map(int, str(covered.get_attribute("data-i")).split(",")))
    true = run(SPEC).value("resid_mid", cell)
    gaps = [abs(number(text) - true) for text in answers(value)]
    value.locator(".answer").nth(gaps.index(min(gaps))).click()
    assert min(gaps) < 1e-3 * max(1, abs(true))
    expect(value.locator(".verdict")).to_have_text("Right.")
    expect(covered).to_have_count(0)
    expect(box.locator("[data-quiz=score]")).to_have_text("1 of 3 at the first try")


def test_an_edit_asks_anew_and_other_questions_can_be_had(open_explorer: Open) -> None:
    explorer = open_explorer(f"?{encode(SPEC)}&stage=7")
    box = opened(explorer)
    shape, value = box.locator("[data-question=shape]"), box.locator("[data-question=value]")
    shape.locator(".answer").first.click()
    tried = shape.locator(".verdict").inner_text()
    index = tuple(map(int, str(explorer.page.locator(".covered").get_attribute("data-i")).split(",")))
    with explorer.repaint():
        explorer.type_cell("resid_pre", index, "7")
    box.scroll_into_view_if_needed()  # asked anew once somebody looks
    expect(value.locator(".asks")).to_contain_text("= 7")
    expect(shape.locator(".verdict")).to_have_text(tried)  # what an edit does not touch keeps its answers
    edited = run(RunSpec(**{**SPEC.given(), "edits": (Edit("resid_pre", index, 7.0),)}))
    cell = tuple(map(int, str(explorer.page.locator(".covered").get_attribute("data-i")).split(",")))
    assert min(abs(number(text) - edited.value("resid_mid", cell)) for text in answers(value)) < 5e-3
    seen = set()
    for _ in range(4):
        seen.add(explorer.page.locator(".covered").get_attribute("data-i"))
        box.locator("[data-quiz=more]").click()
        expect(box).not_to_have_class(WAITING)
    assert len(seen) > 1


def test_closing_uncovers_and_another_stage_asks_its_own(open_explorer: Open) -> None:
    explorer = open_explorer(f"?{encode(SPEC)}&stage=7")
    box = opened(explorer)
    expect(explorer.page.locator(".covered")).to_have_count(1)
    box.locator("> summary").click()
    expect(explorer.page.locator(".covered")).to_have_count(0)
    box.locator("> summary").click()
    with explorer.repaint():
        explorer.page.locator("[data-stage='4']").first.click()
    box.scroll_into_view_if_needed()
    expect(box.locator("[data-question=seen]")).to_be_visible()


def test_only_a_number_whose_question_is_there_is_covered(open_explorer: Open) -> None:
    explorer = open_explorer(f"?{encode(SPEC)}&stage=7", height=600)
    page, box = explorer.page, opened(explorer)
    covered = page.locator(".covered")
    expect(covered).to_have_count(1)
    covered.hover()
    expect(page.locator(".tip .num")).to_have_text("= ?")  # nor does hovering tell it
    page.evaluate("scrollTo(0, 0)")
    explorer.stage(8)  # shows the same quantity; what it asks itself comes once somebody looks
    page.evaluate("scrollTo(0, 0)")
    expect(page.locator("[data-q=resid_mid]").first).to_be_visible()
    expect(covered).to_have_count(0)
    explorer.stage(7)
    expect(covered).to_have_count(1)
    with explorer.repaint():
        page.keyboard.press("p")
    expect(box).to_be_hidden()
    expect(covered).to_have_count(0)
    with explorer.repaint():
        page.keyboard.press("Escape")
    expect(covered).to_have_count(1)


def test_a_kept_answer_is_explained_by_the_run_that_is_shown(open_explorer: Open) -> None:
    explorer = open_explorer("?v=1&d=4&h=1&w=random&stage=1")
    box = opened(explorer)
    axis = box.locator("[data-question=axis]")
    axis.locator(".answer", has_text="residual stream").click()
    expect(axis.locator(".why")).to_contain_text("4 terms")
    with explorer.repaint():
        explorer.set_field("d_model", "6")
    box.scroll_into_view_if_needed()
    expect(axis.locator(".why")).to_contain_text("6 terms")
    expect(axis.locator(".verdict")).to_have_text("Right.")


def test_another_language_asks_the_same(open_explorer: Open) -> None:
    explorer = open_explorer(f"?{encode(SPEC)}&stage=7")
    box = opened(explorer)
    values = box.locator("[data-question=value]")
    first = answers(values)
    while answers(values) == first:
        box.locator("[data-quiz=more]").click()
        expect(box).not_to_have_class(WAITING)
    chosen = answers(values)
    explorer.page.locator("[data-act=language]").click()
    expect(explorer.page.locator("html")).to_have_attribute("lang", "zh-Hans")
    expect(box.locator("> summary")).to_have_text(words("zh")["quiz"])  # the page's place is taken by another
    box.scroll_into_view_if_needed()
    expect(values).to_have_count(1)
    assert answers(values) == chosen


def test_what_was_answered_stays_answered_in_another_language(open_explorer: Open) -> None:
    explorer = open_explorer(f"?{encode(SPEC)}&stage=7")
    box, marks = opened(explorer), ".answer.right, .answer.wrong"
    first = box.locator("[data-question]").first
    for n in range(4):
        if not first.locator(".right").count():
            first.locator(f"[data-answer='{n}']").click()
    last = box.locator("[data-question]").last
    last.locator(".answer").first.click()
    taken, score = box.locator(marks).evaluate_all(PLACES), box.locator("[data-quiz=score]").inner_text()
    explorer.page.locator("[data-act=language]").click()
    expect(box.locator("> summary")).to_have_text(words("zh")["quiz"])
    box.scroll_into_view_if_needed()
    expect(first.locator(".why")).to_be_visible()
    assert box.locator(marks).evaluate_all(PLACES) == taken
    counts = box.locator("[data-quiz=score]").inner_text()
    assert sorted(re.findall(r"\d+", counts)) == sorted(re.findall(r"\d+", score))
    assert first.locator(".verdict").inner_text() == words("zh")["quiz_right"]
    expect(explorer.page.locator("[data-act=language]")).to_be_focused()


def test_forced_colours_show_neither_the_covered_number_nor_borderless_answers(
    new_page: Callable[..., Page], server: Server
) -> None:
    explorer = ExplorerPage(new_page(forced_colors="active"))
    explorer.open(f"{server.url}?{encode(SPEC)}&stage=7")
    box = opened(explorer)
    covered, answer = explorer.page.locator(".covered"), box.locator(".answer").first
    assert covered.evaluate("cell => getComputedStyle(cell).color") == "rgba(0, 0, 0, 0)"
    assert answer.evaluate("button => getComputedStyle(button).borderTopWidth") == "1px"
    chosen = explorer.page.locator("[data-compare=value]").first
    assert chosen.evaluate("one => getComputedStyle(one).backgroundColor") != "rgba(0, 0, 0, 0)"
