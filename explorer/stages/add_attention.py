"""Stage 7, First residual: what attention found is added to the stream.

Purpose: its equation, numbers and figure; its sentences stand in `add_attention.md`.
Must not know: other stages, the page.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from explorer.draw.residual import cosines, norms
from explorer.stages import figures
from explorer.stages.base import Stage
from explorer.stages.look import Array, Look
from explorer.stages.mathml import O_ATTN, X, Y, equation, op
from explorer.stages.source import Lines

EQUATION = equation(Y, op("="), X, op("+"), O_ATTN, alt="Y = X + O_attn")


def comparison(stream: Array, update: Array) -> dict[str, Any]:
    """How long an update is beside its stream, and which way it points: along, across or against, or "flat"."""
    stream_length, length = float(norms(stream)), float(norms(update))
    cosine = float(cosines(update, stream))
    flat = bool(np.isnan(cosine))
    return {
        "stream_length": stream_length,
        "update_length": length,
        "flat": flat,
        "cosine": cosine,
        "along": not flat and cosine > 0.25,
        "across": not flat and abs(cosine) <= 0.25,
        "against": not flat and cosine < -0.25,
    }


def describe(look: Look) -> dict[str, Any]:
    """The token's sum, and how the update compares with the stream."""
    x, update, y = look.token("resid_pre"), look.token("attn_out"), look.token("resid_mid")
    sums = {
        "x": x,
        "update": update,
        "y": y,
        "expected": x + update,
        "computed": look.holds("resid_mid", y, x + update),
    }
    return {"t": look.name, **sums, **comparison(x, update)}


STAGE = Stage(
    number=7,
    key="add_attention",
    equation=EQUATION,
    inputs=("resid_pre", "attn_out"),
    weights=(),
    outputs=("resid_mid",),
    describe=describe,
    draw=lambda look, lang: [figures.residual(look, lang)],
    lines=(
        Lines("model.block", "MiniMindBlock.forward", 'taps["resid_mid"]', 'taps["resid_mid"]'),
        Lines("course.transformer_model", "TransformerBlock.forward", 'taps["resid_mid"]', 'taps["resid_mid"]'),
    ),
)
