"""The learner's walk: load, read the toy, edit, remove the edit, choose other sizes, read the ledger, type nonsense."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import numpy as np
import pytest
from playwright.sync_api import expect

from tests import toy_reference
from tests.browser.explorer_page import ExplorerPage

Open = Callable[..., ExplorerPage]
STAGES = range(1, 9)
DOWNSTREAM = [name for name in toy_reference.toy() if name != "resid_pre"]

# The page shows four significant digits: half a unit of the fourth, and float32 noise around zero.
SHOWN = {"rtol": 5.1e-4, "atol": 1e-6}


def test_each_stage_has_one_button_and_nothing_else_its_number(explorer: ExplorerPage) -> None:
    found = explorer.page.locator("[data-stage]").evaluate_all(
        "found => found.map(at => [at.tagName, at.dataset.stage])"
    )
    assert found == [["BUTTON", str(n)] for n in STAGES]


def read_walk(page: ExplorerPage, expected: Mapping[str, np.ndarray]) -> set[str]:
    """Go through the stages, compare every shown cell of a known quantity; returns the quantities seen whole."""
    seen: set[str] = set()
    for n in STAGES:
        page.stage(n)
        for q, cells in page.cells().items():
            if q not in expected:
                continue
            assert len(cells) == expected[q].size, f"stage {n} shows {len(cells)} cells of {q}"
            for index, x in cells.items():
                np.testing.assert_allclose(x, expected[q][index], err_msg=f"stage {n}: {q}{list(index)}", **SHOWN)
            seen.add(q)
    return seen


def test_toy_numbers_stage_by_stage(explorer: ExplorerPage) -> None:
    expected = toy_reference.toy()
    expected["self_attn.q_proj.weight"] = np.eye(2)
    expected["mlp.down_proj.weight"] = toy_reference.w_down().T
    seen = read_walk(explorer, expected)
    assert not set(expected) - seen, f"never shown: {sorted(set(expected) - seen)}"


def test_course_numbers_as_printed(explorer: ExplorerPage) -> None:
    root2 = 1.41421
    printed = {
        (3, "k_rot"): [[1, 1], [1, 1]],
        (4, "masked_scores"): [[root2, -np.inf], [root2, root2]],
        (5, "probs"): [[1, 0], [0.5, 0.5]],
        (6, "attn_out"): [[1, 1], [1, 0]],
        (7, "resid_mid"): [[2, 2], [2, -1]],
        (8, "ffn_out"): [[0.1, -0.2], [0.3, 0.1]],
        (8, "resid_post"): [[2.1, 1.8], [2.3, -0.9]],
    }
    for (stage, q), rows in printed.items():
        explorer.stage(stage)
        np.testing.assert_allclose(explorer.array(q).reshape(2, 2), rows, err_msg=q, **SHOWN)


def test_typed_number_reaches_every_downstream_cell(explorer: ExplorerPage) -> None:
    explorer.stage(1)
    with explorer.repaint():
        explorer.type_cell("resid_pre", (0, 0, 1), "2")
    explorer.expect_no_errors()
    expected = toy_reference.toy(np.array([[1.0, 2.0], [1.0, -1.0]]))
    seen = read_walk(explorer, expected)
    assert set(DOWNSTREAM) <= seen, f"never shown: {sorted(set(DOWNSTREAM) - seen)}"


def test_edited_probability_flows_on_and_can_be_removed(explorer: ExplorerPage) -> None:
    explorer.stage(5)
    before = explorer.texts()
    with explorer.repaint():
        explorer.type_cell("probs", (0, 0, 1, 0), "0.9")
    expect(explorer.page.locator("[data-edit]")).to_have_count(1)
    read_walk(explorer, toy_reference.toy(put={"probs": {(0, 0, 1, 0): 0.9}}))
    with explorer.repaint():
        explorer.page.locator('[data-remove="0"]').click()
    expect(explorer.page.locator("[data-edit]")).to_have_count(0)
    read_walk(explorer, toy_reference.toy())
    explorer.stage(5)
    assert explorer.texts() == before


def sizes(row: str) -> list[str]:
    return re.findall(r"\d+(?:\s*[×x]\s*\d+)+", row)


def test_capstone_sizes_and_ledger(explorer: ExplorerPage) -> None:
    for field, size in {"B": 2, "T": 5, "d_model": 12, "h": 3}.items():
        explorer.set_field(field, str(size))
        explorer.settle()
    explorer.expect_no_errors()
    ledger = {q: [re.sub(r"\s", "", size) for size in sizes(text)] for q, text in explorer.ledger().items()}
    assert "2×3×5×4" in ledger["q"]
    assert "2×3×5×5" in ledger["scores"]
    assert "2×3×5×5" in ledger["probs"]
    for q in ("resid_pre", "concat", "attn_out", "resid_mid", "ffn_out", "resid_post"):
        assert "2×5×12" in ledger[q], f"{q}: {ledger[q]}"


@pytest.mark.parametrize("preset", ["capstone", "gqa", "minimind3", "toy"])
def test_presets_walk_without_trouble(explorer: ExplorerPage, preset: str) -> None:
    button = explorer.page.locator(f'[data-preset="{preset}"]')
    with explorer.repaint():
        button.click()
    explorer.expect_no_errors()
    for n in STAGES:
        explorer.stage(n)
    assert explorer.ledger().keys() >= set(DOWNSTREAM)


NONSENSE_CELLS = ["abc", "", "NaN", "1e400", "--1", "1,2,3"]
NONSENSE_FIELDS = [
    ("T", "two"),
    ("T", ""),
    ("T", "NaN"),
    ("T", "1e400"),
    ("T", "0"),
    ("T", "-3"),
    ("T", "2.5"),
    ("T", "1000000"),
    ("B", "99999999999999999999"),
    ("h", "5"),  # does not divide d_model = 2
    ("d_model", "<b>2</b>"),
    ("angle_step", "inf"),
    ("seed", "-1e999"),
]


@pytest.mark.parametrize("text", NONSENSE_CELLS)
def test_nonsense_in_a_cell(explorer: ExplorerPage, text: str) -> None:
    explorer.stage(1)
    before = explorer.texts()
    cell = explorer.cell("resid_pre", 0, 0, 1)
    cell.fill(text)
    expect(cell).to_have_attribute("aria-invalid", "true")
    explorer.page.wait_for_timeout(400)
    messages = [said for said in explorer.page.locator("[data-error-for]").all_inner_texts() if said.strip()]
    assert messages, "no message beside the cell"
    after = explorer.texts()
    assert after.pop(("resid_pre", (0, 0, 1))) == text, "what was typed is lost"
    before.pop(("resid_pre", (0, 0, 1)))
    assert after == before, "the last good picture is gone"

    with explorer.repaint():
        cell.fill("2")
    explorer.expect_no_errors()
    expect(cell).not_to_have_attribute("aria-invalid", "true")
    shown = explorer.array("attn_norm")
    np.testing.assert_allclose(shown, toy_reference.toy(np.array([[1.0, 2.0], [1.0, -1.0]]))["attn_norm"], **SHOWN)


@pytest.mark.parametrize(("name", "text"), NONSENSE_FIELDS)
def test_nonsense_in_a_field(explorer: ExplorerPage, name: str, text: str) -> None:
    explorer.stage(4)
    before, good = explorer.texts(), explorer.field(name).input_value()
    explorer.set_field(name, text)
    message = explorer.expect_error(name)
    assert len(message) > 10, message
    assert explorer.field(name).input_value() == text, "what was typed is lost"
    explorer.page.wait_for_timeout(400)
    assert explorer.texts() == before, "the last good picture is gone"

    explorer.set_field(name, good)
    expect(explorer.error(name)).to_be_empty()
    explorer.settle()
    assert explorer.texts() == before


def test_two_bad_fields_keep_both_texts_and_both_messages(explorer: ExplorerPage) -> None:
    before = explorer.texts()
    explorer.set_field("h", "5")
    explorer.set_field("T", "nine")
    for name, text in {"h": "5", "T": "nine"}.items():
        explorer.expect_error(name)
        assert explorer.field(name).input_value() == text
    assert explorer.texts() == before
