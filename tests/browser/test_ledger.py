"""The shape ledger on the page: where its names lead, and what its column of bytes adds up to."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.explorer_page import ExplorerPage


@pytest.mark.parametrize(("name", "stage"), [("rope_cos", "3"), ("rope_sin", "3"), ("resid_pre", "1")])
def test_a_name_leads_to_a_stage_that_shows_it(explorer: ExplorerPage, name: str, stage: str) -> None:
    explorer.stage(5)
    with explorer.repaint():
        explorer.page.locator(f'[data-row="{name}"] button').click()
    expect(explorer.page.locator(f'button[data-stage="{stage}"]')).to_have_attribute("aria-current", "step")
    expect(explorer.page.locator(f'[data-panel="{name}"]')).to_be_visible()


def test_memory_that_counts_once_is_in_brackets_and_said_in_words(explorer: ExplorerPage) -> None:
    texts = explorer.page.locator("[data-ledger] td.col-bytes").all_text_contents()
    sizes = [int(re.sub(r"\D", "", text)) for text in texts]
    own = sum(size for size, text in zip(sizes, texts, strict=True) if not text.startswith("("))
    assert (own, sum(sizes)) == (352, 416)
    expect(explorer.page.locator(".ledger-sum")).to_contain_text(f"{own} B")
    expect(explorer.page.locator(".ledger-shared")).to_contain_text(f"adds up to {sum(sizes)} B")


def test_rows_are_called_as_the_matrices_and_parameters_are_counted(explorer: ExplorerPage) -> None:
    row, ledger = explorer.page.locator('[data-row="q_norm"]'), explorer.page.locator(".ledger-sum")
    expect(row).to_contain_text("passed on unchanged")
    weights = 2 + 2 + 4 * 2 * 2 + 3 * 2 * 2  # two norms; q, k, v and o; gate, up and down
    expect(ledger).to_contain_text(f"{weights} parameters")
    with explorer.repaint():
        explorer.page.locator("[data-preset=minimind3]").click()
    expect(row).not_to_contain_text("unchanged")
    width, ffn, heads, kv, features = 768, 2432, 8, 4, 96
    attention = width * features * (2 * heads + 2 * kv) + 2 * features
    expect(ledger).to_contain_text(f"{attention + 3 * width * ffn + 2 * width:,} parameters")
