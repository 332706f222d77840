"""Hooks that leave nothing behind, edits that flow on, and edits that change nothing when they set what is there."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from explorer import PRESETS, Edit, RunSpec, Trace, run
from explorer.capture import CaptureError, StaleValue, record
from explorer.capture.recorder import find_taps, hooks_on
from explorer.quantities import GIVEN, QUANTITIES, UnknownName
from explorer.run import Prepared, prepare
from tests.core.cases import CASES

SCORES = ("scores", "masked_scores", "probs")


def capture(ready: Prepared, *edits: Edit, **more: Any) -> Trace:
    return record(
        ready.block, ready.hidden_states, ready.position_embeddings, ready.past_key_value, ready.attention_mask,
        edits, **more,
    )  # fmt: skip


@pytest.fixture
def ready() -> Iterator[Prepared]:
    """A block of its own, so that hooks a test leaves on it do not reach another test."""
    shared = prepare(CASES["capstone"])
    own = replace(shared, block=copy.deepcopy(shared.block), hidden_states=shared.hidden_states.clone())
    yield own
    assert not any(hooks_on(own.block).values()), "this test left hooks"


def every(case: str, *, weights: bool = False) -> list[str]:
    """The taps of a case, or the weights of its block."""
    return (
        [*run(CASES[case]).weights]
        if weights
        else [n for n in run(CASES[case]).names if n not in GIVEN] + ["resid_pre"]
    )


SOME = ("toy", "capstone", "grouped", "cache_and_padding", "moe_two_raw")


def ids(pairs: list[tuple[str, str]]) -> list[str]:
    return [f"{case}-{name}" for case, name in pairs]


TAPS = [(case, name) for case in SOME for name in every(case)]
WEIGHTS = [(case, name) for case in ("toy", "grouped", "moe_two_raw") for name in every(case, weights=True)]


# ---------------------------------------------------------------------------------------------- what is recorded


@pytest.mark.parametrize("case", SOME)
def test_every_tap_is_recorded_as_the_block_computes_it(case: str) -> None:
    """A plain hook on every tap, without the recorder, sees the same bits."""
    ready, seen = prepare(CASES[case]), {}
    handles = [
        tap.register_forward_hook(lambda _, __, out, name=name: seen.update({name: out.clone()}))
        for name, tap in find_taps(ready.block).items()
    ]
    try:
        with torch.no_grad():
            output, _ = ready.block(
                ready.hidden_states, ready.position_embeddings, ready.past_key_value, False, ready.attention_mask
            )
    finally:
        for handle in handles:
            handle.remove()
    trace = capture(ready)
    assert set(seen) == set(trace.names) - (set(GIVEN) - {"resid_pre"})
    for name, value in seen.items():
        np.testing.assert_array_equal(trace[name], value.numpy(), err_msg=name)
    np.testing.assert_array_equal(trace["resid_post"], output.numpy())


def test_recording_keeps_references_not_copies(ready: Prepared) -> None:
    trace = capture(ready)
    assert trace.tensor("resid_pre").data_ptr() == ready.hidden_states.data_ptr()
    assert trace.tensor("present_k").data_ptr() == trace.tensor("k_rot").data_ptr()
    assert not trace.tensor("q").requires_grad


def test_recording_works_for_a_block_in_training(ready: Prepared) -> None:
    ready.block.train().requires_grad_(True)
    trace = capture(ready, Edit("mlp.up_proj.weight", (0, 0), 1.0))
    assert not trace.tensor("resid_post").requires_grad
    assert all(parameter.grad is None for parameter in ready.block.parameters())


# ------------------------------------------------------------------------------------------------- hooks go away


def test_no_hook_is_left_after_success(ready: Prepared) -> None:
    capture(ready, Edit("probs", (0, 0, 1, 0), 0.5), switches=["no_rope"])
    assert not any(hooks_on(ready.block).values())


def test_no_hook_is_left_after_an_error_inside_the_block(ready: Prepared) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("halfway")

    handle = ready.block.mlp.register_forward_pre_hook(fail)
    with pytest.raises(RuntimeError, match="halfway"):
        capture(ready, Edit("self_attn.q_proj.weight", (0, 0), 1.0))
    handle.remove()
    assert not any(hooks_on(ready.block).values())
    assert capture(ready).edited == ()


def test_parameters_are_back_after_an_error_inside_the_block(ready: Prepared) -> None:
    before = dict(ready.block.named_parameters())
    handle = ready.block.mlp.register_forward_pre_hook(lambda *_: (_ for _ in ()).throw(RuntimeError("halfway")))
    with pytest.raises(RuntimeError):
        capture(ready, Edit("self_attn.q_proj.weight", (), 1.0))
    handle.remove()
    assert all(parameter is before[name] for name, parameter in ready.block.named_parameters())


def test_a_run_inside_a_run_disturbs_neither(ready: Prepared) -> None:
    inner: list[Trace] = []

    def record_again(*_: object) -> None:
        if not inner:
            inner.append(None)  # type: ignore[arg-type]
            inner[0] = capture(ready, Edit("resid_pre", (0, 0, 0), 9.0))

    alone, changed = capture(ready), capture(ready, Edit("resid_pre", (0, 0, 0), 9.0))
    handle = ready.block.mlp.register_forward_pre_hook(record_again)
    outer = capture(ready)
    handle.remove()
    for name in alone.names:
        np.testing.assert_array_equal(outer[name], alone[name])
        np.testing.assert_array_equal(inner[0][name], changed[name])
    assert not any(hooks_on(ready.block).values())


def test_a_plain_forward_of_another_thread_is_not_recorded(ready: Prepared) -> None:
    """While one thread records with an edit, a second one calls the same block without recording."""
    alone = ready.block(ready.hidden_states, ready.position_embeddings)[0].detach()
    results: list[Tensor] = []

    def plain(*_: object) -> None:
        if threading.current_thread() is threading.main_thread() and not results:
            thread = threading.Thread(
                target=lambda: results.append(ready.block(ready.hidden_states, ready.position_embeddings)[0].detach())
            )
            thread.start()
            thread.join()

    handle = ready.block.self_attn.register_forward_pre_hook(plain)
    trace = capture(ready, Edit("resid_pre", (0, 0, 0), 9.0))
    handle.remove()
    torch.testing.assert_close(results[0], alone, rtol=1e-6, atol=1e-6)
    assert trace["resid_pre"][0, 0, 0] == 9.0


# ------------------------------------------------------------------------------------------ hooks of other people


def test_hooks_of_the_user_stay_and_work(ready: Prepared) -> None:
    seen: list[float] = []
    taps = ready.block.self_attn.taps
    handles = [
        taps["probs"].register_forward_hook(lambda _, __, out: seen.append(float(out.sum()))),
        taps["v"].register_forward_hook(lambda _, __, out: out * 2),
        ready.block.register_forward_pre_hook(lambda *_: seen.append(-1.0)),
    ]
    plain = run(CASES["capstone"])
    trace = capture(ready)
    assert seen[0] == -1.0 and seen[1] == pytest.approx(2 * 3 * 5, rel=1e-6)
    np.testing.assert_array_equal(trace["v"], plain["v"] * 2)
    assert hooks_on(ready.block)["probs"] == hooks_on(ready.block)["v"] == 1
    np.testing.assert_allclose(trace["attn_out"], plain["attn_out"] * 2, rtol=1e-5, atol=1e-6)
    for handle in handles:
        handle.remove()


def test_a_hook_of_the_user_sees_the_edit(ready: Prepared) -> None:
    seen: list[Tensor] = []
    handle = ready.block.self_attn.taps["q_rot"].register_forward_pre_hook(lambda _, args: seen.append(args[0].clone()))
    capture(ready, Edit("q_norm", (0, 0, 0, 0), 7.0))
    handle.remove()
    rotated_by_nothing = seen[0][0, 0, 0]  # position 0: the turn is the identity
    assert rotated_by_nothing[0] == 7.0


# ------------------------------------------------------------------------------------------------ faults of blocks


class TwoTaps(nn.Module):
    """Like the toy's block as far as the recorder looks, with a fault of choice."""

    def __init__(self, fault: str = "") -> None:
        super().__init__()
        self.fault = fault
        names = ("resid_pre", "q", "k", "scores", "resid_post") + (("nonsense",) if fault == "undeclared" else ())
        self.taps = nn.ModuleDict({name: nn.Identity() for name in names})
        if fault == "double name":
            self.inner = nn.Module()
            self.inner.taps = nn.ModuleDict({"q": nn.Identity()})

    def forward(self, hidden_states: Tensor, position_embeddings: Any) -> Tensor:
        x = self.taps["resid_pre"](hidden_states)
        heads = x[:, None].clone()
        q = self.taps["q"](
            heads[..., :1] if self.fault == "wrong shape" else heads[0] if self.fault == "axes" else heads
        )
        if self.fault == "no k":
            return x
        k = self.taps["k"](heads.clone())
        if self.fault == "fires twice":
            self.taps["q"](q)
        scores = self.taps["scores"](heads @ heads.mT)
        if self.fault == "in place":
            k += 1
        if self.fault == "undeclared":
            self.taps["nonsense"](x)
        if self.fault == "wrong scores":
            scores = self.taps["resid_post"](scores)
        return self.taps["resid_post"](x) if self.fault != "wrong scores" else scores


