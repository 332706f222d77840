"""Stage 6, Concatenate and apply W_O: the heads' results become one update.

Purpose: its equation, numbers and figure; its sentences stand in `combine.md`.
Must not know: other stages, the page.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from explorer.draw.residual import norms
from explorer.draw.updates import head_contributions
from explorer.stages import figures
from explorer.stages.base import Stage
from explorer.stages.look import Look
from explorer.stages.mathml import O_ATTN, O, equation, num, op, sub, sym, weight
from explorer.stages.source import Lines

EQUATION = equation(
    O_ATTN, op("="), op("["), sub(O, num("1")), sym("…"), sub(O, sym("h")), op("]"), weight("O", "attn"),
    alt="O_attn = [O_1 … O_h] W_Oᵀ",
)  # fmt: skip


def describe(look: Look) -> dict[str, Any]:
    """The token's row of all heads, the update, and the head that gives most."""
    joined, update = look.token("concat"), look.token("attn_out")
    shares = head_contributions(joined[None], look.trace.weights["self_attn.o_proj.weight"], look.n["H"])[:, 0]
    lengths = norms(shares)
    best = int(lengths.argmax())
    return {
        "t": look.name,
        "heads": look.n["H"],
        "features": look.n["Dh"],
        "width": look.n["C"],
        "joined": joined,
        "update": update,
        "length": float(norms(update)),
        "computed": look.holds("attn_out", update, shares.sum(0), size=float(np.abs(shares).max(initial=1.0))),
        "expected": shares.sum(0),
        "several": look.n["H"] > 1,
        "best": best,
        "best_length": float(lengths[best]),
    }


STAGE = Stage(
    number=6,
    key="combine",
    equation=EQUATION,
    inputs=("heads",),
    weights=("self_attn.o_proj.weight",),
    outputs=("concat", "attn_out"),
    describe=describe,
    draw=lambda look, lang: [figures.attn_out(look, lang)],
    lines=(
        Lines("model.attention", "Attention.forward", 'taps["concat"]', 'taps["attn_out"]'),
        Lines("course.transformer_model", "Attention.forward", 'taps["concat"]', 'taps["attn_out"]'),
    ),
)
