"""A block of one's own: what its taps showed is there, and nothing else is."""

from __future__ import annotations

import math
import re
import warnings

import numpy as np
import pytest
import torch
from torch import nn

from explorer import Edit, run
from explorer.capture import CaptureError, NotRecorded, ShapeMismatch, TapWarning, Trace, record
from explorer.inspector import inspect
from explorer.model.block import MiniMindBlock
from explorer.quantities import QUANTITIES, SCORE_TAPS, UnknownName
from explorer.run import prepare
from tests.capture.foreign import ALL, DH, NEEDED, B, D, F, H, Port, T, by_hand, given, recorded
from tests.capture.recording import capture
from tests.core.cases import CASES

GIVEN = {"rope_cos", "rope_sin"}

# ------------------------------------------------------------------------------------------------ nothing invented


@pytest.mark.parametrize("taps", [NEEDED, (*NEEDED, "q_rot"), (*NEEDED, "probs"), ALL], ids=len)
@pytest.mark.parametrize("keep_scores", [True, False])
def test_a_quantity_is_there_only_if_its_tap_fired(taps: tuple[str, ...], keep_scores: bool) -> None:
    trace = recorded(taps, keep_scores=keep_scores)
    there = set(taps) if keep_scores else set(taps) - set(SCORE_TAPS)
    assert set(trace.names) == set(trace) == there | GIVEN and not trace.recomputed
    assert [row.name for row in trace.ledger()] == list(trace.names)
    for name in trace:
        assert trace[name].shape == trace.shape(name) and trace.dtype(name) == "float32"
    for name in set(QUANTITIES) - set(trace.names):
        for look_up in (lambda n: trace[n], trace.axes, trace.shape, trace.dtype, trace.tensor, trace.before):
            with pytest.raises(NotRecorded):
                look_up(name)
        index = (0,) * len(QUANTITIES[name].axes)
        for look_up in (trace.value, trace.computed, trace.explain):
            with pytest.raises(NotRecorded):
                look_up(name, index)


@pytest.mark.parametrize("name", SCORE_TAPS)
def test_scores_without_a_tap_are_not_those_of_another_block(name: str) -> None:
    trace = recorded((*NEEDED, "q_rot", "k_rot", "v"))
    with pytest.raises(NotRecorded, match=f"no tap '{name}', so there is no {name} of this run. Add nn.Identity"):
        trace.rows(name, 0, 0)
    with pytest.raises(NotRecorded):
        inspect(trace, name, (0, 0, 1, 0))
    with pytest.raises(NotRecorded):
        trace.figure("attention")


def test_recorded_scores_are_what_the_block_computes() -> None:
    trace, truth = recorded(), by_hand()
    for name, values in truth.items():
        np.testing.assert_allclose(trace[name], values, rtol=1e-5, atol=1e-5, err_msg=name)
    np.testing.assert_allclose(trace.rows("probs", 1, 1), truth["probs"][1, 1], rtol=1e-5)
    np.testing.assert_allclose(trace.value("probs", (0, 1, 0, 2)), truth["probs"][0, 1, 0, 2], rtol=1e-5)
    assert trace.figure("attention") is not None


def test_what_the_mask_hides_is_read_off_the_scores() -> None:
    assert not recorded().masked.any() and recorded().masked.shape == (B, 1, T, T)
    with pytest.raises(NotRecorded, match="which keys its mask hides is not known"):
        recorded(NEEDED).masked  # noqa: B018

    class Masked(Port):
        def tap(self, name: str, value: torch.Tensor) -> torch.Tensor:
            value = value.masked_fill(torch.eye(T, dtype=torch.bool), -math.inf) if name == "scores" else value
            return super().tap(name, value)

    masked = record(Masked(), *given()).masked
    np.testing.assert_array_equal(masked, np.broadcast_to(np.eye(T, dtype=bool), (B, 1, T, T)))


