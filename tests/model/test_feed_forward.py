from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from explorer.model import FeedForward, MiniMindConfig, MOEFeedForward
from explorer.model.feed_forward import Dispatch
from tests.model.helpers import close, configs, normal, randomise, small, tiny, watch

EXPERT_TAPS = ("expert_index", "expert_weight", "expert_gate", "expert_up", "expert_hidden", "expert_out")


def experts_of(config: MiniMindConfig) -> MOEFeedForward:
    layer = randomise(MOEFeedForward(config))
    assert isinstance(layer, MOEFeedForward)
    return layer


def numpy_weights(module: torch.nn.Module) -> dict[str, np.ndarray]:
    return {name: w.detach().double().numpy() for name, w in module.named_parameters()}


def swiglu(x: np.ndarray, gate: np.ndarray, up: np.ndarray, down: np.ndarray) -> np.ndarray:
    """One token, in float64."""
    opened = gate @ x
    return down @ (opened / (1 + np.exp(-opened)) * (up @ x))


def test_swiglu_is_its_formula() -> None:
    layer, x = randomise(FeedForward(tiny())), normal(2, 3, 24)
    weight = numpy_weights(layer)
    matrices = [weight[f"{name}_proj.weight"] for name in ("gate", "up", "down")]
    expected = [[swiglu(token, *matrices) for token in row] for row in x.double().numpy()]
    close(layer(x), np.array(expected))


@pytest.mark.parametrize(("name", "function"), [("gelu", torch.nn.GELU()), ("relu", torch.nn.ReLU())])
def test_other_activations(name: str, function: torch.nn.Module) -> None:
    layer, x = randomise(FeedForward(tiny(hidden_act=name))), normal(1, 2, 24)
    seen = watch(layer)
    layer(x)
    close(seen["hidden"], function(seen["gate"]) * seen["up"], 1e-6)


@small
@given(config=configs(use_moe=True))
def test_experts_are_a_weighted_sum_token_by_token(config: MiniMindConfig) -> None:
    layer, x = experts_of(config), normal(2, 3, config.hidden_size)
    weight = numpy_weights(layer)
    for got, token in zip(layer(x).flatten(0, 1), x.double().numpy().reshape(-1, config.hidden_size), strict=True):
        logits = weight["gate.weight"] @ token
        probs = np.exp(logits - logits.max())
        probs /= probs.sum()
        best = sorted(range(config.num_experts), key=lambda e: -probs[e])[: config.num_experts_per_tok]
        total = sum(probs[e] for e in best) if config.norm_topk_prob else 1.0
        expected = np.zeros(config.hidden_size)
        for e in best:
            matrices = [weight[f"experts.{e}.{name}_proj.weight"] for name in ("gate", "up", "down")]
            expected += probs[e] / total * swiglu(token, *matrices)
        close(got, expected)


@small
@given(config=configs(use_moe=True, norm_topk_prob=True))
def test_identical_experts_are_one_dense_layer(config: MiniMindConfig) -> None:
    experts, x = experts_of(config), normal(2, 4, config.hidden_size)
    dense = randomise(FeedForward(tiny(**(config.to_dict() | {"intermediate_size": config.moe_intermediate_size}))))
    for expert in experts.experts:
        expert.load_state_dict(dense.state_dict())
    close(experts(x), dense(x))


@pytest.mark.parametrize("k", [1, 3])
def test_taps_show_slots_and_their_weighted_sum(k: int) -> None:
    config = tiny(use_moe=True, num_experts_per_tok=k, moe_intermediate_size=7)
    layer, x = experts_of(config), normal(2, 5, 24)
    seen = watch(layer)
    out = layer(x)
    shapes = {name: tuple(value.shape) for name, value in seen.items()}
    assert shapes == {
        "router_logits": (2, 5, 4),
        "router_probs": (2, 5, 4),
        "expert_index": (2, 5, k),
        "expert_weight": (2, 5, k),
        "expert_gate": (2, 5, k, 7),
        "expert_up": (2, 5, k, 7),
        "expert_hidden": (2, 5, k, 7),
        "expert_out": (2, 5, k, 24),
        "ffn_out": (2, 5, 24),
    }
    close(out, torch.einsum("btk,btkd->btd", seen["expert_weight"], seen["expert_out"]))
    for b, t, slot in np.ndindex(2, 5, k):
        expert = layer.experts[int(seen["expert_index"][b, t, slot])]
        close(seen["expert_gate"][b, t, slot], expert.gate_proj(x[b, t]))
        close(seen["expert_out"][b, t, slot], expert(x[b, t]))


def test_the_best_expert_comes_first_and_weights_add_up() -> None:
    config = tiny(use_moe=True, num_experts_per_tok=3)
    layer = experts_of(config)
    seen = watch(layer)
    layer(normal(2, 5, 24))
    chosen = seen["router_probs"].gather(-1, seen["expert_index"])
    assert (chosen.diff(dim=-1) <= 0).all()
    close(seen["expert_weight"].sum(-1), torch.ones(2, 5), 1e-6)
    layer.normalise = False
    layer(normal(2, 5, 24))
    assert torch.equal(seen["expert_weight"], chosen)


