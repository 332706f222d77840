"""Colours: one per role, one scale per kind of value, one mark per state of a cell, in light and dark.

Purpose: the only place where a colour is chosen. Styles of the page are generated from PALETTE too.
Must not know: what is drawn.

How themes work. Every figure is built with the light colours in place, so it can be shown as it is. Each trace also
says in `meta.paint` where a colour sits and what it is called, for example
`{"line.color": "q", "colorscale": "signed"}`; a client in dark mode sets those paths from `PALETTE["dark"]`
(`themed` does the same in Python). `layout.font.color` is left to the client: text follows the page.

All scales are colour-blind safe, and in both themes the text on a cell changes its colour at the same place of the
scale, STRONG. "signed" is symmetric in lightness around zero, which is white (light) or the paper's own dark (dark
theme). "unit" runs from 0 to 1, "magnitude" from 0 to the largest value shown. Each has a paler twin ("cell_signed",
"cell_unit", "cell_magnitude") for matrices small enough to be read as numbers, on the page and in figures alike. A
cell without a plain number gets a state and a flat colour that no scale contains.
"""

from __future__ import annotations

import copy
from typing import Any, TypeAlias

import numpy as np

from explorer.draw.numbers import Array

Figure: TypeAlias = dict[str, Any]
Colours: TypeAlias = dict[str, Any]

ROLES = ("resid", "q", "k", "v", "score", "prob", "attn", "ffn")
STATES = ("future", "padded", "minus_infinity", "nan", "infinity")  # codes 1 to 5; 0 is a plain number
GLYPHS = ("", "−∞", "pad", "−∞", "NaN", "∞")
PLAIN, FUTURE, PADDED, MINUS_INFINITY, NOT_A_NUMBER, INFINITY = range(6)


def _even(colours: str) -> list[list[Any]]:
    """Colours at equal distances from 0 to 1."""
    names = colours.split()
    return [[round(i / (len(names) - 1), 4), name] for i, name in enumerate(names)]


def _steps(*colours: str) -> list[list[Any]]:
    """Flat bands, one a state."""
    n = len(colours)
    return [[round(edge / n, 4), c] for i, c in enumerate(colours) for edge in (i, i + 1)]


PALETTE: dict[str, Colours] = {
    "light": {
        "resid": "#4f5d6b",
        "q": "#1f5fc4",
        "k": "#c02942",
        "v": "#1d7a3e",
        "score": "#0b7285",
        "prob": "#0b7285",
        "attn": "#7a3db8",
        "ffn": "#9a5b00",
        "muted": "#5f6672",
        "on_weak": "#16191e",
        "on_strong": "#ffffff",
        "signed": _even("#004a98 #306dbb #5e92d6 #90b6ea #c6dbf7 #ffffff #efd2c2 #daa789 #c17d54 #a25721 #793802"),
        "unit": _even("#ffffff #c5e5e9 #8bcad2 #4dafba #0c919d #08717a #015259"),
        "state": _steps("#c3c6cd", "#989eaa", "#646b78", "#d6219c", "#111318"),
    },
    "dark": {
        "resid": "#aebccb",
        "q": "#7ab0ff",
        "k": "#ff8a94",
        "v": "#6fd08b",
        "score": "#62c8da",
        "prob": "#62c8da",
        "attn": "#c79bf7",
        "ffn": "#f2b544",
        "muted": "#9aa4b2",
        "on_weak": "#f4f5f7",
        "on_strong": "#0d0f12",
        "signed": _even("#449df0 #2c81cf #2267a6 #214e7a #22374c #1f1f1f #462f1c #6d3f13 #945102 #b86603 #d88027"),
        "unit": _even("#242a2b #1f3a39 #0a4f4d #026663 #077d7a #099592 #0eaeaa"),
        "state": _steps("#0a0b0d", "#6e7581", "#a2a8b4", "#ff6fcf", "#f4f5f7"),
    },
}
# How far along its scale a matrix of few cells goes: numbers on its cells must stay readable.
TINT = {"light": {"signed": 0.36, "unit": 0.46}, "dark": {"signed": 0.44, "unit": 0.36}}