def faulty(fault: str, *edits: Edit) -> Trace:
    tables = torch.ones(3, 4), torch.zeros(3, 4)
    return record(TwoTaps(fault), torch.arange(12.0).reshape(1, 3, 4), tables, edits=edits)


def test_a_sound_small_block_is_recorded() -> None:
    trace = faulty("")
    assert trace["q"].shape == (1, 1, 3, 4)
    assert trace.sizes["T"] == 3


def test_a_second_firing_is_an_error() -> None:
    with pytest.raises(CaptureError, match="'q' fired twice in one run; a record holds one value"):
        faulty("fires twice")


def test_two_taps_of_one_name_are_an_error() -> None:
    with pytest.raises(CaptureError, match="Two taps are named 'q'"):
        faulty("double name")


def test_a_module_without_taps_is_an_error() -> None:
    how = r'Linear has no taps.*self\.taps = nn\.ModuleDict\(\{"resid_pre": nn\.Identity\(\).*self\.taps\["q"\]\(q\)'
    with pytest.raises(CaptureError, match=how):
        record(nn.Linear(2, 2), torch.ones(1, 1, 2), (torch.ones(1, 2), torch.ones(1, 2)))


def test_a_value_changed_in_place_inside_the_block_is_refused() -> None:
    trace = faulty("in place")
    assert trace["q"].shape == (1, 1, 3, 4)
    with pytest.raises(StaleValue, match=r"k was changed in place after it was captured \(version 0, now 1\)"):
        trace["k"]


