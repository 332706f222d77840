"""Stage 8, Feed-forward and second residual: each token reworks its own features.

Purpose: its equations, numbers and figures, dense and with experts; its sentences stand in `feed_forward.md`.
Must not know: other stages, the page.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from explorer.stages import figures
from explorer.stages.add_attention import comparison
from explorer.stages.base import Figure, Stage
from explorer.stages.look import Array, Look
from explorer.stages.mathml import Y_BAR, F, X, Y, equation, gap, op, row, sub, sup, sym, weight, word
from explorer.stages.source import Lines

GATED = row(
    word("SiLU"),
    op("("),
    Y_BAR,
    weight("gate", "ffn"),
    op(")"),
    op("⊙"),
    Y_BAR,
    weight("up", "ffn"),
)
NEXT = row(sub(X, word("next")), op("="), Y, op("+"), F)
START = row(Y_BAR, op("="), word("RMSNorm"), op("("), Y, op(")"))
EQUATION = equation(
    START, gap(), F, op("="), op("("), GATED, op(")"), weight("down", "ffn"), gap(), NEXT,
    alt="Ȳ = RMSNorm(Y); F = (SiLU(Ȳ W_gateᵀ) ⊙ Ȳ W_upᵀ) W_downᵀ; X_next = Y + F",
)  # fmt: skip
CHOSEN = sub(sym("w"), sym("e"))
EQUATION_MOE = equation(
    START, gap(), word("router"), op("="), word("softmax"), op("("), Y_BAR, weight("r", "ffn"), op(")"),
    gap(),
    F, op("="), sub(op("∑"), word("chosen e")), CHOSEN, sup(word("SwiGLU"), row(op("("), sym("e"), op(")"))),
    op("("), Y_BAR, op(")"), gap(), NEXT,
    alt="Ȳ = RMSNorm(Y); router = softmax(Ȳ W_rᵀ); F = Σ over chosen experts e of w_e · SwiGLU_e(Ȳ); X_next = Y + F",
)  # fmt: skip


def silu(x: Array | float) -> Array:
    """x / (1 + e^−x), without overflow."""
    x = np.asarray(x, dtype=np.float64)
    return np.asarray(x * 0.5 * (1 + np.tanh(x / 2)))


def describe(look: Look) -> dict[str, Any]:
    """What the token's features become, and what that adds."""
    y, update, output = look.token("resid_mid"), look.token("ffn_out"), look.token("resid_post")
    common = {
        "t": look.name,
        "y_norm": look.token("ffn_norm"),
        "width": look.n["D"],
        "y": y,
        "update": update,
        "output": output,
        "expected": y + update,
        "computed": look.holds("resid_post", output, y + update),
        "moe": look.trace.moe,
        **comparison(y, update),
    }
    return common | (_experts(look) if look.trace.moe else _dense(look))


def _dense(look: Look) -> dict[str, Any]:
    gate, up, hidden = (look.token(name) for name in ("gate", "up", "hidden"))
    j = int(np.nanargmax(np.where(np.isnan(hidden), -1.0, np.abs(hidden))))
    as_computed = look.holds("hidden", hidden[j], silu(gate[j]) * up[j])
    return {
        "hidden_width": look.n["F"],
        "j": j,
        "gate": float(gate[j]),
        "opened": float(silu(gate[j])),
        "up": float(up[j]),
        "hidden": float(hidden[j]),
        "gated": as_computed,
        "regated": not as_computed,
        "routed": False,
        "rerouted": False,
    }


def _experts(look: Look) -> dict[str, Any]:
    index, picked = look.trace["expert_index"][look.b, look.t], look.trace.before("expert_index")[look.b, look.t]
    probs, routed = look.token("router_probs"), bool((index == picked).all())
    return {
        "experts": look.n["E"],
        "routed": routed,
        "rerouted": not routed,
        "picked": ", ".join(str(int(e)) for e in picked),
        "chosen": ", ".join(str(int(e)) for e in index),
        "chances": ", ".join(f"{100 * float(probs[e]):.3g}%" for e in index),
        "shares": look.token("expert_weight"),
        "aux_loss": float(look.trace.aux_loss or 0.0),
        "aux_even": look.trace.aux_loss_weight * look.n["k"],
        "gated": False,
        "regated": False,
    }


def draw(look: Look, lang: str) -> list[Figure]:
    """The residual stream, and SwiGLU's features or the router's choice."""
    inside = figures.router if look.trace.moe else figures.swiglu
    return [figures.residual(look, lang), inside(look, lang)]


STAGE = Stage(
    number=8,
    key="feed_forward",
    equation=EQUATION,
    equation_moe=EQUATION_MOE,
    inputs=("resid_mid",),
    weights=(
        "post_attention_layernorm.weight",
        "mlp.gate_proj.weight",
        "mlp.up_proj.weight",
        "mlp.down_proj.weight",
        "mlp.gate.weight",
    ),
    outputs=(
        *("ffn_norm", "gate", "up", "hidden"),
        *("router_logits", "router_probs", "expert_index", "expert_weight"),
        *("expert_gate", "expert_up", "expert_hidden", "expert_out"),
        *("ffn_out", "resid_post"),
    ),
    describe=describe,
    draw=draw,
    lines=(
        Lines("model.block", "MiniMindBlock.forward", 'taps["ffn_norm"]', 'taps["resid_post"]'),
        Lines("model.feed_forward", "FeedForward.forward", "gate =", when="dense"),
        Lines("model.feed_forward", "MOEFeedForward.forward", "index, weight =", when="moe"),
        Lines("model.feed_forward", "MOEFeedForward._route", "probs =", when="moe"),
        Lines("course.transformer_model", "TransformerBlock.forward", 'taps["ffn_norm"]', 'taps["resid_post"]'),
        Lines("course.transformer_model", "FeedForward.forward", "gate ="),
    ),
)
