"""The table of quantities against the contract, the model's taps, its weights, and operations counted by hand."""

from __future__ import annotations

import inspect
from dataclasses import replace

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from explorer import PRESETS, RunSpec, run
from explorer.axes import AXES
from explorer.capture.recorder import find_taps
from explorer.expression import Expr, Sum
from explorer.quantities import (
    GIVEN,
    QUANTITIES,
    WEIGHTS,
    UnknownName,
    expert_weight_name,
    unknown_name,
    weight_of,
)
from explorer.run import prepare
from tests.core.cases import CASES

# Names, order, stages and axes that others outside the repository rely on.
X, Q, KV, S = "B T D", "B H T Dh", "B Hkv T Dh", "B H Tq Tk"
CONTRACT = [
    (0, "resid_pre", X), (1, "attn_norm", X), (2, "q", Q), (2, "k", KV), (2, "v", KV), (2, "q_norm", Q),
    (2, "k_norm", KV), (3, "q_rot", Q), (3, "k_rot", KV), (4, "scores", S), (4, "masked_scores", S), (5, "probs", S),
    (5, "heads", "B H Tq Dh"), (6, "concat", "B T C"), (6, "attn_out", X), (7, "resid_mid", X), (8, "ffn_norm", X),
    (8, "gate", "B T F"), (8, "up", "B T F"), (8, "hidden", "B T F"), (8, "router_logits", "B T E"),
    (8, "router_probs", "B T E"), (8, "expert_index", "B T k"), (8, "expert_weight", "B T k"), (8, "ffn_out", X),
    (8, "resid_post", X),
]  # fmt: skip


def test_names_order_stages_and_axes_are_the_contract() -> None:
    names = [name for _, name, _ in CONTRACT]
    assert [name for name in QUANTITIES if name in names] == names
    for stage, name, axes in CONTRACT:
        assert (QUANTITIES[name].stage, QUANTITIES[name].axes) == (stage, tuple(axes.split())), name
    extra = set(QUANTITIES) - set(names)
    assert extra == {
        "past_k", "past_v", "rope_cos", "rope_sin", "present_k", "present_v",
        "expert_gate", "expert_up", "expert_hidden", "expert_out",
    }  # fmt: skip
    assert [q.stage for q in QUANTITIES.values()] == sorted(q.stage for q in QUANTITIES.values())


def test_every_declaration_is_complete() -> None:
    for name, quantity in QUANTITIES.items():
        assert quantity.name == name and quantity.latex and quantity.title
        assert quantity.role in {"resid", "q", "k", "v", "attn", "ffn", "score", "prob"}
        assert quantity.scale in {"signed", "unit", "index"} and quantity.only in {"", "dense", "moe"}
        assert set(quantity.inputs) <= set(QUANTITIES) | set(WEIGHTS)
        assert quantity.mixes == "" or quantity.mixes in AXES
        assert (quantity.formula is None) == (name in GIVEN) == (quantity.stage == 0)
        if quantity.formula:
            assert len(inspect.signature(quantity.formula).parameters) == 1 + len(quantity.axes), name
        if quantity.alias:
            assert QUANTITIES[quantity.alias].stage <= quantity.stage
    order = list(QUANTITIES)
    for name, quantity in QUANTITIES.items():
        earlier = order[: order.index(name)]
        assert all(i in earlier or i in WEIGHTS for i in quantity.inputs), name


def test_symbols_are_told_apart_within_a_stage() -> None:
    for only in ("dense", "moe"):
        shown = [(q.stage, q.latex) for q in QUANTITIES.values() if q.only in ("", only)]
        assert len(set(shown)) == len(shown)


@pytest.mark.parametrize("case", ["capstone", "moe_two", "toy"])
def test_the_models_taps_are_the_table(case: str) -> None:
    spec = CASES[case]
    taps = find_taps(prepare(spec).block)
    kind = "moe" if spec.experts else "dense"
    assert set(taps) == {q.name for q in QUANTITIES.values() if q.only in ("", kind)} - set(GIVEN) | {"resid_pre"}
    assert run(spec).names == tuple(n for n in QUANTITIES if n in taps or n in ("rope_cos", "rope_sin"))


@pytest.mark.parametrize("case", ["capstone", "grouped", "one_kv_head", "moe_two", "toy"])
def test_every_weight_of_the_model_is_declared(case: str) -> None:
    block = prepare(CASES[case]).block
    for name, parameter in block.named_parameters():
        weight = weight_of(name)
        assert weight.name == name and CASES[case].shape(name) == tuple(parameter.shape)
        assert 1 <= weight.stage <= 8 and weight.latex and weight.title
    dense = {n for n in WEIGHTS if not n.startswith("mlp.")}
    assert {n for n, _ in block.named_parameters() if not n.startswith("mlp.")} | {
        "self_attn.q_norm.weight", "self_attn.k_norm.weight",
    } == dense  # fmt: skip


