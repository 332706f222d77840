"""The two calculations to try on the page: LayerNorm beside RMSNorm at stage 1, the softmax of a row at stage 5.

Purpose: what was typed -> the numbers and sentences to show, or a message for the field.
Must not know: gradio, the formulas (explorer.stages.checks).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from explorer.messages import said, say
from explorer.run import run
from explorer.spec import RunSpec, SpecError
from explorer.stages.checks import COURSE_ROW, LONGEST, norm_comparison, read_row, softmax_check
from explorer.stages.terms import ENGLISH

GAMMA = "input_layernorm.weight"
LONGEST_TEXT = 2000  # characters of a row


def course_row() -> str:
    """The course's row of scores as one types it."""
    return ", ".join("−inf" if np.isneginf(x) else f"{x:g}" for x in COURSE_ROW)


def softmax(asked: Any, lang: str = ENGLISH) -> dict[str, Any]:
    """The softmax of the row typed, step by step. Raises SpecError with the message for its field."""
    text = _text(asked, "softmax", "row") or course_row()
    with Beside("softmax.row"):
        found = softmax_check(read_row(text), lang)
    return {
        "scores": _numbers(found.scores), "exponentials": _numbers(found.exponentials), "total": found.total,
        "shares": _numbers(found.shares), "rounded": found.rounded, "rounded_total": found.rounded_total,
        "sentences": found.sentences,
    }  # fmt: skip


def norms(spec: RunSpec, row: int, asked: Any, texts: Mapping[str, Any]) -> dict[str, Any]:
    """One token's row of X through both norms. γ and β: "block" or empty for the usual, else numbers; one fits all.

    Raises SpecError with the message for the field.
    """
    trace = run(spec)
    given = asked if isinstance(asked, Mapping) else {}
    token = given.get("t") if isinstance(given.get("t"), int) else 0
    token = min(max(int(token or 0), 0), spec.T - 1)
    x = trace["resid_pre"][row, token].astype(np.float64)
    x, cut = x[:LONGEST], x.size > LONGEST
    own: list[float] = trace.weights[GAMMA].astype(np.float64)[: x.size].tolist()
    gamma = own if given.get("gamma") == "block" else _vector(given, "gamma", x.size)
    beta = _vector(given, "beta", x.size)
    with Beside("norms.row"):
        found = norm_comparison(x, gamma, beta, spec.norm_eps, texts["lang"])
    return {
        "token": token, "tokens": spec.T, "past": spec.past,
        "note": texts["norms_cut"].format(n=x.size, width=spec.d_model) if cut else "",
        "rows": [_numbers(values) for values in (found.given, found.rms_normed, found.layer_normed)],
        "sentences": found.sentences, "figure": found.figure,
    }  # fmt: skip


class Beside:
    """Turns a ValueError inside into a message for one field."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ValueError) and not isinstance(error, SpecError):
            raise SpecError({self.name: said(error)}) from None


def _vector(given: Mapping[str, Any], name: str, width: int) -> list[float] | None:
    """The numbers typed for γ or β; a single one stands for every feature; None when the field is empty."""
    text = _text(given, "norms", name)
    if not text:
        return None
    with Beside(f"norms.{name}"):
        numbers = read_row(text)
        if len(numbers) not in (1, width):
            raise ValueError(
                say(
                    "{name} has {count} numbers, the row {width}. Type one for each feature, or one.",
                    name=name, count=len(numbers), width=width,
                )
            )  # fmt: skip
        if not np.isfinite(numbers).all():
            raise ValueError(say("{name} must be finite. Type numbers such as 1 or 0.5.", name=name))
    return numbers * width if len(numbers) == 1 else numbers


def _text(asked: Any, trial: str, name: str) -> str:
    value = asked.get(name) if isinstance(asked, Mapping) else ""
    text = value.strip() if isinstance(value, str) else ""
    if len(text) > LONGEST_TEXT:
        raise SpecError({f"{trial}.{name}": say("A row takes at most {most} numbers. Shorten it.", most=LONGEST)})
    return text


def _numbers(values: Any) -> list[float | str]:
    """Four significant digits travel; what is not finite goes as text."""
    return [float(f"{x:.6g}") if np.isfinite(x) else str(x) for x in values]
