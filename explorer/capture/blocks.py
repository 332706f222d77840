"""Which blocks the explorer knows, and what it has to be told of one.

Purpose: tell the explorer's own blocks, of which it is known how each quantity is computed, from a block of someone's
own, of which nothing is known but what its taps show.
Must not know: hooks, traces, figures, the page.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from torch import nn

from explorer.course import transformer_model as course
from explorer.model import attention, block, feed_forward
from explorer.quantities import EXPERT_WEIGHT, WEIGHTS

# Exactly these: a subclass may compute something else.
OWN = {
    block.MiniMindBlock, attention.Attention, feed_forward.FeedForward, feed_forward.MOEFeedForward,
    course.TransformerBlock, course.Attention, course.FeedForward,
}  # fmt: skip


@dataclass(frozen=True)
class About:
    """What a trace keeps of its block.

    own:      whether it is MiniMind's or the course's block as the explorer builds them
    explains: whether explorer.formulas say how its quantities are made: its own, with no weight that they leave out
    norm_eps, norm_topk, aux_loss_weight, activation: how the formulas are to be filled in for it
    """

    own: bool
    explains: bool
    norm_eps: float
    norm_topk: bool
    aux_loss_weight: float
    activation: str


def about(module: nn.Module, weights: Iterable[str]) -> About:
    """weights: the names of the block's parameters."""
    own = is_own(module)
    mlp = getattr(module, "mlp", None)
    return About(
        own,
        own and all(name in WEIGHTS or EXPERT_WEIGHT.fullmatch(name) for name in weights),
        float(getattr(getattr(module, "input_layernorm", None), "eps", 1e-6)) if own else 0.0,
        bool(getattr(mlp, "normalise", True)),
        float(getattr(mlp, "loss_weight", 0.0)) if own else 0.0,
        str(getattr(getattr(mlp, "act", None), "__name__", "silu")),
    )


def is_own(module: nn.Module) -> bool:
    """Whether the explorer built this block, and its attention and feed-forward are still the ones that it gave it."""
    parts = (module, getattr(module, "self_attn", None), getattr(module, "mlp", None))
    return all(type(part) in OWN for part in parts)