def test_a_subclass_of_the_explorers_block_is_a_block_of_ones_own() -> None:
    ready = prepare(CASES["capstone"])

    class Other(MiniMindBlock):
        """It might compute anything."""

    other = object.__new__(Other)
    other.__dict__ = ready.block.__dict__
    trace = record(other, ready.hidden_states, ready.position_embeddings, keep_scores=False)
    assert not trace.recomputed and "probs" not in trace and trace.aux_loss is None
    own = record(ready.block, ready.hidden_states, ready.position_embeddings, keep_scores=False)
    np.testing.assert_allclose(own["probs"], run(CASES["capstone"])["probs"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("scale", [1, 2])
def test_memory_is_called_shared_where_it_is(scale: int) -> None:
    class Normed(Port):
        def tap(self, name: str, value: torch.Tensor) -> torch.Tensor:
            value = super().tap(name, value)
            return super().tap("q_norm", value if scale == 1 else value * scale) if name == "q" else value

    row = {row.name: row for row in record(Normed((*NEEDED, "q_norm")), *given()).ledger()}["q_norm"]
    assert (row.note, row.flops) == (("same memory as q", 0) if scale == 1 else ("", 4 * B * T * H * DH))


# ------------------------------------------------------------------------------------------------------------ sizes


@pytest.mark.parametrize("name", ["gate", "up", "hidden"])
def test_the_hidden_width_is_read_off_any_tap_that_has_it(name: str) -> None:
    trace = recorded((*NEEDED, name))
    assert trace.sizes["F"] == F and trace[name].shape == trace.shape(name) == (B, T, F)
    assert recorded(NEEDED).sizes["F"] == 0


@pytest.mark.parametrize(
    ("name", "shape", "letters"),
    [
        ("router_logits", (B, T, 5), {"E": 5}),
        ("router_probs", (B, T, 5), {"E": 5}),
        ("expert_weight", (B, T, 2), {"k": 2}),
        ("expert_up", (B, T, 2, 7), {"k": 2, "F": 7}),
        ("expert_out", (B, T, 2, D), {"k": 2}),
    ],
)
def test_sizes_of_experts_are_read_off_any_tap_that_has_them(
    name: str, shape: tuple[int, ...], letters: dict[str, int]
) -> None:
    trace = showing(name, torch.ones(shape))
    assert {letter: trace.sizes[letter] for letter in letters} == letters
    assert trace[name].shape == shape == trace.shape(name)


def showing(name: str, value: torch.Tensor) -> Trace:
    """A run in which a tap shows a given tensor."""

    class Showing(Port):
        def forward(self, x: torch.Tensor, position_embeddings: object) -> torch.Tensor:
            self.taps[name](value)
            return super().forward(x, position_embeddings)

    return record(Showing((*NEEDED, name)), *given())


def test_a_size_that_taps_contradict_is_an_error() -> None:
    with pytest.raises(ShapeMismatch, match="concat is declared B×T×h·d_h = 2×3×8, but 2×3×7 was observed"):
        showing("concat", torch.ones(B, T, 7))
    with pytest.raises(ShapeMismatch, match="expert_up is declared B×T×k×d_ff, which is 4 axes, but 2×10 was observed"):
        showing("expert_up", torch.ones(B, F))


# ---------------------------------------------------------------------------------------------------- wrong names


def test_an_identity_named_almost_like_a_quantity_is_told_once() -> None:
    block = Port(NEEDED, prob=nn.Identity(), extra=nn.ModuleDict({"head": nn.Identity()}))
    with pytest.warns(TapWarning) as caught:
        record(block, *given())
    assert len(caught) == 1 and caught[0].filename == __file__
    told = str(caught[0].message)
    assert "prob (did you mean probs?); extra.head (did you mean heads?)" in told and "ModuleDict taps" in told


def test_other_identities_are_nobodys_business() -> None:
    names = ("norm", "attn_drop", "drop_path", "ls1", "act", "q_norm", "head_drop", "dropout")
    block = Port(NEEDED, **{name: nn.Identity() for name in names})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        record(block, *given())
        capture(prepare(CASES["toy"]))


def test_a_tap_of_no_quantity_says_what_was_meant() -> None:
    with (
        pytest.raises(ShapeMismatch, match="A tap is named 'score', .* Did you mean 'scores'"),
        pytest.warns(TapWarning, match="taps.score"),
    ):
        showing("score", torch.ones(1))


def test_a_tap_that_did_not_fire_is_told_from_one_that_is_not_there() -> None:
    trace = recorded((*NEEDED, "concat"))
    with pytest.raises(NotRecorded, match=r"The tap 'concat' did not fire in this run, .*self\.taps\[\"concat\"\]"):
        trace["concat"]
    with pytest.raises(NotRecorded, match="This block has no tap 'ffn_norm'"):
        trace["ffn_norm"]
    with pytest.raises(UnknownName, match="No quantity or weight is named 'ffn_nrm'. Did you mean 'ffn_norm'"):
        trace["ffn_nrm"]
    with pytest.raises(NotRecorded, match="This block has no tap 'q_norm', .*Recorded: resid_pre, rope_cos"):
        trace.figure("rope")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("router_probs", "This run's feed-forward is dense, so there is no router_probs. Run a RunSpec with experts."),
        ("past_k", "This run has no cache, so there is no past_k. Give record past_key_value"),
    ],
)
def test_what_a_run_of_the_explorers_block_lacks_says_why(name: str, why: str) -> None:
    with pytest.raises(NotRecorded, match=re.escape(why)):
        run(CASES["capstone"])[name]
    with pytest.raises(
        NotRecorded, match="is a mixture of experts, so there is no gate. Run a RunSpec without experts"
    ):
        run(CASES["moe"])["gate"]


