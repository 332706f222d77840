"""The bridge on the page: six checks that run on the block that is shown, and what becomes of them when it changes."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect

from explorer import RunSpec
from explorer.link import encode
from tests.browser.explorer_page import ExplorerPage
from tests.browser.test_accessibility import violations

Open = Callable[..., ExplorerPage]
MOE = RunSpec(B=2, T=5, d_model=8, h=4, h_kv=2, experts=3, weights="random", dtype="bfloat16")


def opened(explorer: ExplorerPage) -> Locator:
    box = explorer.page.locator("[data-bridge='']")
    box.locator("> summary").click()
    box.scroll_into_view_if_needed()
    expect(box.locator("[data-bridge-row]")).to_have_count(6)
    return box


def run_all(box: Locator, word: str = "✓ The check holds.") -> None:
    box.locator("[data-bridge=all]").click()
    for n in range(1, 7):
        expect(box.locator(f"[data-bridge-verdict='{n}']")).to_have_text(word, timeout=60_000)


def test_all_six_hold_and_a_change_makes_them_old(open_explorer: Open) -> None:
    explorer = open_explorer()
    page, box = explorer.page, opened(explorer)
    expect(box.locator("[data-point]")).to_have_count(0)
    run_all(box)
    expect(box.locator("[data-bridge=sum]")).to_have_text("6 of 6 checks run; 6 hold.")
    marks = box.locator("[data-point] .bridge-mark").all_inner_texts()
    assert len(marks) >= 25 and set(marks) == {"✓ holds"}
    expect(box.locator("[data-point=repeat_one] .bridge-nearest")).to_have_text("nearest case")
    expect(box.locator("[data-bridge-row='2'] [data-point=shape]")).to_contain_text("1×2×2")

    with explorer.repaint():
        explorer.type_cell("resid_pre", (0, 0, 1), "2")
    expect(box.locator("[data-bridge-row].stale")).to_have_count(6)
    expect(box.locator("[data-bridge-verdict='3']")).to_have_text(re.compile("before the run changed"))
    expect(box.locator("[data-bridge=sum]")).to_have_text("")
    box.locator("[data-bridge-run='3']").click()
    expect(box.locator("[data-bridge-verdict='3']")).to_have_text("✓ The check holds.")
    expect(box.locator("[data-bridge-row].stale")).to_have_count(5)
    with explorer.repaint():
        page.keyboard.press("Control+z")
    expect(box.locator("[data-bridge-row].stale")).to_have_count(1)  # what was found for this state is true again


def test_by_keys_and_out_of_the_way_when_presenting(open_explorer: Open) -> None:
    explorer = open_explorer(f"?{encode(MOE)}")
    page, box = explorer.page, opened(explorer)
    button = box.locator("[data-bridge-run='5']")
    button.focus()
    page.keyboard.press("Enter")
    expect(box.locator("[data-bridge-verdict='5']")).to_have_text("✓ The check holds.")
    expect(button).to_be_focused()
    expect(button).to_have_text("Run it again")
    expect(box.locator("[data-point=run_moe]")).to_contain_text("2×5×8")
    expect(box.locator("[data-point=copies]")).to_have_count(2)
    box.locator("[data-bridge-row='5'] summary").click()
    expect(box.locator("[data-bridge-row='5'] pre").first).to_contain_text("self.taps")
    with explorer.repaint():
        page.keyboard.press("p")
    expect(box).to_be_hidden()
    with explorer.repaint():
        page.keyboard.press("Escape")
    expect(box).to_be_visible()


def test_what_is_too_much_is_said_beside_the_row(open_explorer: Open) -> None:
    explorer = open_explorer(f"?{encode(RunSpec(T=600, d_model=512, h=8, weights='random', attention='flash'))}")
    box = opened(explorer)
    box.locator("[data-bridge-run='4']").click()
    expect(explorer.error("bridge.4")).to_contain_text("Choose a smaller T, P, B or d_model.")
    expect(box.locator("[data-bridge-verdict='4']")).to_have_text("")


def test_in_chinese_and_small(open_explorer: Open) -> None:
    explorer = open_explorer("?lang=zh", width=390, height=844)
    box = opened(explorer)
    run_all(box, "✓ 检查成立。")
    expect(box.locator("[data-bridge=sum]")).to_have_text("6 项检查运行了 6 项，成立 6 项。")
    assert explorer.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_grave_for_who_does_not_see_it(open_explorer: Open, theme: str) -> None:
    explorer = open_explorer(f"?__theme={theme}")
    box = opened(explorer)
    for n in (2, 4):
        box.locator(f"[data-bridge-run='{n}']").click()
        expect(box.locator(f"[data-bridge-verdict='{n}']")).to_have_text("✓ The check holds.")
    box.locator("[data-bridge-row='4'] summary").click()
    assert not violations(explorer)
    with explorer.repaint():
        explorer.type_cell("resid_pre", (0, 0, 1), "2")
    expect(box.locator("[data-bridge-row].stale")).to_have_count(2)
    box.scroll_into_view_if_needed()
    assert not violations(explorer)
