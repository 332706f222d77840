"""The Studio in two tabs of one browser: what either has done stays done."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.explorer_page import ExplorerPage
from tests.browser.test_studio import answer_first, opened


def test_two_tabs_keep_what_each_has_done(explorer: ExplorerPage) -> None:
    other = ExplorerPage(explorer.page.context.new_page())
    other.open(explorer.page.url)
    boxes = [opened(explorer), opened(other)]
    expect(boxes[1].locator("[data-exercise]")).to_have_count(8)
    answer_first(boxes[0])
    for box in boxes:
        expect(box.locator("[data-studio=count]")).to_have_text("1/8 done")
    boxes[1].locator("[data-exercise=shapes]").click()
    expect(boxes[1].locator("h3")).to_contain_text("ledger")
    boxes[1].locator("[data-answer='0']").fill("1")
    boxes[1].locator("button[type=submit]").click()
    expect(boxes[1].locator(".studio-mark.wrong").first).to_be_visible()
    kept = "JSON.parse(localStorage.getItem('explorer.studio'))"
    assert list(explorer.page.evaluate(f"{kept}.done")) == ["where"]
    stale = {"tries": {"order": 1}, "done": {"order": {"at": 1, "right": True}}}
    explorer.page.evaluate("kept => localStorage.setItem('explorer.studio', JSON.stringify(kept))", stale)
    boxes[0].locator("[data-exercise=shapes]").click()  # a tab writes over what it has not heard of
    expect(boxes[0].locator("h3")).to_contain_text("ledger")
    assert set(explorer.page.evaluate(f"{kept}.done")) == {"where", "order"}