def test_a_value_changed_in_place_afterwards_is_refused(ready: Prepared) -> None:
    trace = capture(ready)
    ready.hidden_states[0, 0, 0] = 5
    with pytest.raises(StaleValue, match="Record again"):
        trace["resid_pre"]
    with torch.no_grad():
        ready.block.self_attn.q_proj.weight.mul_(2)
    with pytest.raises(StaleValue, match=r"self_attn\.q_proj\.weight was changed"):
        trace.weights["self_attn.q_proj.weight"]
    assert trace["attn_norm"].shape == (2, 5, 12)


def test_what_was_read_before_the_change_stays(ready: Prepared) -> None:
    trace = capture(ready)
    kept = trace["resid_pre"].copy()
    ready.hidden_states.zero_()
    np.testing.assert_array_equal(trace["resid_pre"], kept)


@pytest.mark.parametrize("case", SOME)
def test_the_model_changes_nothing_in_place_that_a_tap_shows(case: str) -> None:
    trace = run(CASES[case])
    for name in trace.names:
        trace[name]  # would raise StaleValue


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


# ------------------------------------------------------------------------------------------- edits that do not fit

REFUSED = {
    "outside": (Edit("q", (0, 0, 9, 0), 1.0), r"q has shape \[2, 3, 5, 4\]; index '\[0, 0, 9, 0\]' is outside"),
    "negative": (Edit("q", (0, 0, -1, 0), 1.0), "is outside of it. Give 4 numbers, each below its length, or None"),
    "too few": (Edit("attn_out", (0, 0), 1.0), r"attn_out has shape \[2, 5, 12\]; index '\[0, 0\]' is outside"),
    "no position": (Edit("attn_out", (0, 0, "x"), 1.0), "is outside of it"),
    "weight outside": (Edit("self_attn.q_proj.weight", (12, 0), 1.0), r"has shape \[12, 12\]; index"),
    "wrong shape": (Edit("attn_norm", (), ((1.0, 2.0),)), r"has shape \[2, 5, 12\]; the values given have \[1, 2\]"),
    "many for one": (Edit("attn_norm", (0, 0, 0), (1.0, 2.0)), "the values given have .2.. Give one number"),
    "ragged": (Edit("attn_norm", (), ((1.0, 2.0), (3.0,))), "is neither a number nor numbers of one shape"),
    "text": (Edit("attn_norm", (0, 0, 0), "much"), "attn_norm: 'much' is neither a number"),
    "nothing": (Edit("attn_norm", (0, 0, 0), None), "attn_norm: 'None' is neither a number"),
    "too large": (Edit("attn_norm", (0, 0, 0), 1e39), r"float32, which holds numbers up to 3.40282e\+38\. Set"),
    "cache": (Edit("past_k", (), 0.0), "Nothing in this block computes 'past_k' in this run"),
    "router": (Edit("router_probs", (), 0.0), "Nothing in this block computes 'router_probs'"),
}  # fmt: skip


