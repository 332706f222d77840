"""Runs of every kind against the float64 reference; the cache of finished runs; threads; caches and padding."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from explorer import PRESETS, Edit, RunSpec, SpecError, Trace, run
from explorer.limits import LIMITS
from explorer.run import MOST_TRACES, Finished, finished, prepare
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


# ------------------------------------------------------------------------------------------------ cached = full run


@pytest.mark.parametrize("past", [1, 3, 5])
@pytest.mark.parametrize("case", ["capstone", "grouped", "moe_two"])
def test_cached_run_equals_the_end_of_the_full_run(case: str, past: int) -> None:
    full_spec = replace(CASES[case], T=6)
    full, cached = run(full_spec), run(replace(full_spec, T=6 - past, past=past))
    for name in cached.names:
        axes = cached.axes(name)
        if "P" in axes:
            expected = full["k_rot" if name == "past_k" else "present_v"][:, :, :past]
        elif "Tk" in axes and "Tq" not in axes:
            expected = full[name]
        else:
            token_axis = next(n for n, letter in enumerate(axes) if letter in ("T", "Tq"))
            expected = np.moveaxis(np.moveaxis(full[name], token_axis, 0)[past:], 0, token_axis)
        assert_close(cached[name], expected.astype(np.float64), 1e-5, name)


@pytest.mark.parametrize(
    "change",
    [
        {"edits": [Edit("self_attn.k_proj.weight", (0, 1), 2.0), Edit("self_attn.v_proj.weight", (), 0.5)]},
        {"edits": [Edit("input_layernorm.weight", (None,), 3.0), Edit("self_attn.k_norm.weight", (2,), -1.0)]},
        {"switches": ["no_rope"]},
        {"switches": ["no_qk_norm", "no_rope"]},
    ],
    ids=["projections", "norms", "no_rope", "no_norm"],
)
def test_cached_run_equals_the_end_of_the_full_run_when_the_model_is_changed(change: dict[str, Any]) -> None:
    spec = replace(CASES["grouped"], T=6, **change)
    full, cached = run(spec), run(replace(spec, T=2, past=4))
    assert_close(cached["present_k"], full["present_k"].astype(np.float64), 1e-5)
    assert_close(cached["resid_post"], full["resid_post"][:, 4:].astype(np.float64), 1e-5)


def test_cached_run_with_padding_equals_the_end_of_the_full_run() -> None:
    full_spec = replace(CASES["padding"], T=6)
    full, cached = run(full_spec), run(replace(full_spec, T=2, past=4))
    assert_close(cached["resid_post"], full["resid_post"][:, 4:].astype(np.float64), 1e-5)


def test_a_longer_run_leaves_earlier_tokens_as_they_were() -> None:
    short, long = run(replace(CASES["capstone"], T=3)), run(replace(CASES["capstone"], T=5))
    assert_close(long["resid_post"][:, :3], short["resid_post"].astype(np.float64), 1e-6)


# ------------------------------------------------------------------------------------------------ the flash path


@pytest.mark.parametrize("case", ["toy", "capstone", "grouped", "moe"])
def test_flash_equals_explicit(case: str) -> None:
    explicit, flash = (run(replace(CASES[case], attention=path)) for path in ("explicit", "flash"))
    assert explicit.recomputed == set() and flash.recomputed == {"scores", "masked_scores", "probs"}
    assert flash.names == explicit.names
    for name in explicit.names:
        assert_close(flash[name], explicit[name].astype(np.float64), 5e-6, name)


def test_a_tile_of_the_flash_path_equals_the_explicit_path() -> None:
    spec = RunSpec(T=200, d_model=64, h=4, h_kv=2, weights="random")
    explicit, flash = (run(replace(spec, attention=path)) for path in ("explicit", "flash"))
    for name in ("scores", "masked_scores", "probs"):
        for head in range(4):
            tile = flash.rows(name, 0, head, 64, 128)
            assert tile.shape == (64, 200) and tile.dtype == np.float32 and not tile.flags.writeable
            np.testing.assert_allclose(tile, explicit[name][0, head, 64:128], rtol=1e-5, atol=1e-6)
            np.testing.assert_array_equal(explicit.rows(name, 0, head, 64, 128), explicit[name][0, head, 64:128])
            cell = (0, head, 70, 3)
            assert flash.value(name, cell) == pytest.approx(explicit.value(name, cell), rel=1e-5, abs=1e-7)
    assert {row.note for row in flash.ledger() if row.stage in (4, 5)} >= {"computed on demand"}


def test_flash_is_taken_where_the_budget_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = RunSpec(B=2, T=16, d_model=8, h=2, weights="random")
    assert spec.explicit and not run(spec).recomputed
    monkeypatch.setattr(LIMITS, "score_bytes", spec.score_bytes - 1)
    finished.clear()
    assert not spec.explicit and run(spec).recomputed


def test_edits_of_scores_force_the_explicit_path() -> None:
    spec = replace(CASES["capstone"], attention="flash")
    for target in ("scores", "masked_scores", "probs"):
        edited = replace(spec, edits=[Edit(target, (0, 0, 3, 1), 0.25)])
        trace = run(edited)
        assert edited.explicit and not trace.recomputed and trace[target][0, 0, 3, 1] == 0.25
        assert_agree(trace, reference(spec, put={target: {(0, 0, 3, 1): 0.25}}))
        assert not replace(spec, edits=[Edit(target, (0, 0, 3, 1), 0.25, on=False)]).explicit
    for switch in ("no_mask", "no_scale", "uniform_attention", "temperature:2"):
        assert not run(replace(spec, switches=[switch])).recomputed
    assert run(replace(spec, switches=["no_rope"])).recomputed


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


# ------------------------------------------------------------------------------------------------ finished runs


def test_the_same_spec_gives_the_same_trace() -> None:
    spec = replace(CASES["capstone"], seed=77)
    assert run(spec) is run(replace(spec, B=2))
    first = run(spec)["resid_post"]
    finished.clear()
    assert run(spec)["resid_post"] is not first
    np.testing.assert_array_equal(run(spec)["resid_post"], first)


def test_arrays_are_read_only_float32() -> None:
    trace = run(CASES["moe_two_raw"])
    for name in trace.names:
        assert trace[name].dtype == (np.int64 if name == "expert_index" else np.float32), name
        with pytest.raises(ValueError, match="read-only"):
            trace[name][...] = 0
    with pytest.raises(ValueError, match="read-only"):
        trace.weights["mlp.gate.weight"][0, 0] = 1
    assert trace.masked.dtype == bool and not trace.masked.flags.writeable


def test_finished_runs_are_bounded_by_number() -> None:
    finished.clear()
    for n in range(MOST_TRACES + 10):
        run(RunSpec(edits=[Edit("resid_pre", (0, 0, 0), float(n))]))
    assert len(finished) == MOST_TRACES


def test_finished_runs_are_bounded_by_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    finished.clear()
    monkeypatch.setattr(LIMITS, "cache_bytes", 3_000_000)
    kept = [run(RunSpec(d_model=128, T=8, h=4, weights="random", seed=seed)) for seed in range(8)]  # 1 MB of weights
    assert 1 <= len(finished) < 4 and finished.nbytes <= 3_000_000
    assert run(kept[-1].spec) is kept[-1]
    finished.clear()
    assert (len(finished), finished.nbytes) == (0, 0)


def test_shared_weights_count_once() -> None:
    own = Finished()
    spec = RunSpec(d_model=128, h=4, weights="random")
    for n in range(5):
        edited = replace(spec, edits=[Edit("resid_pre", (0, 0, 0), float(n))])
        own.put(edited, run(edited))
    weights = sum(array.nbytes for array in run(spec).weights.values())
    assert weights < own.nbytes < 2 * weights
    own.put(edited, run(edited))
    assert len(own) == 5


def test_a_trace_may_be_collected() -> None:
    """No reference cycle keeps large tensors alive until the collector happens to run."""
    import gc
    import weakref

    finished.clear()
    gc.disable()
    try:
        trace = run(RunSpec(T=4, attention="flash", seed=1, d_model=4, h=1, weights="random"))
        trace.value("probs", (0, 0, 1, 0)), trace["probs"], trace.masked, trace.ledger()
        gone = weakref.ref(trace)
        finished.clear()
        del trace
        assert gone() is None
    finally:
        gc.enable()


# ------------------------------------------------------------------------------------------------ threads


def test_threads_with_different_edits_of_one_block_do_not_mix() -> None:
    """Weight edits swap parameters of the shared block for the time of a run; nobody else may see them."""
    base = RunSpec(B=1, T=6, d_model=16, h=2, weights="random", seed=11)
    specs = [base, replace(base, past=3)]
    for n in range(6):
        specs.append(replace(base, edits=[Edit("self_attn.k_proj.weight", (n, n), 5.0 + n)]))
        specs.append(replace(base, edits=[Edit("k_rot", (0, n % 2, n, 1), -3.0 - n)], past=2 * (n % 2)))
        specs.append(replace(base, edits=[Edit("mlp.up_proj.weight", (), float(n))], attention="flash"))
    finished.clear()
    alone = {}
    for spec in specs:
        trace = run(spec)
        alone[spec] = (trace["resid_post"].copy(), trace.weights["self_attn.k_proj.weight"].copy())
    wrong: list[RunSpec] = []

    def again(seed: int) -> None:
        for n in np.random.default_rng(seed).permutation(len(specs)):
            finished.clear()
            trace = run(specs[n])
            output, weight = alone[specs[n]]
            if not np.array_equal(trace["resid_post"], output) or not np.array_equal(
                trace.weights["self_attn.k_proj.weight"], weight
            ):
                wrong.append(specs[n])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(again, range(12)))
    assert not wrong


def test_one_thread_waits_for_the_other_on_one_block() -> None:
    ready = prepare(CASES["capstone"])
    inside, most, running = threading.Lock(), [0], [0]

    def watch(*_: object) -> None:
        with inside:
            running[0] += 1
            most[0] = max(most[0], running[0])
        threading.Event().wait(0.005)
        with inside:
            running[0] -= 1

    handle = ready.block.mlp.register_forward_hook(watch)
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(_fresh_run, range(8)))
    finally:
        handle.remove()
    assert most == [1]


def _fresh_run(n: int) -> Trace:
    return run(replace(CASES["capstone"], edits=[Edit("resid_pre", (0, 0, 0), 100.0 + n)]))


# ------------------------------------------------------------------------------------------------ what cannot run


def test_a_device_that_is_not_here_is_named() -> None:
    if torch.backends.mps.is_available():
        pytest.skip("this machine has MPS")
    with pytest.raises(SpecError) as caught:
        run(RunSpec(device="mps"))
    assert set(caught.value.errors) == {"device"}
    assert "'mps' is not available here" in str(caught.value) and "Choose auto or cpu" in str(caught.value)


def test_the_cache_needs_no_scores_of_its_own() -> None:
    """A padded cache would otherwise cost past² scores that no bound on T has counted."""
    spec = RunSpec(B=8, T=1, past=1000, d_model=64, h=32, d_h=2, weights="random", padding=(1,) * 8)
    before = torch.zeros(1)  # the largest tensor made on the way, seen through the matmuls' results
    largest = [0]
    real = torch.Tensor.__matmul__

    def noted(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        result = real(left, right)
        largest[0] = max(largest[0], result.nbytes)
        return result

    torch.Tensor.__matmul__ = noted  # type: ignore[method-assign, assignment]
    try:
        trace = run(spec)
    finally:
        torch.Tensor.__matmul__ = real  # type: ignore[method-assign]
    assert before.numel() and 0 < largest[0] <= 4 * 8 * 32 * 1001
    assert trace["probs"].shape == (8, 32, 1, 1001)
