"""Row 5, Feed-forward: one SwiGLU, or a router that sends each token to some of many.

Purpose: its check. Its sentences stand in `feed_forward.md`.
Must not know: other rows, the page.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from explorer import allowance
from explorer.bridge.case import Case, apart, times
from explorer.bridge.row import Found, Point, Row
from explorer.model import feed_forward as feed_forward_module
from explorer.spec import RunSpec
from explorer.stages.source import Lines

PASSES = 8
EXPERTS = 4  # of a run that has none
READ = ("router_probs", "expert_index", "expert_weight")


@dataclass(frozen=True)
class Routed:
    """What one pass through experts gave: its output [B,T,D], and probabilities, choices and shares of the router."""

    out: Tensor
    probs: Tensor
    index: Tensor
    shares: Tensor
    aux_loss: float


class Times(nn.Module):
    """A projection whose result is multiplied, so that every expert is a known multiple of the dense one."""

    def __init__(self, projection: nn.Module, factor: float) -> None:
        super().__init__()
        self.projection, self.factor = projection, factor

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.projection(x) * self.factor
        return out


def check(spec: RunSpec) -> Found:
    """Every route returns [B,T,D]; experts that copy the dense weights give the dense output; shares add to 1."""
    case = Case.of(spec, PASSES)
    x, own = _input(case)
    dense = _dense(case)
    with torch.no_grad():
        out = dense(x)
    points = [_run(case, own, x), _formula(case, dense, x, out)]
    routes = {}
    for chosen in (1, 2):
        routes[chosen] = _route(case, dense, x, chosen, [1.0] * _experts(case))
        points.append(_copies(case, routes[chosen], out, chosen))
    points.append(_dispatch(case, dense, x, out))
    points.append(_shares(case, routes))
    points.append(_balance(case, _route(case, dense, x, 2, [1.0] * _experts(case), training=True), routes[2]))
    return Found(tuple(points))


def _input(case: Case) -> tuple[Tensor, Tensor]:
    """What the feed-forward of this run receives, and what it gives: [B,T,D] each."""
    trace = case.trace()
    return trace.tensor("ffn_norm"), trace.tensor("ffn_out")


def _experts(case: Case) -> int:
    return max(2, case.config.num_experts) if case.config.use_moe else EXPERTS


def _dense(case: Case) -> feed_forward_module.FeedForward:
    """The run's own dense feed-forward; of a run with experts, the first of them."""
    hidden = case.config.moe_intermediate_size if case.config.use_moe else case.config.intermediate_size
    prefix = "mlp.experts.0." if case.config.use_moe else "mlp."
    with torch.device("meta"):
        made = feed_forward_module.FeedForward(replace(case.config, use_moe=False, intermediate_size=hidden))
    names = [f"{name}_proj.weight" for name in ("gate", "up", "down")]
    made.load_state_dict({name: case.state[prefix + name] for name in names}, assign=True)
    return made.eval().requires_grad_(False)


def _route(
    case: Case, dense: feed_forward_module.FeedForward, x: Tensor, chosen: int, factors: list[float],
    training: bool = False,
) -> Routed:  # fmt: skip
    """x through experts that are the dense one times a factor each, `chosen` of them a token."""
    allowance.check()
    config = replace(
        case.config, use_moe=True, num_experts=len(factors), num_experts_per_tok=chosen, norm_topk_prob=True,
        router_aux_loss_coef=case.config.router_aux_loss_coef or 5e-4,
    )  # fmt: skip
    with torch.device("meta"):
        made = feed_forward_module.MOEFeedForward(config)
    made.gate.weight = nn.Parameter(_router(case, len(factors)), requires_grad=False)
    for expert, factor in zip(made.experts, factors, strict=True):
        for name in ("gate_proj", "up_proj", "down_proj"):
            setattr(expert, name, getattr(dense, name))
        if factor != 1:
            setattr(expert, "down_proj", Times(dense.down_proj, factor))  # noqa: B010 (a module takes another's place)
    made.train(training)
    seen: dict[str, Tensor] = {}
    for name in READ:
        made.taps[name].register_forward_hook(lambda module, given, out, name=name: seen.update({name: out}))
    with torch.no_grad():
        out = made(x)
    loss = float("nan") if made.aux_loss is None else float(made.aux_loss)
    probs, index, shares = (seen[name] for name in READ)
    return Routed(out, probs, index, shares, loss)


def _router(case: Case, experts: int) -> Tensor:
    """The run's own router where it has one for so many experts, else one drawn from its seed."""
    like = next(iter(case.state.values()))
    if (own := case.state.get("mlp.gate.weight")) is not None and own.shape[0] == experts:
        return own
    chance = np.random.default_rng([case.spec.seed, 2])
    drawn = chance.standard_normal((experts, case.config.hidden_size)) / np.sqrt(case.config.hidden_size)
    return torch.from_numpy(drawn).to(like.device, like.dtype)