@pytest.mark.parametrize("which", REFUSED)
def test_an_edit_that_does_not_fit_is_refused_and_leaves_no_hook(which: str, ready: Prepared) -> None:
    edit, message = REFUSED[which]
    with pytest.raises(CaptureError, match=message):
        capture(ready, edit)
    assert not any(hooks_on(ready.block).values())


def test_numbers_that_the_dtype_does_not_hold_are_refused() -> None:
    ready = prepare(replace(CASES["capstone"], dtype="float16"))
    with pytest.raises(CaptureError, match="attn_out is float16, which holds numbers up to 65504"):
        capture(ready, Edit("attn_out", (0, 0, 0), 70000.0))
    moe = prepare(CASES["moe"])
    with pytest.raises(CaptureError, match=r"expert_index holds whole numbers; '0\.5' is none"):
        capture(moe, Edit("expert_index", (0, 0, 0), 0.5))
    for expert in (7.0, -1.0):
        with pytest.raises(CaptureError, match=f"expert_index: there is no expert {expert:g}; they are 0 to 3"):
            capture(moe, Edit("expert_index", (0, 0, 0), expert))
    assert not any(hooks_on(moe.block).values())


@pytest.mark.parametrize(
    ("wrong", "near"),
    [("prob", "probs"), ("mask_scores", "masked_scores"), ("self_attn.q_prj.weight", "self_attn.q_proj.weight")],
)
def test_an_unknown_name_says_which_are_near_and_which_exist(wrong: str, near: str, ready: Prepared) -> None:
    with pytest.raises(UnknownName) as caught:
        capture(ready, Edit(wrong, (), 0.0))
    message = str(caught.value)
    assert f"named {wrong!r}. Did you mean '{near}'" in message
    assert "Known:" in message and "resid_post" in message and "mlp.down_proj.weight" in message