@pytest.mark.parametrize("name", EXPERT_TAPS)
def test_an_edit_of_any_slot_flows_on_to_that_token_alone(name: str) -> None:
    config = tiny(use_moe=True, num_experts_per_tok=2)
    layer, x = experts_of(config), normal(1, 3, 24)
    before = layer(x)

    def edit(_module: torch.nn.Module, _inputs: Any, value: Tensor) -> Tensor:
        changed = value.clone()
        changed[0, 1, 0] = (value[0, 1, 0] + 1) % 4 if name == "expert_index" else value[0, 1, 0] + 1
        return changed

    layer.taps[name].register_forward_hook(edit)
    changed = (layer(x) - before).abs().amax(-1)[0]
    assert changed[1] > 1e-3
    assert max(changed[0], changed[2]) < 1e-5  # other rows of an expert's matrix may round differently, no more


def test_an_edited_choice_is_routed_and_weighted_anew() -> None:
    config = tiny(use_moe=True, num_experts_per_tok=1, norm_topk_prob=False)
    layer, x = experts_of(config), normal(1, 3, 24)
    seen = watch(layer)
    layer.taps["expert_index"].register_forward_hook(lambda _m, _i, value: torch.full_like(value, 2))
    out = layer(x)
    close(out, seen["router_probs"][..., 2:3] * layer.experts[2](x))


def test_an_expert_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="from 0 to 4; the experts are 0 to 3"):
        Dispatch(torch.tensor([[0, 4]]), 4)
    with pytest.raises(ValueError, match="from -1 to 0"):
        Dispatch(torch.tensor([[0, -1]]), 4)


@given(choice=st.lists(st.integers(0, 3), min_size=0, max_size=12))
@small
def test_dispatch_brings_every_row_back(choice: list[int]) -> None:
    """With the expert's number added by the expert itself, each row shows who had it."""
    rows = torch.arange(float(len(choice)))[:, None] * 10

    class Adds(torch.nn.Module):
        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

        def forward(self, x: Tensor) -> Tensor:
            return x + self.number

    out = Dispatch(torch.tensor(choice, dtype=torch.int64), 4).apply([Adds(e) for e in range(4)], rows)
    assert out[:, 0].tolist() == [10 * row + e for row, e in enumerate(choice)]


def test_an_idle_expert_stays_in_the_gradient_graph() -> None:
    config = tiny(use_moe=True)
    layer = experts_of(config).train()
    layer.taps["expert_index"].register_forward_hook(lambda _m, _i, value: torch.zeros_like(value))
    layer(normal(1, 3, 24)).sum().backward()
    for e, expert in enumerate(layer.experts):
        for parameter in expert.parameters():
            assert parameter.grad is not None
            assert bool(parameter.grad.any()) == (e == 0)


def test_top_1_with_renormalised_weights_gives_the_router_no_gradient() -> None:
    """The only weight is p/p = 1 whatever p is; only the balancing loss trains the router then."""

    def router_gradient(norm_topk_prob: bool, of_balance: bool) -> float:
        layer = experts_of(tiny(use_moe=True, num_experts_per_tok=1, norm_topk_prob=norm_topk_prob)).train()
        out = layer(normal(1, 5, 24))
        (layer.aux_loss if of_balance else out.square().mean()).backward()
        return float(layer.gate.weight.grad.abs().max())

    assert router_gradient(norm_topk_prob=True, of_balance=False) < 1e-5
    assert router_gradient(norm_topk_prob=False, of_balance=False) > 1e-2
    assert router_gradient(norm_topk_prob=True, of_balance=True) > 1e-4


@pytest.mark.parametrize("k", [1, 2])
def test_the_balancing_loss_is_its_formula_in_training_only(k: int) -> None:
    config = tiny(use_moe=True, num_experts_per_tok=k, router_aux_loss_coef=0.3)
    layer, x = experts_of(config), normal(2, 5, 24)
    seen = watch(layer)
    layer(x)
    assert layer.aux_loss == 0
    layer.train()(x)
    probs, index = seen["router_probs"].detach().reshape(10, 4).numpy(), seen["expert_index"].reshape(10, k).numpy()
    expected = sum(4 * 0.3 * (index == e).sum() / 10 * probs[:, e].mean() for e in range(4))
    assert layer.aux_loss is not None
    close(layer.aux_loss, torch.tensor(expected), 1e-6)


def test_even_routing_has_the_smallest_balancing_loss() -> None:
    layer = experts_of(tiny(use_moe=True, num_experts_per_tok=1, router_aux_loss_coef=1.0)).train()
    even, skewed = torch.full((1, 4, 4), 0.25), torch.tensor([0.97, 0.01, 0.01, 0.01]).expand(1, 4, 4)
    everyone, one = torch.arange(4).view(1, 4, 1), torch.zeros(1, 4, 1, dtype=torch.int64)
    assert layer._balance(even, everyone) == 1
    assert layer._balance(skewed, one) > 3.8
