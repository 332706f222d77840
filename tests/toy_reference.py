"""The toy block once more, in float64 numpy, so that the page can be compared with something independent.

Knows nothing of `explorer`: it imports none of it, and each operation is written from the papers' formulas with one
head, two features, identity projections and a RoPE step of π/2 a position. Arrays carry the axes of the traces
(heads first, batch first), so a cell of the page and a cell here have the same index.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import pi

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

X = np.array([[1.0, 1.0], [1.0, -1.0]])
SUPPOSED_F = np.array([[0.1, -0.2], [0.3, 0.1]])
EPS = 1e-6
ANGLE_STEP = pi / 2


def normed(x: Array) -> Array:
    """Zhang & Sennrich 2019: each row over its root mean square, unit gain."""
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + EPS)


def turned(x: Array) -> Array:
    """Su et al. 2021: row m of x [T, 2] as a complex number, turned counter-clockwise by m·π/2."""
    z = (x[:, 0] + 1j * x[:, 1]) * np.exp(1j * ANGLE_STEP * np.arange(len(x)))
    return np.stack([z.real, z.imag], axis=1)


def softmax(a: Array) -> Array:
    e = np.exp(a - a.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def silu(x: Array) -> Array:
    return x / (1 + np.exp(-x))


def attention_side(x: Array, put: Mapping[str, Mapping[tuple[int, ...], float]]) -> dict[str, Array]:
    """Every quantity from X to Y; a value in `put` replaces a cell before anything reads it."""
    out: dict[str, Array] = {}

    def keep(name: str, value: Array) -> Array:
        value = np.array(value)  # a copy: an edit of q must not reach k
        for index, number in put.get(name, {}).items():
            value[index[-2:]] = number
        out[name] = value
        return value

    x = keep("resid_pre", x)
    x_bar = keep("attn_norm", normed(x))
    q, k, v = (keep(name, x_bar) for name in "qkv")
    q_rot = keep("q_rot", turned(keep("q_norm", q)))
    k_rot = keep("k_rot", turned(keep("k_norm", k)))
    scores = keep("scores", q_rot @ k_rot.T / np.sqrt(2))
    future = np.triu(np.ones_like(scores, dtype=bool), 1)
    probs = keep("probs", softmax(keep("masked_scores", np.where(future, -np.inf, scores))))
    attn_out = keep("attn_out", keep("concat", keep("heads", probs @ v)))
    keep("resid_mid", x + attn_out)
    return out


def hidden(y: Array) -> Array:
    """SiLU(y)·y: W_gate and W_up are both the identity, so gate and up are y itself."""
    return silu(y) * y


def w_down() -> Array:
    """The [d_ff, d_model] matrix with which the default X gives exactly the course's supposed F.

    A property of the toy, not of the current X: solved from the default X alone (Shazeer 2020 for the SwiGLU).
    """
    return np.linalg.solve(hidden(normed(attention_side(X, {})["resid_mid"])), SUPPOSED_F)


HEADED = {"q", "k", "v", "q_norm", "k_norm", "q_rot", "k_rot", "scores", "masked_scores", "probs", "heads"}


def toy(x: Array = X, put: Mapping[str, Mapping[tuple[int, ...], float]] | None = None) -> dict[str, Array]:
    """All quantities of the toy for input x [2, 2], by name, with the traces' axes (B=1, H=1 in front).

    `put` maps a quantity up to resid_mid to {index: number}: cells set to a number, the rest follows from them.
    """
    out = attention_side(np.asarray(x, dtype=np.float64), put or {})
    y = out["resid_mid"]
    out["ffn_norm"] = out["gate"] = out["up"] = normed(y)
    out["hidden"] = hidden(out["ffn_norm"])
    out["ffn_out"] = out["hidden"] @ w_down()
    out["resid_post"] = y + out["ffn_out"]
    return {name: value[None, None] if name in HEADED else value[None] for name, value in out.items()}
