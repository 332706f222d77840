"""Stage 1, Normalize: X̄ = RMSNorm(X).

Purpose: its equation, numbers and figure; its sentences stand in `normalize.md`.
Must not know: other stages, the page.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from explorer.draw.norms import rms
from explorer.draw.numbers import number
from explorer.stages import figures
from explorer.stages.base import Stage
from explorer.stages.look import Array, Look
from explorer.stages.mathml import X_BAR, X, equation, frac, op, root, sub, sup, sym, word
from explorer.stages.source import Lines

NEARLY = 1.25  # the largest size over the smallest, up to which they are called nearly one
GAMMA = sub(sym("γ"), sym("1"))
EQUATION = equation(
    X_BAR, op("="), GAMMA, op("⊙"), frac(X, root(word("mean"), op("("), sup(X, sym("2")), op(")"), op("+"), sym("ε"))),
    alt="X̄ = γ₁ ⊙ X / √(mean(X²) + ε)",
)  # fmt: skip


def describe(look: Look) -> dict[str, Any]:
    """The token's row before and after."""
    x, normed = look.token("resid_pre"), look.token("attn_norm")
    gamma = look.trace.weights["input_layernorm.weight"]
    before, after = (rms(look.trace[name][look.b]) for name in ("resid_pre", "attn_norm"))
    several, alike = look.n["T"] > 1, _alike(before)
    closer = after.max() / after.min() < min(NEARLY, before.max() / before.min()) if after.min() > 0 else False
    return {
        "t": look.name,
        "x": x,
        "mean_square": float(np.mean(x**2)),
        "rms": float(rms(x)),
        "eps": look.trace.norm_eps,
        "normed": normed,
        "normed_rms": float(rms(normed)),
        "computed": look.holds("attn_norm", normed, gamma * x / np.sqrt(np.mean(x**2) + look.trace.norm_eps)),
        "levelled": several and not alike and _alike(after),
        "evened": several and not alike and not _alike(after) and bool(closer),
        "ranging": several and not alike and not _alike(after) and not closer,
        "alike": several and alike,
        "tokens": look.n["T"],
        "low": float(before.min()),
        "high": float(before.max()),
        "low_after": float(after.min()),
        "high_after": float(after.max()),
    }


def _alike(sizes: Array) -> bool:
    return number(sizes.min()) == number(sizes.max())


STAGE = Stage(
    number=1,
    key="normalize",
    equation=EQUATION,
    inputs=("resid_pre",),
    weights=("input_layernorm.weight",),
    outputs=("attn_norm",),
    describe=describe,
    draw=lambda look, lang: [figures.norm(look, lang)],
    lines=(
        Lines("model.block", "MiniMindBlock.forward", 'taps["attn_norm"]', 'taps["attn_norm"]'),
        Lines("model.norm", "RMSNorm.forward"),
        Lines("course.transformer_model", "TransformerBlock.forward", 'taps["attn_norm"]', 'taps["attn_norm"]'),
        Lines("course.transformer_model", "RMSNorm.forward"),
    ),
)