# ------------------------------------------------------------------------------------------ no formula of another


@pytest.mark.parametrize("name", [name for name in ALL if name != "resid_pre"])
def test_a_cell_of_it_has_its_value_and_no_equation(name: str) -> None:
    trace = recorded()
    index = tuple(n - 1 for n in trace.shape(name))
    found = inspect(trace, name, index)
    assert found.value == found.computed == found.exact == float(trace[name][index])
    assert found.given and found.cells == () and found.tree["op"] == "cell"
    with pytest.raises(ValueError, match=f"{name} was recorded; how this block computes it is its own"):
        trace.explain(name, index)


def test_an_edited_cell_of_it_keeps_what_was_computed() -> None:
    found = inspect(recorded(edits=[Edit("probs", (0, 0, 1, 2), 0.75)]), "probs", (0, 0, 1, 2))
    assert found.edited and found.value == 0.75
    assert found.computed == pytest.approx(by_hand()["probs"][0, 0, 1, 2], rel=1e-5)


def test_a_weight_that_only_it_has_can_be_looked_at() -> None:
    trace = recorded()
    found = inspect(trace, "self_attn.q_proj.bias", (3,))
    assert found.value == float(trace.weights["self_attn.q_proj.bias"][3]) and found.given
    assert "self_attn.q_proj.bias" in found.mathml
    assert trace.shape("self_attn.q_proj.bias") == (D,)
    with pytest.raises(NotRecorded, match="is a weight of this block's own, so its axes have no letters"):
        trace.axes("self_attn.q_proj.bias")


def test_the_explorers_block_with_a_bias_put_in_has_no_equation() -> None:
    ready = prepare(CASES["capstone"])
    block = MiniMindBlock.__new__(MiniMindBlock)
    block.__dict__.update(ready.block.__dict__)
    block._modules = dict(ready.block._modules)
    block.self_attn = type(ready.block.self_attn).__new__(type(ready.block.self_attn))
    block.self_attn.__dict__.update(ready.block.self_attn.__dict__)
    block.self_attn._modules = {**ready.block.self_attn._modules, "q_proj": nn.Linear(12, 12)}
    trace = record(block, ready.hidden_states, ready.position_embeddings)
    assert inspect(trace, "q", (0, 0, 0, 0)).given
    assert not inspect(run(CASES["capstone"]), "q", (0, 0, 0, 0)).given


# -------------------------------------------------------------------------------------------------------- switches


@pytest.mark.parametrize(
    ("switch", "taps", "message"),
    [
        ("no_mask", ALL, "computes 'masked_scores' in this run, which the switch no_mask replaces"),
        ("no_rope", ALL, "computes 'q_norm' in this run, which a switch reads"),
        ("expert:0", ALL, "computes 'expert_index' in this run, which the switch expert replaces"),
    ],
)
def test_a_switch_that_finds_no_tap_is_refused(switch: str, taps: tuple[str, ...], message: str) -> None:
    with pytest.raises(CaptureError, match=message):
        recorded(taps, switches=[switch])


def test_a_switch_whose_taps_are_there_works() -> None:
    trace = recorded(switches=["only_head:1"])
    assert not trace["heads"][:, 0].any()
    np.testing.assert_allclose(trace["heads"][:, 1], by_hand()["heads"][:, 1], rtol=1e-4, atol=1e-5)
