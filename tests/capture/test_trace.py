"""The record of a run: lookups, aliases, what is recomputed, and what it costs in memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from explorer import Edit, RunSpec, answers, run
from explorer.capture import TooLarge, record
from explorer.limits import LIMITS
from explorer.quantities import QUANTITIES, UnknownName
from explorer.run import finished, prepare
from tests.core.cases import CASES


@pytest.mark.parametrize("case", CASES)
def test_every_quantity_has_its_declared_axes_and_shape(case: str) -> None:
    spec, trace = CASES[case], run(CASES[case])
    expected = {
        "B": spec.B, "T": spec.T, "Tq": spec.T, "Tk": spec.past + spec.T, "P": spec.past, "D": spec.d_model,
        "H": spec.h, "Hkv": spec.kv_heads, "Dh": spec.head_dim, "C": spec.h * spec.head_dim, "F": spec.ffn_width,
        "Ckv": spec.kv_heads * spec.head_dim, "E": spec.experts, "k": spec.experts_per_token if spec.experts else 0,
    }  # fmt: skip
    assert trace.sizes == expected
    for name in trace.names:
        assert trace.axes(name) == QUANTITIES[name].axes
        assert trace[name].shape == tuple(expected[letter] for letter in QUANTITIES[name].axes) == trace.shape(name)
    present = {"past_k", "past_v"} if spec.past else set()
    assert {n for n in trace.names if QUANTITIES[n].stage == 0} == {"resid_pre", "rope_cos", "rope_sin"} | present
    assert list(trace) == list(trace.names) == [n for n in QUANTITIES if n in trace]


def test_sizes_of_the_capstone_are_the_lessons() -> None:
    trace = run(CASES["capstone"])
    assert trace["q"].shape == (2, 3, 5, 4) and trace["scores"][0, 0].shape == (5, 5)
    assert trace["concat"].shape == trace["resid_mid"].shape == trace["resid_post"].shape == (2, 5, 12)


@pytest.mark.parametrize("case", CASES)
def test_the_mask_is_true_where_a_query_may_not_look(case: str) -> None:
    spec, trace = CASES[case], run(CASES[case])
    assert trace.masked.shape == (spec.B, 1, spec.T, spec.past + spec.T)
    for b, _, i, j in np.ndindex(*trace.masked.shape):
        padded = bool(spec.padding) and j < spec.padding[b]
        assert trace.masked[b, 0, i, j] == (j > spec.past + i or padded)
    hidden = np.broadcast_to(trace.masked, trace["probs"].shape)
    assert (trace["masked_scores"][hidden] == -np.inf).all() and (trace["probs"][hidden] == 0).all()


def test_angles_are_those_of_the_positions() -> None:
    spec, trace = CASES["other_angles"], run(replace(CASES["other_angles"], past=2))
    positions, pairs = np.arange(2, 2 + spec.T)[:, None], np.arange(3) / 3
    angles = np.concatenate([positions * 0.3 * 100.0**-pairs] * 2, axis=1)
    np.testing.assert_allclose(trace["rope_cos"], np.cos(angles), atol=1e-6)
    np.testing.assert_allclose(trace["rope_sin"], np.sin(angles), atol=1e-6)
    assert trace.dtype("rope_cos") == "float32"


def test_unknown_names_say_which_are_near() -> None:
    trace = run(CASES["capstone"])
    for look_up in (lambda n: trace[n], trace.axes, trace.shape, trace.before, lambda n: trace.rows(n, 0, 0)):
        with pytest.raises(UnknownName, match="named 'mask_scores'. Did you mean 'masked_scores'"):
            look_up("mask_scores")
    with pytest.raises(UnknownName, match=r"Known: resid_pre, .*, resid_post\."):
        trace["nothing"]
    with pytest.raises(UnknownName, match="Did you mean 'mlp.up_proj.weight'"):
        trace.weights["mlp.up_proj"]
    assert "probs" in trace and "router_probs" not in trace and 5 not in trace
    assert len(trace.weights) == len(list(trace.weights)) == 11


def test_single_numbers() -> None:
    trace = run(CASES["cache_and_padding"])
    assert trace.value("q", (1, 2, 3, 4)) == float(trace["q"][1, 2, 3, 4])
    assert trace.value("masked", (0, 0, 0, 0)) == 1.0 and trace.value("masked", (0, 0, 1, 4)) == 0.0
    assert trace.value("self_attn.o_proj.weight", (1, 2)) == float(trace.weights["self_attn.o_proj.weight"][1, 2])
    assert isinstance(trace.value("probs", (0, 0, 3, 6)), float)
    with pytest.raises(UnknownName):
        trace.value("nothing", (0,))


def test_rows_are_checked_and_copied() -> None:
    for path in ("explicit", "flash"):
        trace = run(replace(CASES["capstone"], attention=path))
        assert trace.rows("probs", 1, 2, 3).shape == (2, 5) and trace.rows("probs", 1, 2).shape == (5, 5)
        assert trace.rows("probs", 0, 0, 1, 2).base is None or trace.rows("probs", 0, 0, 1, 2).base.size == 5
        for b, h in ((2, 0), (0, 3), (-1, 0)):
            with pytest.raises(IndexError, match="probs has 2 batch rows and 3 heads"):
                trace.rows("probs", b, h)
        with pytest.raises(UnknownName, match="Known: scores, masked_scores, probs"):
            trace.rows("q", 0, 0)


def test_whole_scores_beyond_the_budget_are_asked_for_in_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = run(RunSpec(T=64, d_model=8, h=2, weights="random", attention="flash", seed=9))
    monkeypatch.setattr(LIMITS, "score_bytes", 4 * 2 * 64 * 64 - 1)
    with pytest.raises(TooLarge, match=r"probs has 1×2×64×64 cells, .* Ask for a part: trace\.rows\('probs', b, h"):
        trace["probs"]
    assert trace.rows("probs", 0, 1).shape == (64, 64)
    assert trace.value("probs", (0, 1, 5, 5)) > 0


def test_weights_have_the_dtype_that_was_computed_with() -> None:
    trace = run(RunSpec(dtype="bfloat16"))
    assert trace.dtype("self_attn.q_proj.weight") == trace.dtype("probs") == "bfloat16"
    told = answers.trace(RunSpec(dtype="bfloat16"), ["self_attn.q_proj.weight"])["quantities"]
    assert told["self_attn.q_proj.weight"]["dtype"] == "bfloat16"


def test_flash_keeps_no_scores() -> None:
    sizes = {"T": 512, "d_model": 32, "h": 8, "weights": "random"}
    flash, explicit = (run(RunSpec(**sizes, attention=path)) for path in ("flash", "explicit"))
    scores = 3 * 4 * 8 * 512 * 512
    assert explicit.nbytes > scores > 4 * flash.nbytes


def test_before_and_after_an_edit() -> None:
    plain = run(CASES["capstone"])
    edits = [Edit("v", (0, 0, 0, 0), 9.0), Edit("rope_sin", (1, 1), 0.0), Edit("self_attn.v_proj.weight", (0, 0), 3.0)]
    trace = run(replace(CASES["capstone"], edits=edits))
    assert trace.edited == ("rope_sin", "v", "self_attn.v_proj.weight")
    np.testing.assert_array_equal(trace.before("rope_sin"), plain["rope_sin"])
    weight = trace.before("self_attn.v_proj.weight")
    np.testing.assert_array_equal(weight, plain.weights["self_attn.v_proj.weight"])
    assert trace.weights["self_attn.v_proj.weight"][0, 0] == 3.0 != weight[0, 0]
    computed = trace["attn_norm"][0, 0].astype(np.float64) @ trace.weights["self_attn.v_proj.weight"][0]
    assert trace.before("v")[0, 0, 0, 0] == pytest.approx(computed, rel=1e-5)
    assert trace.computed("v", (0, 0, 0, 0)) == float(trace.before("v")[0, 0, 0, 0]) and trace.value("v", (0,) * 4) == 9
    assert trace.before("q") is trace["q"] and trace.before("v") is trace.before("v")
    assert not trace.before("v").flags.writeable


def test_memory_counts_what_is_shared_once() -> None:
    finished.clear()
    trace = run(RunSpec(T=8, d_model=64, h=4, weights="random"))
    tensors = {trace.tensor(n).untyped_storage().data_ptr(): trace.tensor(n).untyped_storage().nbytes() for n in trace}
    weights = sum(w.nbytes for w in trace.weights.values())
    arrays = sum(4 * trace.tensor(n).numel() for n in trace)
    masks = 2 * 8 * 8
    assert trace.nbytes == sum(tensors.values()) + weights + arrays + masks
    assert trace.tensor("present_k").data_ptr() == trace.tensor("k_rot").data_ptr()


def test_a_bfloat16_run_reads_as_float32() -> None:
    trace = run(RunSpec(dtype="bfloat16"))
    assert trace["probs"].dtype == np.float32 and trace.dtype("probs") == "bfloat16"
    assert trace.weights["mlp.up_proj.weight"].dtype == np.float32
    assert trace.tensor("probs").dtype == torch.bfloat16


def test_where_a_run_came_from() -> None:
    assert run(CASES["moe"]).spec is CASES["moe"] or run(CASES["moe"]).spec == CASES["moe"]
    ready = prepare(CASES["moe"])
    trace = record(ready.block, ready.hidden_states, ready.position_embeddings)
    assert trace.spec is None and trace.tokens is None
    assert trace.device == "cpu" and trace.moe and trace.norm_eps == 1e-6 and trace.norm_topk
    raw = run(CASES["moe_two_raw"])
    assert not raw.norm_topk and not run(CASES["capstone"]).moe and not run(CASES["toy"]).qk_norm


@pytest.mark.parametrize("case", ["padding", "blind_row", "cache_and_padding"])
def test_scores_that_were_not_kept_are_recomputed_with_mask_and_cache(case: str) -> None:
    ready, kept = prepare(CASES[case]), run(CASES[case])
    trace = record(
        ready.block, ready.hidden_states, ready.position_embeddings, ready.past_key_value, ready.attention_mask,
        keep_scores=False,
    )  # fmt: skip
    assert trace.recomputed == {"scores", "masked_scores", "probs"}
    for name in sorted(trace.recomputed):
        assert trace[name] is not trace[name]  # what a trace holds on to is what nbytes says
        np.testing.assert_allclose(trace[name], kept[name], rtol=1e-5, atol=1e-6)
        for b, h in np.ndindex(2, trace.sizes["H"]):
            np.testing.assert_allclose(trace.rows(name, b, h), kept[name][b, h], rtol=1e-5, atol=1e-6)
