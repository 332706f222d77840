"""Runs of every kind against the float64 reference, edits through a run, and what a run is made of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from explorer import PRESETS, Edit, RunSpec, SpecError, run
from explorer.run import prepare
from tests.core.cases import CASES, assert_agree, assert_close, reference

WITH_PADDING = [name for name, spec in CASES.items() if any(spec.padding)]


@pytest.mark.parametrize("case", CASES)
def test_every_quantity_equals_the_reference(case: str) -> None:
    assert_agree(run(CASES[case]), reference(CASES[case]))


@pytest.mark.parametrize("name", ["capstone", "gqa"])
def test_presets_equal_the_reference(name: str) -> None:
    assert_agree(run(PRESETS[name]), reference(PRESETS[name]))


def test_real_width_equals_the_reference() -> None:
    assert_agree(run(PRESETS["minimind3"]), reference(PRESETS["minimind3"]))


@pytest.mark.parametrize("case", WITH_PADDING)
def test_padding_gives_no_nan_in_any_dtype(case: str) -> None:
    for dtype in ("float32", "bfloat16", "float16"):
        trace = run(replace(CASES[case], dtype=dtype))
        for name in trace.names:
            assert not np.isnan(trace[name]).any(), (dtype, name)


def test_a_query_that_sees_nothing_blends_nothing() -> None:
    trace = run(CASES["blind_row"])
    assert (trace["masked_scores"][0] == -np.inf).all()
    assert (trace["probs"][0] == 0).all() and (trace["attn_out"][0] == 0).all()
    np.testing.assert_array_equal(trace["resid_mid"][0], trace["resid_pre"][0])
    np.testing.assert_allclose(trace["probs"][1, :, 1:].sum(-1), 1, rtol=1e-6)


@pytest.mark.parametrize("dtype, rtol", [("bfloat16", 6e-2), ("float16", 8e-3)])
@pytest.mark.parametrize("case", ["toy", "capstone", "cache_and_padding", "moe"])
def test_half_precision_is_near_the_reference(case: str, dtype: str, rtol: float) -> None:
    spec = replace(CASES[case], dtype=dtype)
    trace, expected = run(spec), reference(spec)
    assert {trace.dtype(n) for n in trace.names} == {dtype, "float32"} | ({"int64"} if spec.experts else set())
    for name in ("q_rot", "probs", "attn_out", "resid_mid"):
        assert trace[name].dtype == np.float32
        assert_close(trace[name], expected.values[name], rtol, name)


# ------------------------------------------------------------------------------------------------ edits through run


def test_edits_reach_everything_that_follows() -> None:
    spec, put = CASES["cache_and_padding"], {"q_rot": {(1, 2, 0, 3): 1.5}, "hidden": {(0, 1, 4): -2.0}}
    edits = [Edit(name, index, x) for name, cells in put.items() for index, x in cells.items()]
    assert_agree(run(replace(spec, edits=edits)), reference(spec, put=put))


def test_an_edited_cache_and_edited_tables_reach_the_scores() -> None:
    spec = CASES["cache"]
    plain, edited = run(spec), run(replace(spec, edits=[Edit("past_v", (1, 0, 2, 5), 9.0)]))
    assert edited["present_v"][1, 0, 2, 5] == 9.0 and edited.edited == ("past_v",)
    assert_close(
        edited["heads"][1, :2, :, 5],
        plain["heads"][1, :2, :, 5] + plain["probs"][1, :2, :, 2] * (9.0 - np.float64(plain["past_v"][1, 0, 2, 5])),
    )
    np.testing.assert_array_equal(edited.before("past_v"), plain["past_v"])
    still = run(replace(spec, edits=[Edit("rope_cos", (), 1.0), Edit("rope_sin", (), 0.0)]))
    np.testing.assert_array_equal(still["q_rot"], still["q_norm"])


def test_edits_of_an_expert_reach_the_tokens_sent_there_alone() -> None:
    spec = CASES["moe_two"]
    plain, edited = run(spec), run(replace(spec, edits=[Edit("mlp.experts.1.down_proj.weight", (None, 0), 4.0)]))
    moved = (plain["ffn_out"] != edited["ffn_out"]).any(-1)
    np.testing.assert_array_equal(moved, (plain["expert_index"] == 1).any(-1))


# --------------------------------------------------------------------------------------- what runs are made of


def test_only_what_a_block_depends_on_builds_a_new_one() -> None:
    spec = CASES["grouped"]
    same = {"T": 3, "B": 1, "past": 2, "angle_step": 0.1, "rope_theta": 50.0, "yarn": True, "attention": "flash"}
    for name, value in same.items():
        assert prepare(replace(spec, **{name: value})).block is prepare(spec).block, name
    assert (
        prepare(replace(spec, edits=[Edit("q", (0, 0, 0, 0), 1.0)], switches=["no_mask"])).block is prepare(spec).block
    )
    for name, value in {"seed": 4, "d_ff": 11, "qk_norm": False, "norm_eps": 0.1, "dtype": "bfloat16"}.items():
        assert prepare(replace(spec, **{name: value})).block is not prepare(spec).block, name


def test_seeds_give_other_numbers_and_the_same_seed_the_same() -> None:
    spec = CASES["capstone"]
    first, again, other = run(spec), prepare(replace(spec, seed=0)), run(replace(spec, seed=1))
    np.testing.assert_array_equal(first["resid_pre"], again.hidden_states.numpy())
    for name, weight in first.weights.items():
        assert not np.array_equal(weight, other.weights[name]), name
        np.testing.assert_array_equal(weight, weight.round(2), err_msg="two decimals, to be retyped")


def test_random_weights_keep_the_size_of_what_flows() -> None:
    trace = run(PRESETS["minimind3"])
    for name in ("resid_pre", "attn_norm", "q", "gate", "up"):
        assert 0.8 < trace[name].std() < 1.25, name
    gains = trace.weights["input_layernorm.weight"]
    assert abs(gains.mean() - 1) < 0.02 and 0.08 < gains.std() < 0.12


def test_yarn_slows_the_slow_pairs_and_leaves_the_fast_ones() -> None:
    spec = RunSpec(T=8, d_model=64, h=1, weights="random")
    plain, yarn = run(spec), run(replace(spec, yarn=True))
    angles = [np.arctan2(t["rope_sin"], t["rope_cos"])[7, :32].astype(np.float64) for t in (plain, yarn)]
    np.testing.assert_allclose(angles[1][:4], angles[0][:4], rtol=1e-6)
    np.testing.assert_allclose(angles[1][-4:], angles[0][-4:] / 16, rtol=1e-4)
    assert (np.diff(angles[1] / angles[0]) <= 1e-6).all()


# ------------------------------------------------------------------------------------------------ what cannot run


def test_a_device_that_is_not_here_is_named() -> None:
    if torch.backends.mps.is_available():
        pytest.skip("this machine has MPS")
    with pytest.raises(SpecError) as caught:
        run(RunSpec(device="mps"))
    assert set(caught.value.errors) == {"device"}
    assert "'mps' is not available here" in str(caught.value) and "Choose auto or cpu" in str(caught.value)
