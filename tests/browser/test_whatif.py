"""What-ifs, the table of what each part does, the settings beyond sizes, and the course's file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Locator, expect

from explorer.effects import effects
from explorer.run import run
from explorer.spec import PRESETS, RunSpec
from tests import toy_reference
from tests.browser.explorer_page import ExplorerPage
from tests.browser.server import ROOT
from tests.browser.test_accessibility import violations

Open = Callable[..., ExplorerPage]
SHOWN = {"rtol": 5.1e-4, "atol": 1e-6}
CAPSTONE = "?v=1&B=2&T=5&d=12&h=3&w=random"


def chip(explorer: ExplorerPage, name: str) -> Locator:
    return explorer.page.locator(f'[data-switch="{name}"]')


def in_force(explorer: ExplorerPage) -> list[str]:
    return explorer.page.locator("[data-switch-on]").evaluate_all("found => found.map(at => at.dataset.switchOn)")


def undo(explorer: ExplorerPage, keys: str = "ControlOrMeta+z") -> None:
    with explorer.repaint():
        explorer.page.keyboard.press(keys)


# ------------------------------------------------------------------------------------------------------- switches


def test_a_what_if_is_the_real_block_without_that_part(explorer: ExplorerPage) -> None:
    explorer.stage(5)
    with explorer.repaint():
        chip(explorer, "no_mask").click()
    expect(chip(explorer, "no_mask")).to_have_attribute("aria-pressed", "true")
    expected = run(RunSpec(switches=("no_mask",)))["probs"]
    np.testing.assert_allclose(explorer.array("probs"), expected, **SHOWN)
    assert in_force(explorer) == ["no_mask"]
    assert "s=no_mask" in explorer.page.url or explorer.page.wait_for_url("**s=no_mask**") is None


def test_turned_off_removed_undone_and_redone(explorer: ExplorerPage) -> None:
    explorer.stage(5)
    before = explorer.texts()
    with explorer.repaint():
        chip(explorer, "no_rope").click()
    without = explorer.texts()
    assert without != before
    with explorer.repaint():
        explorer.page.locator('[data-switch-on="no_rope"] input').click()
    assert explorer.texts() == before and in_force(explorer) == ["no_rope"], "switched off, it stays in the list"
    expect(chip(explorer, "no_rope")).to_have_attribute("aria-pressed", "false")
    undo(explorer)
    assert explorer.texts() == without
    with explorer.repaint():
        explorer.page.locator('[data-remove-switch="no_rope"]').click()
    assert explorer.texts() == before and in_force(explorer) == []
    undo(explorer)
    assert explorer.texts() == without
    undo(explorer)
    assert explorer.texts() == before and in_force(explorer) == []
    undo(explorer, "ControlOrMeta+Shift+z")
    assert explorer.texts() == without


def test_undo_goes_back_through_edits_and_what_ifs_in_order(explorer: ExplorerPage) -> None:
    with explorer.repaint():
        explorer.type_cell("resid_pre", (0, 0, 1), "2")
    with explorer.repaint():
        chip(explorer, "no_scale").click()
    expect(explorer.page.locator("[data-edit]")).to_have_count(1)
    undo(explorer)
    assert in_force(explorer) == []
    expect(explorer.page.locator("[data-edit]")).to_have_count(1)
    undo(explorer)
    expect(explorer.page.locator("[data-edit]")).to_have_count(0)


def test_change_is_the_difference_from_the_run_without_it(explorer: ExplorerPage) -> None:
    explorer.stage(5)
    with explorer.repaint():
        chip(explorer, "uniform_attention").click()
    with explorer.repaint():
        explorer.page.locator('[data-compare="change"]').click()
    expected = run(RunSpec(switches=("uniform_attention",)))["heads"] - run(RunSpec())["heads"]
    shown = {index: text for (q, index), text in explorer.texts().items() if q == "heads"}
    for index, x in np.ndenumerate(expected):
        assert float(shown[index].replace("\u2212", "-").replace("±", "")) == pytest.approx(x, abs=1e-3)


def test_temperature_keeps_what_is_typed_and_says_what_is_wrong(explorer: ExplorerPage) -> None:
    explorer.stage(4)
    before = explorer.texts()
    field = explorer.page.locator('[data-switch-value="temperature"]')
    for text in ("hot", "0", "1e9"):
        field.fill(text)
        assert explorer.expect_error("temperature")
        assert field.input_value() == text and explorer.texts() == before
    with explorer.repaint():
        field.fill("0.5")
    expect(explorer.error("temperature")).to_be_empty()
    np.testing.assert_allclose(explorer.array("scores"), 2 * toy_reference.toy()["scores"], **SHOWN)
    with explorer.repaint():
        field.fill("")
    assert explorer.texts() == before and in_force(explorer) == []


@pytest.mark.parametrize("how", ["preset", "remove all", "undo"])
def test_a_refused_temperature_goes_with_the_what_ifs(explorer: ExplorerPage, how: str) -> None:
    page, field = explorer.page, explorer.page.locator('[data-switch-value="temperature"]')
    with explorer.repaint():
        field.fill("0.5")
    field.fill("hot")
    assert explorer.expect_error("temperature")
    with explorer.repaint():
        if how == "preset":
            page.locator("[data-preset=gqa]").click()
        elif how == "undo":
            page.locator("[data-act=undo]").click()
        else:
            page.locator(".edit-bar .link").last.click()
    expect(explorer.error("temperature")).to_be_empty()
    expect(field).to_have_value("")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_is_pressed_keeps_its_colours_under_the_pointer(open_explorer: Open, theme: str) -> None:
    explorer = open_explorer(f"?__theme={theme}")
    page = explorer.page
    with explorer.repaint():
        page.locator("[data-switch=no_mask]").click()
    page.locator("[data-act=studio]").click()
    expect(page.locator(".studio-step[aria-current=step]")).to_be_visible()
    for selector in ("[data-switch=no_mask]", ".studio-step[aria-current=step]"):
        button = page.locator(selector)
        page.mouse.move(2, 2)
        page.wait_for_timeout(300)
        colours = "b => [getComputedStyle(b).color, getComputedStyle(b).backgroundColor].join()"
        before = button.evaluate(colours)
        button.hover()
        page.wait_for_timeout(300)
        assert button.evaluate(colours) == before, selector


def test_heads_are_chosen_by_number_and_left_when_they_are_gone(open_explorer: Open) -> None:
    explorer = open_explorer(CAPSTONE + "&stage=5")
    expect(chip(explorer, "expert:0")).to_have_count(0)
    with explorer.repaint():
        chip(explorer, "without_head:2").click()
    with explorer.repaint():
        chip(explorer, "only_head:1").click()
    with explorer.repaint():
        chip(explorer, "only_head:0").click()
    assert set(in_force(explorer)) == {"without_head:2", "only_head:0"}, "one head only is one head only"
    with explorer.repaint():
        explorer.set_field("h", "2")
    assert in_force(explorer) == ["only_head:0"]
    assert "head 2 off" in explorer.page.locator(".notes").inner_text()


def test_link_brings_what_ifs_back(open_explorer: Open) -> None:
    explorer = open_explorer("?v=1&s=no_mask!temperature:0.5&stage=5")
    assert in_force(explorer) == ["no_mask", "temperature:0.5"]
    expect(explorer.page.locator('[data-switch-value="temperature"]')).to_have_value("0.5")


# -------------------------------------------------------------------------------------------------------- effects


def test_table_ranks_the_parts_and_a_row_turns_one_off(open_explorer: Open) -> None:
    explorer = open_explorer(CAPSTONE)
    table = explorer.page.locator("[data-effects]")
    expect(table.locator("[data-effect]")).to_have_count(0)
    table.locator("summary").click()
    table.scroll_into_view_if_needed()
    expected = effects(PRESETS["capstone"])
    rows = table.locator("[data-effect]")
    expect(rows).to_have_count(len(expected))
    assert rows.evaluate_all("found => found.map(at => at.dataset.effect)") == [e.switch for e in expected]
    first = expected[0]
    assert f"{100 * first.moved:.4g} %" in rows.first.inner_text()
    with explorer.repaint():
        rows.first.locator("button").click()
    assert in_force(explorer) == [first.switch]
    expect(explorer.page.locator('button[data-stage][aria-current="step"]')).to_have_attribute(
        "data-stage", str(first.stage)
    )
    table.scroll_into_view_if_needed()
    expect(table.locator(f'[data-effect="{first.switch}"]')).to_have_count(0)  # it is in force now


# ---------------------------------------------------------------------------------------------- settings, experts


def test_groups_fold_and_are_remembered(explorer: ExplorerPage) -> None:
    group = explorer.page.locator('[data-group="runtime"]')
    expect(explorer.field("dtype")).to_be_hidden()
    group.locator("summary").click()
    expect(explorer.field("dtype")).to_be_visible()
    explorer.page.reload()
    explorer.page.wait_for_selector("[data-ready=true]")
    expect(explorer.field("dtype")).to_be_visible()
    with explorer.repaint():
        explorer.set_field("dtype", "bfloat16")
    assert "bfloat16" in explorer.ledger()["q"]


def test_a_message_opens_its_group(open_explorer: Open) -> None:
    explorer = open_explorer("?v=1&B=2&T=3&pad=0,1")
    expect(explorer.field("padding")).to_be_hidden()
    explorer.set_field("B", "3")
    assert "one count a row" in explorer.expect_error("padding")
    expect(explorer.field("padding")).to_have_value("0 1")
    with explorer.repaint():
        explorer.set_field("padding", "0 1 2")
    explorer.expect_no_errors()


def test_experts_take_random_weights_and_show_one_at_a_time(explorer: ExplorerPage) -> None:
    explorer.page.locator('[data-group="experts"] summary').click()
    expect(explorer.field("experts_per_token")).to_be_disabled()
    with explorer.repaint():
        explorer.set_field("experts", "3")
    assert "no experts" in explorer.page.locator(".notes").inner_text()
    expect(explorer.field("weights")).to_have_value("random")
    with explorer.repaint():
        explorer.set_field("experts_per_token", "2")
    explorer.stage(8)
    for expert in (0, 2):
        if expert:
            with explorer.repaint():
                explorer.page.locator(f'[data-slice="e{expert}"]').click()
        shown = {q.split(".")[2] for q in explorer.cells() if q.startswith("mlp.experts.")}
        assert shown == {str(expert)}
    expect(explorer.page.locator('[data-figure="router"]')).to_have_count(1)
    with explorer.repaint():
        chip(explorer, "expert:2").click()
    assert set(explorer.array("expert_index")[..., 0].ravel()) == {2.0}
    with explorer.repaint():
        explorer.set_field("experts", "0")
    explorer.expect_no_errors()
    assert in_force(explorer) == []


# -------------------------------------------------------------------------------------------------------- download


def test_the_courses_model_is_handed_over_whole(explorer: ExplorerPage, tmp_path: Path) -> None:
    explorer.page.locator("details.code summary").click()
    with explorer.page.expect_download() as waiting:
        explorer.page.locator('[data-act="course"]').click()
    waiting.value.save_as(tmp_path / "got.py")
    source = ROOT / "explorer" / "course" / "transformer_model.py"
    assert waiting.value.suggested_filename == source.name
    assert (tmp_path / "got.py").read_text(encoding="utf-8") == source.read_text(encoding="utf-8")


# --------------------------------------------------------------------------------------------------- accessibility


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everything_open_violates_nothing_grave(open_explorer: Open, theme: str) -> None:
    explorer = open_explorer(f"{CAPSTONE}&E=4&k=2&s=no_mask!without_head:1&stage=1&__theme={theme}")
    explorer.page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")
    for stage, trial in ((1, "norms"), (5, "softmax")):
        explorer.stage(stage)
        explorer.page.locator(f'[data-trial-of="{trial}"]').scroll_into_view_if_needed()
        expect(explorer.page.locator(f'[data-trial-of="{trial}"] td').first).to_be_visible(timeout=20_000)
        explorer.page.locator("[data-effects]").scroll_into_view_if_needed()
        expect(explorer.page.locator("[data-effect]").first).to_be_visible(timeout=20_000)
        assert not violations(explorer)
