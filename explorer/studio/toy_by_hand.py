"""Exercise 3: P·V and X + O of the toy, by hand.

Must not know: the page.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from explorer.draw.numbers import number
from explorer.run import run
from explorer.spec import RunSpec
from explorer.studio import typed
from explorer.studio.exercise import Marked, Task, summed_up
from explorer.studio.texts import Texts, symbol_of

Array = NDArray[np.float64]
CLOSE = 5e-3  # two decimals are enough
GIVEN = ("probs", "v", "resid_pre")
ASKED = (("heads", 5), ("resid_mid", 7))  # with the stage that shows each


def _of(name: str) -> Array:
    """The toy's numbers [T, 2] of a quantity, its batch row and head left out."""
    values = run(RunSpec())[name].astype(np.float64)
    return values.reshape(values.shape[-2:])


def task(seed: int, texts: Texts) -> Task:
    return {
        "given": [{"symbol": symbol_of(name), "rows": [list(map(number, row)) for row in _of(name)]} for name in GIVEN],
        "asked": [
            {"symbol": symbol_of(name), "label": texts.say(f"asked.{name}"), "rows": 2, "cols": 2, "stage": stage}
            for name, stage in ASKED
        ],
        "preset": "toy",
    }  # fmt: skip


def mark(answer: Any, seed: int, texts: Texts) -> Marked:
    """answer: eight numbers as text, P·V row by row, then X + O."""
    places = [(name, i, j) for name, _ in ASKED for i in range(2) for j in range(2)]
    marks: list[bool | None] = []
    hints = []
    for (name, i, j), text in zip(places, typed.parts(answer, len(places)), strict=True):
        given, right = typed.number(text), float(_of(name)[i, j])
        mark = None if typed.blank(text) else given is not None and abs(given - right) <= CLOSE
        marks.append(mark)
        hints.append("" if mark is not False else _hint(name, i, j, given, texts))
    return Marked(tuple(marks), tuple(hints), summed_up(marks, texts), all(marks))


def _hint(name: str, i: int, j: int, given: float | None, texts: Texts) -> str:
    if given is None:
        return texts.say("hint.unread")
    for key, value in (_blend_mistakes if name == "heads" else _sum_mistakes)(i, j):
        if abs(given - value) <= CLOSE:
            return texts.say(f"hint.{key}")
    return texts.say(f"hint.{name}", row=i, column=j)


def _blend_mistakes(i: int, j: int) -> list[tuple[str, float]]:
    p, v = _of("probs"), _of("v")
    return [
        ("unweighted", float(v[p[i] > 0, j].sum())), ("future", float(v[:, j].mean())), ("row", float((p @ v.T)[i, j])),
        ("sign", float(-(p @ v)[i, j])), ("own", float(v[i, j])),
    ]  # fmt: skip


def _sum_mistakes(i: int, j: int) -> list[tuple[str, float]]:
    x, o = _of("resid_pre"), _of("heads")
    return [
        ("forgot_x", float(o[i, j])), ("forgot_o", float(x[i, j])), ("minus", float((x - o)[i, j])),
        ("minus", float((o - x)[i, j])), ("sign", float(-(x + o)[i, j])), ("product", float((x * o)[i, j])),
    ]  # fmt: skip
