"""Stage 2, Project: queries, keys and values, split into heads.

Purpose: its equation, numbers and figure; its sentences stand in `project.md`.
Must not know: other stages, the page.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from explorer.draw.norms import rms
from explorer.stages import figures
from explorer.stages.base import Stage
from explorer.stages.look import Array, Look
from explorer.stages.mathml import X_BAR, K, Q, V, equation, gap, op, weight
from explorer.stages.source import Lines

EQUATION = equation(
    Q, op("="), X_BAR, weight("Q", "q"), gap(),
    K, op("="), X_BAR, weight("K", "k"), gap(),
    V, op("="), X_BAR, weight("V", "v"),
    alt="Q = X̄ W_Qᵀ, K = X̄ W_Kᵀ, V = X̄ W_Vᵀ, each split into heads",
)  # fmt: skip


def describe(look: Look) -> dict[str, Any]:
    """The token's query, key and value in one head."""
    q, k = look.vector("q"), look.vector("k")
    q_after, k_after = look.vector("q_norm"), look.vector("k_norm")
    n, has_norm = look.n, look.trace.qk_norm
    as_normed = has_norm and all(_is_norm(look, *x) for x in (("q", q, q_after), ("k", k, k_after)))
    return {
        "t": look.name,
        "width": n["D"],
        "heads": n["H"],
        "kv_heads": n["Hkv"],
        "features": n["Dh"],
        "h": look.h,
        "q": q,
        "k": k,
        "v": look.vector("v"),
        "shared": n["Hkv"] < n["H"],
        "group": n["H"] // n["Hkv"],
        "kv": look.kv,
        "head_norm": as_normed,
        "renormed": has_norm and not as_normed,
        "q_rms": float(rms(q)),
        "k_rms": float(rms(k)),
        "q_rms_after": float(rms(q_after)),
        "k_rms_after": float(rms(k_after)),
    }


def _is_norm(look: Look, letter: str, before: Array, after: Array) -> bool:
    """Whether the head's vector after the norm is what the norm makes of it; an edit or a switch may say otherwise."""
    gamma = look.trace.weights[f"self_attn.{letter}_norm.weight"]
    expected = gamma * before / np.sqrt(np.mean(before**2) + look.trace.norm_eps)
    return look.holds(f"{letter}_norm", after, expected)


STAGE = Stage(
    number=2,
    key="project",
    equation=EQUATION,
    inputs=("attn_norm",),
    weights=(
        "self_attn.q_proj.weight",
        "self_attn.k_proj.weight",
        "self_attn.v_proj.weight",
        "self_attn.q_norm.weight",
        "self_attn.k_norm.weight",
    ),
    outputs=("q", "k", "v", "q_norm", "k_norm"),
    describe=describe,
    draw=lambda look, lang: [figures.projections(look, lang)],
    lines=(
        Lines("model.attention", "Attention.forward", 'taps["q"]', 'taps["k_norm"]'),
        Lines("model.attention", "Attention._split"),
        Lines("course.transformer_model", "Attention.forward", 'taps["q"]', 'taps["v"]'),
        Lines("course.transformer_model", "Attention.split_heads"),
    ),
)
