"""Stage 3, Rotate: RoPE on queries and keys.

Purpose: its equation, numbers and figure; its sentences stand in `rotate.md`.
Must not know: other stages, the page.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from explorer.draw.numbers import degrees
from explorer.stages import figures
from explorer.stages.base import Stage
from explorer.stages.look import Array, Look
from explorer.stages.mathml import K_HAT, K_ROT, Q_HAT, Q_ROT, equation, gap, op, row, sub, sup, sym, transposed
from explorer.stages.source import Lines

TABLES = ("rope_cos", "rope_sin")
ZERO = 1e-12  # nobody turns by so little: a smaller cosine or sine is what rounding leaves of 0
R_M, R_N = sub(sym("R"), sym("m")), sub(sym("R"), sym("n"))
SMALL_Q, SMALL_K = sym("q", "q"), sym("k", "k")
R_BETWEEN = sub(sym("R"), row(sym("n"), op("−"), sym("m")))
EQUATION = equation(
    sub(Q_ROT, sym("m")), op("="), R_M, sub(Q_HAT, sym("m")), gap(),
    sub(K_ROT, sym("n")), op("="), R_N, sub(K_HAT, sym("n")), gap(),
    sup(row(op("("), R_M, SMALL_Q, op(")")), sym("T")), op("("), R_N, SMALL_K, op(")"), op("="),
    transposed(SMALL_Q), R_BETWEEN, SMALL_K,
    alt="Q′ at m = R_m Q, K′ at n = R_n K; (R_m q)ᵀ(R_n k) = qᵀ R_(n−m) k",
)  # fmt: skip


def describe(look: Look) -> dict[str, Any]:
    """Pair 0 of the token's query before and after, and how far the last pair turns."""
    half = look.n["Dh"] // 2
    before, after = look.vector("q_norm")[[0, half]], look.vector("q_rot")[[0, half]]
    angle, factor = float(look.angles[look.t, 0]), stretch(look)
    as_turned = look.holds(("q_rot", *TABLES), after, factor * turned(before, angle), size=0.0)
    return {
        "t": look.name,
        "h": look.h,
        "half": half,
        "clockwise": angle < 0,
        "angle": degrees(abs(angle)),
        "before": before,
        "after": after,
        "turned": as_turned and factor == 1.0,
        "stretched": as_turned and factor != 1.0,
        "replaced": not as_turned,
        "factor": factor,
        "length": float(np.hypot(*before)),
        "new_length": float(np.hypot(*after)),
        "last": half - 1,
        "last_angle": degrees(abs(float(look.angles[look.t, -1]))),
        "leftover": leftover(look) != 0,
        "left": leftover(look),
        **order_of_speeds(look),
    }


def order_of_speeds(look: Look) -> dict[str, bool]:
    """How fast the last of several pairs turns beside pair 0: "slower", "alike", "faster", or "unordered" where no
    speeds are known.
    """
    several, known = look.n["Dh"] > 2, look.speeds is not None
    first, last = np.abs(look.speeds[[0, -1]]) if look.speeds is not None else (0.0, 0.0)
    return {
        "slower": several and last < first,
        "alike": several and known and last == first,
        "faster": several and last > first,
        "unordered": several and not known,
    }


def stretch(look: Look) -> float:
    """What RoPE's tables multiply a length by, without edits of them: 1.0, unless a model's YaRN has another factor."""
    cos, sin = look.tables
    found = float(np.hypot(cos[look.t, 0], sin[look.t, 0]))
    return 1.0 if abs(found - 1.0) < 1e-3 else found


def leftover(look: Look) -> float:
    """A cosine or sine of the run that is 0 but for rounding, 0.0 where there is none."""
    tables = np.concatenate([np.asarray(look.trace[name], dtype=np.float64) for name in TABLES])
    found = tables[(tables != 0) & (np.abs(tables) < ZERO)]
    return float(found[0]) if found.size else 0.0


def turned(pair: Array, angle: float) -> Array:
    """The pair [2] turned counter-clockwise by `angle` radians."""
    cos, sin = np.cos(angle), np.sin(angle)
    return np.array([pair[0] * cos - pair[1] * sin, pair[0] * sin + pair[1] * cos])


STAGE = Stage(
    number=3,
    key="rotate",
    equation=EQUATION,
    inputs=("q_norm", "k_norm", "rope_cos", "rope_sin", "past_k", "past_v"),
    weights=(),
    outputs=("q_rot", "k_rot", "present_k", "present_v"),
    describe=describe,
    draw=lambda look, lang: [figures.rope(look, lang)],
    lines=(
        Lines("model.attention", "Attention.forward", 'taps["q_rot"]', 'taps["present_v"]'),
        Lines("model.rope", "rotate", "first, second"),
        Lines("course.transformer_model", "Attention.forward", 'taps["q_rot"]', 'taps["k_rot"]'),
        Lines("course.transformer_model", "rotate"),
    ),
)