def _toned(stops: list[list[Any]], reach: float, around: bool) -> list[list[Any]]:
    """The part of a scale that goes `reach` of its way from 0, or from the middle (around), as its own scale."""
    low, high = (0.5 - reach / 2, 0.5 + reach / 2) if around else (0.0, reach)
    places = [at for at, _ in stops]
    channels = [[int(colour[i : i + 2], 16) for _, colour in stops] for i in (1, 3, 5)]
    kept = [low, *(at for at in places if low < at < high), high]
    mixed = ["#" + "".join(f"{round(float(np.interp(at, places, c))):02x}" for c in channels) for at in kept]
    return [[round((at - low) / (high - low), 4), colour] for at, colour in zip(kept, mixed, strict=True)]


for _theme, _colours in PALETTE.items():
    _colours["magnitude"] = _colours["unit"]
    for _scale, _reach in TINT[_theme].items():
        _colours[f"cell_{_scale}"] = _toned(_colours[_scale], _reach, around=_scale == "signed")
    _colours["cell_magnitude"] = _colours["cell_unit"]
    _colours.update({name: _colours["state"][2 * i][1] for i, name in enumerate(STATES)})

STRONG = 0.73  # from this share of a scale's end on, text on a cell takes the colour "on_strong"
STRONG_STATES = (MINUS_INFINITY, NOT_A_NUMBER, INFINITY)
STEPS = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0)


def nice_limit(*arrays: Array) -> float:
    """The smallest of 1, 1.5, 2, 3, 5, 7 × 10ⁿ that no finite magnitude exceeds; 1 when there is nothing but zeros.

    Ranges move in such steps so that a small edit changes a figure's numbers and not its axes.
    """
    largest = 0.0
    for array in arrays:
        finite = np.asarray(array, dtype=np.float64)
        finite = finite[np.isfinite(finite)]
        if finite.size:
            largest = max(largest, float(np.abs(finite).max()))
    if largest == 0:
        return 1.0
    power = 10.0 ** int(np.floor(np.log10(largest)))
    return next(float(f"{s * power:.6g}") for s in STEPS if largest <= s * power * (1 + 1e-6))


def scale_range(scale: str, *arrays: Array) -> tuple[float, float]:
    """(zmin, zmax): ±limit for "signed", 0 to 1 for "unit", 0 to limit for "magnitude"."""
    if scale == "unit":
        return 0.0, 1.0
    limit = nice_limit(*arrays)
    return (-limit if scale == "signed" else 0.0), limit


def states(values: Array, future: Array | None = None, padded: Array | None = None, hidden: float = -np.inf) -> Array:
    """State code of every cell (int8, shape of `values`).

    future, padded: bool, broadcastable to `values`: the mask hides this cell because the key comes later, or
    because it is padding. A masked cell counts as masked while it holds `hidden` (−∞ for scores, 0 for
    probabilities); with another number in it, put there by an edit, it is a plain cell.
    """
    minus_infinity = values == -np.inf
    code: Array = minus_infinity * np.int8(MINUS_INFINITY)
    odd = ~(np.isfinite(values) | minus_infinity)
    if odd.any():
        code[odd] = np.where(np.isnan(values[odd]), NOT_A_NUMBER, INFINITY)
    at_rest = minus_infinity if hidden == -np.inf else values == hidden
    for mask, state in ((future, FUTURE), (padded, PADDED)):
        if mask is not None and mask.any():
            here = mask & at_rest
            code = code * ~here + here * np.int8(state)  # faster than an assignment by mask
    return code


def paint(**places: str) -> dict[str, Any]:
    """A trace's `meta`: where colours sit and what they are called; `line_color="q"` stands for line.color."""
    return {"paint": {place.replace("_", "."): name for place, name in places.items()}}


def themed(figure: Figure, theme: str) -> Figure:
    """A copy of a figure (or of a bare trace list's owner) in the "light" or "dark" colours."""
    if theme not in PALETTE:
        raise LookupError(f"There is no theme {theme!r}. Themes: {', '.join(PALETTE)}.")
    result = copy.deepcopy(figure)
    for trace in result["data"]:
        for path, name in trace.get("meta", {}).get("paint", {}).items():
            *parents, last = path.split(".")
            place = trace
            for parent in parents:
                place = place.setdefault(parent, {})
            place[last] = copy.deepcopy(PALETTE[theme][name])
    return result
