"""Stage 5, Softmax and blend: scores become shares, and each query takes that much of every value.

Purpose: its equation, numbers and figure; its sentences stand in `blend.md`.
Must not know: other stages, the page.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from explorer.draw.numbers import number, row
from explorer.stages import figures
from explorer.stages.base import Stage
from explorer.stages.look import Array, Look
from explorer.stages.mathml import A, O, P, V, equation, gap, op, sub, sym, word
from explorer.stages.source import Lines

MOST_TERMS = 3
EQUATION = equation(
    P, op("="), sub(word("softmax"), word("keys")), op("("), A, op(")"), gap(),
    sub(O, sym("r")), op("="), sub(P, sym("r")), sub(V, sym("r")),
    alt="P = softmax of A over the keys; for each head r, O_r = P_r V_r",
)  # fmt: skip


def describe(look: Look) -> dict[str, Any]:
    """The token's shares, its largest, and the blend."""
    p, got = look.query("probs"), look.vector("heads")
    values = np.asarray(look.values, dtype=np.float64)
    blend = p @ values
    best = int(np.nanargmax(np.where(np.isnan(p), -np.inf, p)))
    expected = softmax(look.query("masked_scores"))
    hidden = look.masked[look.t]
    zeros, seen = int(((p == 0) & hidden).sum()), p[~hidden | (p != 0)]
    as_softmax = look.holds("probs", p, expected)
    blind = as_softmax and bool(np.all(hidden) and not p.any())
    told = as_softmax and not blind
    computed = look.holds("heads", got, blend)
    even = len({number(share) for share in seen}) == 1
    return {
        "t": look.name,
        "h": look.h,
        "p": p,
        "best": look.tokens.called(best),
        "p_best": float(p[best]),
        "total": float(p.sum()),
        "softmax": expected,
        "blind": blind,
        "replaced": not as_softmax,
        "uneven": told and not even,
        "even": told and even and len(seen) > 1,
        "sole": told and even and len(seen) == 1,
        "sharing": len(seen),
        "terms": terms(p, values),
        "blend": blend,
        "o": got,
        "computed": computed and p.any() and not blind,
        "empty": computed and not p.any() and not blind,
        "reset": not computed,
        "zeros": zeros,
        "one_zero": zeros == 1,
        "more_zeros": zeros > 1,
        "keys": len(p),
    }


def softmax(scores: Array) -> Array:
    """Shares of a row of masked scores, float64; all 0 where every key is hidden."""
    if np.all(np.isneginf(scores)):
        return np.zeros_like(scores)
    with np.errstate(invalid="ignore", over="ignore"):
        powers = np.exp(scores - scores.max())
        return np.asarray(powers / powers.sum())


def terms(p: Array, values: Array) -> str:
    """For example "0.5·(1, 1) + 0.5·(1, −1)": the largest shares first when there are more than MOST_TERMS."""
    seen = np.flatnonzero(p)
    chosen = seen if len(seen) <= MOST_TERMS else seen[np.argsort(-p[seen], kind="stable")][:MOST_TERMS]
    written = [f"{number(p[j])}·{row(values[j])}" for j in chosen]
    return " + ".join(written if len(seen) <= MOST_TERMS else [*written, "…"])


STAGE = Stage(
    number=5,
    key="blend",
    equation=EQUATION,
    inputs=("masked_scores", "v", "present_v"),
    weights=(),
    outputs=("probs", "heads"),
    describe=describe,
    draw=lambda look, lang: [figures.probs(look, lang)],
    lines=(
        Lines("model.attention", "Attention._attend", "if self._may_fuse", "is_causal=True", when="flash"),
        Lines("model.attention", "Attention._attend", 'taps["probs"]', "return", when="explicit"),
        Lines("model.attention", "masked_softmax", "blind =", when="explicit"),
        Lines("course.transformer_model", "Attention.forward", 'taps["probs"]', 'taps["heads"]'),
    ),
)
