"""Two small calculations to try by hand: the softmax of a row, and LayerNorm beside RMSNorm on a row.

Purpose: exact figures, their sentences (`softmax_check.md`, `norm_comparison.md`) and a figure.
Must not know: runs, the page.

Sources: softmax as in Vaswani et al. 2017 §3.2.1; RMSNorm, Zhang & Sennrich 2019 §3; LayerNorm, Ba et al. 2016 §3.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from explorer.draw.norms import norm_comparison_figure
from explorer.draw.scales import Figure
from explorer.messages import say
from explorer.stages.look import Array
from explorer.stages.prose import prose
from explorer.typed import NARROW

COURSE_ROW = (0.7, 1.1, 0.2, -math.inf)
LONGEST = 64
INFINITE = {"-inf": -math.inf, "-infinity": -math.inf, "-∞": -math.inf}


@dataclass(frozen=True)
class SoftmaxCheck:
    """A row of scores and what softmax makes of it, float64.

    exponentials: e^(score − largest); total: their sum; rounded: the shares as three decimals; rounded_total: their
    sum; sentences: HTML
    """

    scores: tuple[float, ...]
    exponentials: tuple[float, ...]
    total: float
    shares: tuple[float, ...]
    rounded: tuple[str, ...]
    rounded_total: str
    sentences: tuple[str, ...]


def read_row(text: str) -> list[float]:
    """ "0.7, 1.1, 0.2, −inf" -> numbers; commas, semicolons or blanks separate, −∞ may be written as such.

    So may what a Chinese keyboard writes: "０.7，1、2".

    Raises ValueError naming the first entry that is not a number.
    """
    numbers = []
    for entry in re.split(r"[\s,;]+", text.translate(NARROW).strip()):
        plain = entry.replace("−", "-").lower()
        try:
            numbers.append(INFINITE[plain] if plain in INFINITE else float(plain))
        except ValueError:
            shown = entry if len(entry) <= 20 else entry[:19] + "…"
            raise ValueError(
                say("{entry!r} is not a number. Type numbers separated by commas, −inf for a hidden key.", entry=shown)
            ) from None
    return numbers


def softmax_check(row: Sequence[float] = COURSE_ROW, lang: str = "en") -> SoftmaxCheck:
    """The softmax of a free row of scores, step by step.

    −∞ is allowed and gives a share of 0; a row of −∞ alone gives zeros, as in the block. Raises ValueError for an
    empty or too long row, NaN and +∞.
    """
    scores = _checked(row, allow_hidden=True)
    blind = bool(np.all(np.isneginf(scores)))
    largest = 0.0 if blind else float(scores.max())
    exponentials = np.exp(scores - largest)
    total = float(exponentials.sum())
    shares = exponentials / total if total else exponentials
    rounded = tuple(f"{share:.3f}" for share in shares)
    rounded_total = str(sum((Decimal(r) for r in rounded), Decimal("0.000")))
    values = {
        "blind": blind,
        "largest": largest,
        "exponentials": exponentials,
        "total": total,
        "shares": shares,
        "hidden": bool(np.any(np.isneginf(scores))) and not blind,
        "rounded": f"({', '.join(rounded)})",
        "rounded_total": rounded_total,
        "off": not blind and rounded_total != "1.000",
        "course": tuple(scores) == COURSE_ROW,
        "second": float(shares[min(1, len(shares) - 1)]),
    }
    told = tuple(prose("softmax_check", lang).fill(values))
    steps = (tuple(x.tolist()) for x in (scores, exponentials, shares))
    given, powers, parts = steps
    return SoftmaxCheck(given, powers, total, parts, rounded, rounded_total, told)


@dataclass(frozen=True)
class NormComparison:
    """One row through both norms, float64; sentences: HTML; figure: a figure dictionary."""

    given: tuple[float, ...]
    mean: float
    variance: float
    rms: float
    rms_normed: tuple[float, ...]
    layer_normed: tuple[float, ...]
    sentences: tuple[str, ...]
    figure: Figure


def norm_comparison(
    row: Sequence[float],
    gamma: Sequence[float] | None = None,
    beta: Sequence[float] | None = None,
    eps: float = 1e-6,
    lang: str = "en",
) -> NormComparison:
    """RMSNorm γ ⊙ x/√(mean(x²)+ε) beside LayerNorm γ ⊙ (x−μ)/√(σ²+ε) + β; γ is 1 and β is 0 when None.

    Raises ValueError for an empty or too long row, numbers that are not finite, or lengths that differ.
    """
    x = _checked(row, allow_hidden=False)
    scale, shift = _vector(gamma, x, 1.0, "gamma"), _vector(beta, x, 0.0, "beta")
    mean, variance, mean_square = float(x.mean()), float(x.var()), float(np.mean(x**2))
    by_rms = scale * x / np.sqrt(mean_square + eps)
    by_layer = scale * (x - mean) / np.sqrt(variance + eps) + shift
    scaled, shifted = bool((scale != 1).any()), bool(shift.any())
    constant = bool(np.all(x == x[0])) and bool(x[0]) and bool(scale.all())
    values: dict[str, Any] = {
        "given": x,
        "mean": mean,
        "deviation": math.sqrt(variance),
        "rms": math.sqrt(mean_square),
        "mean_square": mean_square,
        "variance": variance,
        "eps": eps,
        "gamma": scale,
        "beta": shift,
        "rms_normed": by_rms,
        "layer_normed": by_layer,
        "plain": not scaled,
        "scaled": scaled,
        "bare": not scaled and not shifted,
        "scaled_alone": scaled and not shifted,
        "shifted_alone": shifted and not scaled,
        "scaled_and_shifted": scaled and shifted,
        "centred": abs(mean) <= 1e-12 * max(1.0, float(np.abs(x).max())) and bool(x.any()) and not shifted,
        "constant": constant and not shifted,
        "constant_shifted": constant and shifted,
    }
    told = tuple(prose("norm_comparison", lang).fill(values))
    picture = norm_comparison_figure(x, by_rms, by_layer, lang)
    rows = [tuple(v.tolist()) for v in (x, by_rms, by_layer)]
    return NormComparison(rows[0], mean, variance, math.sqrt(mean_square), rows[1], rows[2], told, picture)


def _checked(row: Sequence[float], allow_hidden: bool) -> Array:
    numbers = np.asarray(row, dtype=np.float64)
    if numbers.ndim != 1 or not 1 <= numbers.size <= LONGEST:
        raise ValueError(
            say(
                "The row has {count} numbers. It takes 1 to {most}, for example 0.7, 1.1, 0.2.",
                count=numbers.size, most=LONGEST,
            )
        )  # fmt: skip
    allowed = np.isfinite(numbers) | (np.isneginf(numbers) if allow_hidden else False)
    if not allowed.all():
        extra = say(", or −inf for a hidden key") if allow_hidden else ""
        raise ValueError(
            say("{wrong:g} cannot be used here. Type finite numbers{extra}.", wrong=numbers[~allowed][0], extra=extra)
        )
    return numbers


def _vector(given: Sequence[float] | None, x: Array, default: float, name: str) -> Array:
    if given is None:
        return np.full(x.shape, default)
    vector = np.asarray(given, dtype=np.float64)
    if vector.shape != x.shape or not np.isfinite(vector).all():
        raise ValueError(
            say(
                "{name} has {count} numbers, the row {width}. Give one finite number for each feature.",
                name=name, count=vector.size, width=x.size,
            )
        )  # fmt: skip
    return vector