def test_experts_share_the_dense_declarations() -> None:
    for part in ("gate", "up", "down"):
        name = expert_weight_name(13, part)
        weight, dense = weight_of(name), WEIGHTS[f"mlp.{part}_proj.weight"]
        assert name == f"mlp.experts.13.{part}_proj.weight"
        assert (weight.axes, weight.role, weight.stage) == (dense.axes, dense.role, dense.stage)
        assert weight.title == f"expert 13: {dense.title}" and weight.latex == f"{dense.latex}^{{(13)}}"


@pytest.mark.parametrize(
    "name",
    ["", "x", "mlp.experts.0.gate.weight", "mlp.experts.0.gate_proj.bias", "mlp.experts.².up_proj.weight",
     "mlp.experts.00.up_proj.weight", "mlp.experts.-1.up_proj.weight", "mlp.experts.0.up_proj.weight.x",
     "mlp.experts." + "9" * 5000 + ".up_proj.weight", "a" * 10**6],
)  # fmt: skip
def test_other_names_are_unknown_and_the_message_stays_short(name: str) -> None:
    with pytest.raises(UnknownName) as caught:
        weight_of(name)
    message = str(caught.value)
    assert message.startswith("No quantity or weight is named '") and "The shape ledger lists every quantity" in message
    assert len(message) < 300
    assert isinstance(caught.value, KeyError)


def test_near_names_are_offered() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'resid_pre'"):
        weight_of("resid_pr")
    assert "Did you mean 'probs'?" in str(unknown_name("Probs", ["probs", "scores"]))
    assert "Did you mean" not in str(unknown_name("zzz", ["probs"]))


@pytest.mark.parametrize("case", ["capstone", "grouped", "cache", "moe_two", "moe"])
def test_the_axis_that_is_summed_away_is_the_one_declared(case: str) -> None:
    trace = run(CASES[case])

    def sums(node: Expr) -> set[str]:
        found = {node.over} if isinstance(node, Sum) and node.over else set()
        return found.union(*(sums(child) for child in node.children()))

    for name in trace.names:
        quantity = QUANTITIES[name]
        if quantity.formula is None or name == "expert_index":
            continue
        last = tuple(n - 1 for n in trace.shape(name))
        summed = sums(trace.explain(name, last))
        if name in ("attn_norm", "ffn_norm"):
            assert summed == {"D"}
        elif name in ("q_norm", "k_norm"):
            assert summed == ({"Dh"} if trace.qk_norm else set())
        elif name == "ffn_out" and trace.moe:
            assert summed == {"k"}
        elif name == "expert_weight":
            assert summed == ({"k"} if trace.norm_topk else set())
        else:
            assert summed == ({quantity.mixes} if quantity.mixes else set()), name


@pytest.mark.parametrize("spec", [*PRESETS.values(), CASES["cache"]], ids=[*PRESETS, "cache"])
def test_operations_of_the_matrix_products_are_those_that_torch_counts(spec: RunSpec) -> None:
    spec = replace(spec, attention="explicit")
    ready = prepare(spec)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        past, mask = ready.past_key_value, ready.attention_mask
        handle = find_taps(ready.block)["probs"].register_forward_hook(lambda *_: None)  # no fused kernel
        ready.block(ready.hidden_states, ready.position_embeddings, past, False, mask)
        handle.remove()
    products = ("q", "k", "v", "scores", "heads", "attn_out", "gate", "up", "ffn_out")
    assert sum(QUANTITIES[name].flops(spec.sizes) for name in products) == counter.get_total_flops()


def test_operations_of_the_rest_grow_with_their_tensors() -> None:
    spec = CASES["moe_two"]
    twice = replace(spec, B=2 * spec.B)
    for name in run(spec).names:
        quantity = QUANTITIES[name]
        if quantity.formula is None or name.startswith("present_") or name in ("concat", "expert_index"):
            assert quantity.flops(spec.sizes) == 0, name
        else:
            assert quantity.flops(twice.sizes) == 2 * quantity.flops(spec.sizes) > 0, name
    n = spec.sizes
    one_expert_slot = 2 * n["D"] * n["F"]
    assert QUANTITIES["expert_gate"].flops(n) == n["B"] * n["T"] * n["k"] * one_expert_slot
