"""Stage 4, Score and mask: how well each query fits each key it may see.

Purpose: its equation, numbers and figure; its sentences stand in `score.md`.
Must not know: other stages, the page.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from explorer.stages import figures
from explorer.stages.base import Stage
from explorer.stages.look import Look
from explorer.stages.mathml import (
    D_H,
    K_ROT,
    Q_ROT,
    A,
    S,
    cases,
    equation,
    frac,
    gap,
    num,
    op,
    root,
    row,
    sub,
    sym,
    transposed,
    word,
)  # fmt: skip
from explorer.stages.source import Lines

M = sub(sym("M"), row(sym("i"), sym("j")))
EQUATION = equation(
    S, op("="), frac(row(Q_ROT, transposed(K_ROT)), root(D_H)), gap(), A, op("="), S, op("+"), sym("M"), gap(),
    M, op("="),
    cases((num("0"), word("key j may be seen")), (row(op("−"), sym("∞")), word("key j comes later, or is padding"))),
    alt="S = Q′K′ᵀ / √d_h; A = S + M, where M_ij is 0 for a key that may be seen and −∞ for a later or padded one",
)  # fmt: skip


def describe(look: Look) -> dict[str, Any]:
    """The token's best key, and what the mask hides in this head."""
    masked_row, scores = look.query("masked_scores"), look.query("scores")
    blind = bool(np.all(np.isneginf(masked_row)))
    j = look.position if blind else int(np.nanargmax(np.where(np.isnan(masked_row), -np.inf, masked_row)))
    dot = float(look.vector("q_rot") @ np.asarray(look.keys[j], dtype=np.float64))
    scale = float(np.sqrt(look.n["Dh"]))
    all_scores = look.trace.rows("masked_scores", look.b, look.h)
    hidden = np.isneginf(all_scores)
    computed = look.holds("scores", scores[j], dot / scale)
    by_hand = {"scores", "masked_scores"} & set(look.trace.edited)
    shut = int((hidden & ~look.masked).sum()) if by_hand else 0
    opened, padding = bool((~hidden & look.masked).any()), bool(look.padded.any())
    return {
        "t": look.name,
        "h": look.h,
        "j": look.tokens.called(j),
        "blind": blind,
        "fits": not blind and computed,
        "replaced": not blind and not computed,
        "dot": dot,
        "features": look.n["Dh"],
        "scale": scale,
        "score": float(scores[j]),
        "cached": look.past > 0,
        "past": look.past,
        "of_call": look.t,
        "cells": int(all_scores.size),
        "hidden": int((hidden & look.masked).sum()),
        "future": int((hidden & look.future & look.masked).sum()),
        "padded": int((hidden & look.padded).sum()),
        "closed": not opened and not padding,
        "closed_with_padding": not opened and padding,
        "opened": opened,
        "open": int((~hidden & look.masked).sum()),
        "shut_by_hand": shut > 0,
        "shut": shut,
    }


STAGE = Stage(
    number=4,
    key="score",
    equation=EQUATION,
    inputs=("q_rot", "k_rot", "present_k"),
    weights=(),
    outputs=("scores", "masked_scores"),
    describe=describe,
    draw=lambda look, lang: [figures.masked_scores(look, lang)],
    lines=(
        Lines("model.attention", "Attention._attend", "if self._may_fuse", "is_causal=True", when="flash"),
        Lines("model.attention", "visible_keys", "query_position =", when="explicit"),
        Lines("model.attention", "Attention._attend", "visible =", 'taps["masked_scores"]', when="explicit"),
        Lines("course.transformer_model", "Attention.forward", 'taps["scores"]', 'taps["masked_scores"]'),
    ),
)
