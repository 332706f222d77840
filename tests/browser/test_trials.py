"""The two calculations to try: LayerNorm beside RMSNorm, and the softmax of any row."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.explorer_page import ExplorerPage


def test_both_norms_on_the_same_row(explorer: ExplorerPage) -> None:
    trial = explorer.page.locator('[data-trial-of="norms"]')
    trial.scroll_into_view_if_needed()
    cells = trial.locator("td")
    expect(cells).to_have_text(["1", "1", "1", "1", "0", "0"])
    trial.locator('[data-norm-token="1"]').click()
    expect(cells).to_have_text(["1", "\u22121", "1", "\u22121", "1", "\u22121"])
    trial.locator('[data-trial="norms.beta"]').fill("0.5")
    expect(cells).to_have_text(["1", "\u22121", "1", "\u22121", "1.5", "\u22120.5"])
    trial.locator('[data-trial="norms.gamma"]').fill("2, 3, 4")
    expect(explorer.error("norms.gamma")).to_contain_text("3 numbers")
    trial.locator('[data-trial="norms.gamma"]').fill("2")
    expect(explorer.error("norms.gamma")).to_be_empty()
    expect(cells).to_have_text(["1", "\u22121", "2", "\u22122", "2.5", "\u22121.5"])
    expect(trial.locator("svg.main-svg").first).to_be_visible()
    explorer.stage(2)
    expect(trial).to_be_hidden()


def test_softmax_of_a_free_row(explorer: ExplorerPage) -> None:
    explorer.stage(5)
    trial = explorer.page.locator('[data-trial-of="softmax"]')
    trial.scroll_into_view_if_needed()
    rounded = trial.locator("tr").nth(3).locator("td")
    expect(rounded).to_have_text(["0.323", "0.481", "0.196", "0.000", "1.000"])
    expect(trial).to_contain_text("it prints the second share as 0.482")
    row = trial.locator('[data-trial="softmax.row"]')
    row.fill("1, two")
    expect(explorer.error("softmax.row")).to_contain_text("'two' is not a number")
    expect(rounded).to_have_text(["0.323", "0.481", "0.196", "0.000", "1.000"])
    assert row.input_value() == "1, two"
    row.fill("0 0")
    expect(explorer.error("softmax.row")).to_be_empty()
    expect(rounded).to_have_text(["0.500", "0.500", "1.000"])
    expect(trial).not_to_contain_text("0.482")
    explorer.set_field("T", "many")
    explorer.expect_error("T")
    row.fill("0 0 0 0")  # needs no run
    expect(rounded).to_have_text(["0.250", "0.250", "0.250", "0.250", "1.000"])