def test_a_mask_of_the_wrong_shape_is_refused() -> None:
    ready = prepare(CASES["cache_and_padding"])
    with pytest.raises(CaptureError, match=r"attention_mask has shape \(2, 4\); it takes \[B, P \+ T\] = \[2, 7\]"):
        capture(replace(ready, attention_mask=torch.ones(2, 4)))
    with pytest.raises(CaptureError, match=r"hidden_states has shape \(4, 8\); it takes \[B, T, D\]"):
        capture(replace(ready, hidden_states=ready.hidden_states[0]))


def test_the_mask_is_that_of_the_run_whatever_happens_to_it_later() -> None:
    ready = prepare(CASES["cache_and_padding"])
    assert ready.attention_mask is not None
    mask = ready.attention_mask.clone()
    trace = capture(replace(ready, attention_mask=mask))
    mask.zero_()
    np.testing.assert_array_equal(trace.masked, run(CASES["cache_and_padding"]).masked)


# ------------------------------------------------------------------------------------------- modes and wrappers


def test_recording_under_inference_mode_equals_recording_outside(ready: Prepared) -> None:
    plain = capture(ready, Edit("q", (0, 0, 0, 0), 1.0))
    with torch.inference_mode():
        made_inside = replace(
            ready,
            hidden_states=ready.hidden_states.clone(),
            position_embeddings=tuple(t.clone() for t in ready.position_embeddings),
        )
        assert made_inside.hidden_states.is_inference()
        trace = capture(made_inside, Edit("q", (0, 0, 0, 0), 1.0))
        for name in plain.names:
            np.testing.assert_array_equal(trace[name], plain[name])
        block = copy.deepcopy(ready.block)
    edits = Edit("q", (0, 0, 0, 0), 1.0), Edit("mlp.up_proj.weight", (0, 0), 1.0)
    trace = capture(replace(made_inside, block=block), *edits)
    for name in plain.names[:20]:
        np.testing.assert_array_equal(trace[name], capture(ready, *edits)[name])
    with torch.inference_mode(), pytest.raises(StaleValue):
        own = capture(made_inside)
        own.tensor("attn_norm").add_(1)
        own["attn_norm"]


def test_a_compiled_block_is_captured_uncompiled(ready: Prepared) -> None:
    compiled = torch.compile(ready.block, backend="eager")
    trace = capture(replace(ready, block=compiled), Edit("probs", (0, 0, 1, 0), 0.25))
    plain = capture(ready, Edit("probs", (0, 0, 1, 0), 0.25))
    for name in plain.names:
        np.testing.assert_array_equal(trace[name], plain[name])
    assert trace.norm_eps == plain.norm_eps


def test_a_wrapper_with_an_original_module_is_looked_through(ready: Prepared) -> None:
    class Wrapper(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self._orig_mod = ready.block

        def forward(self, *_: object) -> None:
            raise AssertionError("the wrapper itself must not run")

    np.testing.assert_array_equal(capture(replace(ready, block=Wrapper()))["probs"], capture(ready)["probs"])


@pytest.mark.gpu
@pytest.mark.parametrize("case", SOME)
def test_a_gpu_agrees_with_the_cpu(case: str) -> None:
    on_cpu = run(replace(CASES[case], device="cpu"))
    on_gpu = run(replace(CASES[case], device="cuda"))
    assert on_gpu.device.startswith("cuda")
    for name in on_cpu.names:
        finite = np.isfinite(on_cpu[name])
        np.testing.assert_allclose(on_gpu[name][finite], on_cpu[name][finite], rtol=1e-3, atol=1e-3, err_msg=name)
        again = run(replace(CASES[case], device="cuda", edits=[Edit(name, (), on_gpu[name])]))
        np.testing.assert_array_equal(again["resid_post"], on_gpu["resid_post"], err_msg=name)


def test_device_auto_is_what_runs(ready: Prepared) -> None:
    assert run(RunSpec(device="cpu")).device == "cpu"
