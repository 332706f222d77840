"""The ranking of what-ifs, against runs made by hand."""

from dataclasses import replace

import numpy as np
import pytest

from explorer import PRESETS, Edit, RunSpec, run
from explorer.effects import effects


def test_the_toy_ranks_its_parts():
    ranked = effects(RunSpec())
    assert [e.switch for e in ranked[:4]] == ["no_second_residual", "no_first_residual", "no_mask", "no_rope"]
    by_name = {e.switch: e for e in ranked}
    assert by_name["no_mask"].tokens[0][1] == 0, "the last token sees every key with or without a mask"
    assert by_name["no_rope"].tokens[0][0] == 0, "position 0 is not turned"
    assert "no_qk_norm" not in by_name, "the toy has no norm of queries and keys"


@pytest.mark.parametrize("preset", ["capstone", "gqa"])
def test_each_row_is_the_relative_distance_of_two_runs(preset):
    spec = PRESETS[preset]
    ranked = effects(spec)
    assert [e.moved for e in ranked] == sorted((e.moved for e in ranked), reverse=True)
    before = run(spec)["resid_post"].astype(float)
    for effect in ranked:
        after = run(replace(spec, switches=(effect.switch,)))["resid_post"].astype(float)
        moved = np.sqrt(((after - before) ** 2).sum() / (before**2).sum())
        assert effect.moved == pytest.approx(moved)
        tokens = np.sqrt(((after - before) ** 2).sum(-1) / (before**2).sum(-1))
        np.testing.assert_allclose(effect.tokens, tokens, rtol=1e-9)


def test_what_ifs_are_measured_on_top_of_the_edits_in_force():
    uniform = RunSpec(edits=[Edit("probs", (), 0.5)])
    assert {e.switch: e.moved for e in effects(uniform)}["no_mask"] == 0


def test_heads_and_experts_are_taken_one_by_one():
    spec = RunSpec(T=3, d_model=16, h=4, experts=3, experts_per_token=2, weights="random")
    names = {e.switch for e in effects(spec)}
    assert {f"without_head:{n}" for n in range(4)} | {f"expert:{n}" for n in range(3)} <= names
