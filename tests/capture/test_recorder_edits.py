"""Edits that flow on, and edits that change nothing when they set what is there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from explorer import PRESETS, Edit, run
from explorer.capture.recorder import hooks_on
from explorer.quantities import GIVEN, QUANTITIES
from explorer.run import Prepared, prepare
from tests.capture.recording import SOME, capture
from tests.core.cases import CASES

SCORES = ("scores", "masked_scores", "probs")


def every(case: str, *, weights: bool = False) -> list[str]:
    """The taps of a case, or the weights of its block."""
    return (
        [*run(CASES[case]).weights]
        if weights
        else [n for n in run(CASES[case]).names if n not in GIVEN] + ["resid_pre"]
    )


def ids(pairs: list[tuple[str, str]]) -> list[str]:
    return [f"{case}-{name}" for case, name in pairs]


TAPS = [(case, name) for case in SOME for name in every(case)]
WEIGHTS = [(case, name) for case in ("toy", "grouped", "moe_two_raw") for name in every(case, weights=True)]


# ------------------------------------------------------------------------------------------------- edits flow on


@pytest.mark.parametrize(("case", "name"), TAPS, ids=ids(TAPS))
def test_the_same_value_changes_nothing_bit_for_bit(case: str, name: str) -> None:
    ready, plain = prepare(CASES[case]), run(CASES[case])
    middle = tuple(n // 2 for n in plain[name].shape)
    for edit in (
        Edit(name, (), plain[name]),
        Edit(name, middle, plain[name][middle]),
        Edit(name, (), 123.0, on=False),
    ):
        again = capture(ready, edit)
        for other in plain.names:
            np.testing.assert_array_equal(again[other], plain[other], err_msg=f"{other} after {edit.label()}")


@pytest.mark.parametrize(("case", "name"), WEIGHTS, ids=ids(WEIGHTS))
def test_the_same_weight_changes_nothing_bit_for_bit(case: str, name: str) -> None:
    ready, plain = prepare(CASES[case]), run(CASES[case])
    first = (0,) * plain.weights[name].ndim
    for edit in (Edit(name, (), plain.weights[name]), Edit(name, first, plain.weights[name][first])):
        again = capture(ready, edit)
        for other in plain.names:
            np.testing.assert_array_equal(again[other], plain[other], err_msg=f"{other} after {edit.label()}")
        np.testing.assert_array_equal(again.weights[name], plain.weights[name])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_the_same_value_changes_nothing_in_half_precision(dtype: str) -> None:
    spec = replace(CASES["cache_and_padding"], dtype=dtype)
    plain = run(spec)
    edits = tuple(Edit(name, (), plain[name]) for name in plain.names)
    again = capture(prepare(spec), *edits)
    for name in plain.names:
        np.testing.assert_array_equal(again[name], plain[name], err_msg=name)
        assert again.dtype(name) == plain.dtype(name)


def test_the_same_values_change_nothing_at_a_real_width() -> None:
    """Every quantity and every weight at once; at this size kernels block their sums by layout and alignment."""
    plain, ready = run(PRESETS["minimind3"]), prepare(PRESETS["minimind3"])
    edits = [Edit(name, (), plain[name]) for name in plain.names]
    edits += [Edit(name, (0,) * w.ndim, w.flat[0]) for name, w in plain.weights.items()]
    again = capture(ready, *edits)
    for name in plain.names:
        np.testing.assert_array_equal(again[name], plain[name], err_msg=name)
        assert again.tensor(name).stride() == plain.tensor(name).stride(), f"{name}: another layout"


@pytest.mark.parametrize(("case", "name"), TAPS, ids=ids(TAPS))
def test_zeroing_any_tap_changes_the_output(case: str, name: str) -> None:
    plain = run(CASES[case])
    zero = capture(prepare(CASES[case]), Edit(name, (), 0.0))
    assert not zero[name].any() and zero.edited == (name,)
    np.testing.assert_array_equal(zero.before(name), plain[name])
    if case == "toy" and name in ("q", "k", "q_norm", "k_norm", "q_rot", "k_rot", "present_k", "scores"):
        # In the toy all scores of a row are equal anyway, so zeros blend the same values: the scores tell.
        assert not np.array_equal(zero["scores"], plain["scores"])
        return
    assert not np.array_equal(zero["resid_post"], plain["resid_post"])


@pytest.mark.parametrize(("case", "name"), WEIGHTS, ids=ids(WEIGHTS))
def test_zeroing_any_weight_changes_what_it_makes(case: str, name: str) -> None:
    plain = run(CASES[case])
    if name.startswith("mlp.experts.") and float(name.split(".")[2]) not in plain["expert_index"]:
        pytest.skip("no token goes to this expert")
    zero = capture(prepare(CASES[case]), Edit(name, (), 0.0))
    assert not zero.weights[name].any()
    np.testing.assert_array_equal(zero.before(name), plain.weights[name])
    moved = {n for n in plain.names if not np.array_equal(zero[n], plain[n])}
    readers = {q.name for q in QUANTITIES.values() if name in q.inputs} & set(plain.names)
    assert readers <= moved if case != "toy" else moved
    assert "resid_post" in moved or case == "toy"


@pytest.mark.parametrize("path", ["auto", "flash"])
@pytest.mark.parametrize("name", SCORES)
def test_an_edit_of_scores_is_never_ignored(path: str, name: str) -> None:
    ready = prepare(CASES["capstone"])
    trace = capture(ready, Edit(name, (0, 1, 4, 2), -2.5), keep_scores=path == "auto")
    assert trace[name][0, 1, 4, 2] == -2.5
    assert not np.array_equal(trace["heads"][0, 1, 4], run(CASES["capstone"])["heads"][0, 1, 4])
    assert np.array_equal(trace["heads"][0, 0], run(CASES["capstone"])["heads"][0, 0])


def test_an_edit_moves_only_what_depends_on_it() -> None:
    plain, edited = run(CASES["capstone"]), capture(prepare(CASES["capstone"]), Edit("attn_norm", (1, 3, 0), 4.0))
    np.testing.assert_array_equal(edited["resid_post"][0], plain["resid_post"][0])
    np.testing.assert_array_equal(edited["resid_post"][1, :3], plain["resid_post"][1, :3])
    assert (edited["resid_post"][1, 3:] != plain["resid_post"][1, 3:]).any(-1).all()


def test_none_stands_for_every_position(ready: Prepared) -> None:
    trace = capture(ready, Edit("attn_out", (None, 2, None), 0.0), Edit("self_attn.o_proj.weight", (3, None), 0.0))
    assert not trace["attn_out"][:, 2].any() and trace["attn_out"][:, 1, :3].all()
    assert not trace.weights["self_attn.o_proj.weight"][3].any() and not trace["attn_out"][..., 3].any()


def test_a_whole_tensor_is_set_from_nested_values(ready: Prepared) -> None:
    wanted = np.linspace(-1, 1, 2 * 5 * 12).reshape(2, 5, 12)
    trace = capture(ready, Edit("ffn_out", (), wanted))
    np.testing.assert_array_equal(trace["ffn_out"], wanted.astype(np.float32))
    np.testing.assert_array_equal(trace["resid_post"], trace["resid_mid"] + trace["ffn_out"])


def test_later_edits_of_a_cell_win_and_edits_add_up(ready: Prepared) -> None:
    trace = capture(
        ready,
        Edit("q", (0, 0, 0, 0), 1.0),
        Edit("q", (0, 0, 0, 1), 2.0),
        Edit("q", (0, 0, 0, 0), 3.0),
        Edit("self_attn.q_proj.weight", (0, 0), 4.0),
        Edit("self_attn.q_proj.weight", (0, 1), 5.0),
    )
    assert trace["q"][0, 0, 0, :2].tolist() == [3.0, 2.0]
    assert trace.weights["self_attn.q_proj.weight"][0, :2].tolist() == [4.0, 5.0]


def test_an_edit_stands_above_a_switch(ready: Prepared) -> None:
    trace = capture(ready, Edit("heads", (0, 1, 0, 0), 5.0), switches=["only_head:0"])
    assert trace["heads"][0, 1, 0, 0] == 5.0 and not trace["heads"][0, 1, 1:].any()


def test_an_edit_touches_neither_inputs_nor_parameters(ready: Prepared) -> None:
    stream = ready.hidden_states.clone()
    state = {name: value.clone() for name, value in ready.block.state_dict().items()}
    names = [n for n in run(CASES["capstone"]).names if n in hooks_on(ready.block)]
    capture(ready, *(Edit(name, (), 0.5) for name in (*names, *state)))
    torch.testing.assert_close(ready.hidden_states, stream, rtol=0, atol=0)
    for name, value in ready.block.state_dict().items():
        torch.testing.assert_close(value, state[name], rtol=0, atol=0)
    assert ready.hidden_states._version == 0


def test_an_edit_of_the_chosen_expert_routes_the_token_there() -> None:
    spec = CASES["moe"]
    plain = run(spec)
    chosen = int(plain["expert_index"][0, 1, 0])
    other = (chosen + 1) % spec.experts
    trace = capture(prepare(spec), Edit("expert_index", (0, 1, 0), float(other)))
    assert trace["expert_index"][0, 1, 0] == other and trace["expert_index"].dtype == np.int64
    weight = trace.weights[f"mlp.experts.{other}.gate_proj.weight"].astype(np.float64)
    np.testing.assert_allclose(trace["expert_gate"][0, 1, 0], weight @ trace["ffn_norm"][0, 1], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(trace["ffn_out"][0, 0], plain["ffn_out"][0, 0])


def test_an_expert_that_nobody_chose_is_no_obstacle() -> None:
    spec = CASES["moe"]
    trace = capture(prepare(spec), Edit("expert_index", (), 2.0))
    assert (trace["expert_index"] == 2).all() and np.isfinite(trace["resid_post"]).all()
    assert trace["expert_hidden"].shape == (2, 4, 1, 6)


def test_positions_and_the_cache_can_be_edited() -> None:
    ready = prepare(CASES["cache"])
    trace = capture(ready, Edit("rope_cos", (0, 1), 0.25), Edit("past_k", (None, 0, 1, None), 0.0))
    assert trace["rope_cos"][0, 1] == 0.25 and trace.edited == ("past_k", "rope_cos")
    assert not trace["present_k"][:, 0, 1].any() and trace.before("past_k")[:, 0, 1].all()
    assert ready.past_key_value is not None and ready.past_key_value[0][:, 0, 1].all()