def _run(case: Case, own: Tensor, x: Tensor) -> Point:
    wanted = (case.spec.B, case.spec.T, case.spec.d_model)
    values = {
        "shape": times(own.shape), "wanted": times(wanted), "experts": case.config.num_experts,
        "chosen": case.config.num_experts_per_tok, "hidden": case.spec.ffn_width,
    }  # fmt: skip
    return Point("run_moe" if case.config.use_moe else "run_dense", tuple(own.shape) == wanted, values)


def _formula(case: Case, dense: feed_forward_module.FeedForward, x: Tensor, out: Tensor) -> Point:
    """The dense path against (act(x W_gate) ⊙ x W_up) W_down in float64."""
    allowance.check()
    wide = x.cpu().double()
    gate, up, down = (
        getattr(dense, f"{name}_proj").weight.cpu().double().T for name in ("gate", "up", "down")
    )  # fmt: skip
    wanted = (feed_forward_module.ACTIVATIONS[case.config.hidden_act](wide @ gate) * (wide @ up)) @ down
    gap, limit = apart(out, wanted), case.tolerance
    values = {"gap": gap, "tolerance": limit, "dtype": case.dtype, "act": case.config.hidden_act}
    return Point("formula_moe" if case.config.use_moe else "formula", gap <= limit, values, case.config.use_moe)


def _copies(case: Case, routed: Routed, out: Tensor, chosen: int) -> Point:
    gap, limit = apart(routed.out, out), case.tolerance
    values = {
        "chosen": chosen, "experts": _experts(case), "shape": times(routed.out.shape), "gap": gap, "tolerance": limit,
    }  # fmt: skip
    return Point("copies", gap <= limit, values)


def _dispatch(case: Case, dense: feed_forward_module.FeedForward, x: Tensor, out: Tensor) -> Point:
    """Expert e gives e + 1 times the dense output, so the sum is known from choices and shares alone."""
    factors = [1.0 + e for e in range(_experts(case))]
    routed = _route(case, dense, x, 2, factors)
    weight = (routed.shares.cpu().double() * (routed.index.cpu().double() + 1)).sum(-1, keepdim=True)
    gap, limit = apart(routed.out, weight * out.cpu().double()), case.tolerance
    loads = torch.bincount(routed.index.flatten().cpu(), minlength=len(factors)).tolist()
    values = {"experts": len(factors), "loads": ", ".join(map(str, loads)), "gap": gap, "tolerance": limit}
    return Point("dispatch", gap <= limit, values)


def _shares(case: Case, routes: dict[int, Routed]) -> Point:
    """Probabilities over all experts, and shares of the chosen ones after they were divided by their sum."""
    sums = [x.cpu().double().sum(-1) for r in routes.values() for x in (r.probs, r.shares)]
    gap = max(float((total - 1).abs().max()) for total in sums)
    values: dict[str, object] = {"gap": gap, "tolerance": case.tolerance}
    off = case.config.use_moe and not case.config.norm_topk_prob
    if off:
        own = case.trace()["expert_weight"].sum(-1)
        values |= {"low": float(own.min()), "high": float(own.max())}
    return Point("shares_off" if off else "shares", gap <= case.tolerance, values, off)


def _balance(case: Case, training: Routed, resting: Routed) -> Point:
    """The auxiliary loss in training against coef · E · Σ load · mean(p), and none at rest."""
    probs, index = training.probs.cpu().double().numpy(), training.index.cpu().numpy()
    experts = probs.shape[-1]
    load = np.bincount(index.ravel(), minlength=experts) / index[..., 0].size
    coefficient = case.config.router_aux_loss_coef or 5e-4
    wanted = coefficient * experts * float((load * probs.reshape(-1, experts).mean(0)).sum())
    holds = abs(training.aux_loss - wanted) <= case.tolerance * wanted and resting.aux_loss == 0
    values = {"loss": training.aux_loss, "wanted": wanted, "rest": resting.aux_loss, "coefficient": coefficient}
    return Point("balance", holds, values)


ROW = Row(
    number=5,
    key="feed_forward",
    check=check,
    lines=(
        Lines("model.feed_forward", "FeedForward.forward"),
        Lines("model.feed_forward", "MOEFeedForward.forward"),
        Lines("model.feed_forward", "MOEFeedForward._route", "probs ="),
        Lines("model.feed_forward", "MOEFeedForward._balance", "experts ="),
    ),
)
