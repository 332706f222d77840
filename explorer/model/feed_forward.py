"""The feed-forward half of a block: SwiGLU, alone or as a mixture of experts.

Shazeer 2020, "GLU Variants Improve Transformer", section 2 (SwiGLU); Shazeer et al. 2017, "Outrageously Large Neural
Networks", section 2 (top-k gating); Fedus et al. 2021, "Switch Transformers", section 2.2 (balancing loss).

Works on each token alone; must not know attention, positions or the residual stream.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from explorer.model.config import MiniMindConfig
from explorer.model.taps import taps

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"silu": F.silu, "gelu": F.gelu, "relu": F.relu}


class SwiGLU(nn.Module):
    """The three projections of a gated feed-forward: x [..., D] -> (act(x W_gate) ⊙ x W_up) W_down [..., D]."""

    def __init__(self, width: int, hidden: int, activation: str = "silu") -> None:
        super().__init__()
        self.gate_proj = nn.Linear(width, hidden, bias=False)
        self.up_proj = nn.Linear(width, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, width, bias=False)
        self.act = ACTIVATIONS[activation]

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.down_proj(self.act(self.gate_proj(x)) * self.up_proj(x))
        return out


class FeedForward(SwiGLU):
    """The dense feed-forward of a block, with its intermediates on taps: x [B,T,D] -> [B,T,D], F features between."""

    def __init__(self, config: MiniMindConfig) -> None:
        super().__init__(config.hidden_size, config.intermediate_size, config.hidden_act)
        self.taps = taps("gate", "up", "hidden", "ffn_out")

    def forward(self, x: Tensor) -> Tensor:
        gate = self.taps["gate"](self.gate_proj(x))
        up = self.taps["up"](self.up_proj(x))
        hidden = self.taps["hidden"](self.act(gate) * up)
        ffn_out: Tensor = self.taps["ffn_out"](self.down_proj(hidden))
        return ffn_out


class Dispatch:
    """Carries rows to their experts and back.

    expert_index: int [...], the expert of each row. Rows that share an expert are laid next to one another, so each
    expert runs once, on one contiguous piece; an expert that nobody chose runs on zero rows, which keeps its
    parameters in the gradient graph (with a gradient of zero) and distributed training in step.

    Raises ValueError for an expert number outside 0 … experts − 1.
    """

    def __init__(self, expert_index: Tensor, experts: int) -> None:
        flat = expert_index.flatten()
        if flat.numel():
            lowest, highest = (int(bound) for bound in flat.aminmax())
            if lowest < 0 or highest >= experts:
                raise ValueError(
                    f"expert_index holds numbers from {lowest} to {highest}; the experts are 0 to {experts - 1}"
                )
        self.there = flat.argsort(stable=True)
        self.back = self.there.argsort()
        self.counts: list[int] = flat.bincount(minlength=experts).tolist()

    def apply(self, projections: list[nn.Module], rows: Tensor) -> Tensor:
        """Row r of the result is row r of `rows` [..., width], put through its own expert's projection."""
        pieces = torch.split(rows.flatten(0, -2)[self.there], self.counts)
        done = torch.cat([projection(piece) for projection, piece in zip(projections, pieces, strict=True)])
        return done[self.back].view(*rows.shape[:-1], done.shape[-1])


class MOEFeedForward(nn.Module):
    """Each token takes the sum of its k best experts, weighted by the router: x [B,T,D] -> [B,T,D].

    `aux_loss` holds the balancing loss of the last forward pass, a scalar, zero outside training mode; a model adds up
    its blocks'.
    """

    def __init__(self, config: MiniMindConfig) -> None:
        super().__init__()
        self.per_token = config.num_experts_per_tok
        self.normalise = config.norm_topk_prob
        self.loss_weight = config.router_aux_loss_coef
        self.gate = nn.Linear(config.hidden_size, config.num_experts, bias=False)
        self.experts = nn.ModuleList(
            SwiGLU(config.hidden_size, config.moe_intermediate_size, config.hidden_act)
            for _ in range(config.num_experts)
        )
        self.act = ACTIVATIONS[config.hidden_act]
        self.aux_loss: Tensor | None = None
        self.taps = taps(
            *("router_logits", "router_probs", "expert_index", "expert_weight"),
            *("expert_gate", "expert_up", "expert_hidden", "expert_out", "ffn_out"),
        )

    def forward(self, x: Tensor) -> Tensor:
        index, weight = self._route(x)
        dispatch = Dispatch(index, len(self.experts))
        slots = x[..., None, :].expand(*index.shape, x.shape[-1])  # [B,T,k,D]
        gate = self.taps["expert_gate"](dispatch.apply(self._each("gate_proj"), slots))
        up = self.taps["expert_up"](dispatch.apply(self._each("up_proj"), slots))
        hidden = self.taps["expert_hidden"](self.act(gate) * up)
        out = self.taps["expert_out"](dispatch.apply(self._each("down_proj"), hidden))
        ffn_out: Tensor = self.taps["ffn_out"]((weight[..., None] * out).sum(-2))
        return ffn_out

    def _route(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The experts of each token, best first, and their weights: int64 and float [B,T,k]."""
        probs = self.taps["router_probs"](self.taps["router_logits"](self.gate(x)).softmax(-1))
        index = self.taps["expert_index"](probs.topk(self.per_token, dim=-1).indices)
        weight = probs.gather(-1, index)
        if self.normalise:
            weight = weight / (weight.sum(-1, keepdim=True) + 1e-20)
        self.aux_loss = self._balance(probs, index) if self.training else probs.new_zeros(())
        return index, self.taps["expert_weight"](weight)

    def _balance(self, probs: Tensor, index: Tensor) -> Tensor:
        """coef · E · Σ_e load_e · mean(p_e): smallest when every expert gets the same share of tokens.

        load_e: how many of a token's k slots expert e takes, averaged over all tokens.
        """
        experts = probs.shape[-1]
        load = F.one_hot(index, experts).sum(-2).flatten(0, -2).float().mean(0)
        return (load * probs.flatten(0, -2).mean(0)).sum() * experts * self.loss_weight

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles leave out the loss: it belongs to one forward pass and holds its whole graph."""
        return {**self.__dict__, "aux_loss": None}

    def _each(self, projection: str) -> list[nn.Module]:
        return [getattr(expert, projection) for expert in self.experts]
