"""Lengths of rows: the RMS of each token around a norm, and the length of each head's vectors.

Purpose: the figures "norm", "projections" and the comparison of RMSNorm with LayerNorm on one row.
Must not know: torch, Trace, which block this is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from explorer.draw.figure import (
    LINE,
    Trace,
    figure,
    layout,
    legend,
    place,
    room,
    stems,
    token_axis,
    value_axis,
    whole_axis,
)
from explorer.draw.heatmap import Pane, Style, pane_grid
from explorer.draw.numbers import Array, number, row
from explorer.draw.positions import NUMBERED, Positions
from explorer.draw.residual import chosen_tokens, norms
from explorer.draw.scales import Figure, nice_limit
from explorer.draw.words import join, say


def rms(values: Array) -> Array:
    """Root of the mean square of each row, [...] float64."""
    return np.asarray(np.sqrt(np.square(np.asarray(values, dtype=np.float64)).mean(-1)))


def norm_figure(
    before: tuple[str, Array], after: tuple[str, Array], tokens: Positions = NUMBERED, lang: str = "en"
) -> Figure:
    """RMS of each token's row before and after a norm; each is (symbol, [T, D])."""
    drawn = chosen_tokens(before[1].shape[0])
    places, count = drawn + tokens.past, int(drawn[-1]) + 1
    both = [(before[0], rms(before[1])), (after[0], rms(after[1]))]
    data: list[Trace] = [_line_at_one(tokens.past, count)]
    for i, (name, values) in enumerate(both):
        symbol = "circle" if i else "circle-open"
        hover = say(lang, "rms.hover", name=name)
        more: dict[str, Any] = {"shift": (i - 0.5) * 0.2, "symbol": symbol, "called": tokens.labels(places)}
        data.append(stems(name, places, values[drawn], "resid", hover, **more))
    axes: dict[str, object] = {}
    top = nice_limit(both[0][1], both[1][1], np.ones(1))
    x = token_axis(tokens, count, say(lang, "axis.token"))
    place(axes, 0, x, value_axis(0, 1.06 * top, "RMS"), ((0, 1), (0, 1)))
    some = [int(drawn[n]) for n in np.unique(np.linspace(0, len(drawn) - 1, min(len(drawn), 6)).round().astype(int))]
    parts = [
        say(lang, "norm.row", token=tokens.spoken(t + tokens.past), before=both[0][1][t], after=both[1][1][t])
        for t in some
    ]
    text = say(lang, "norm.text", before=before[0], after=after[0], rows=join(lang, "rows", parts))
    shape = layout(230 + tokens.below, **axes, **legend(1.02, "bottom", "paper"))
    shape["margin"] = room(shape["margin"], tokens, below=True)
    return figure("norm", say(lang, "norm.title"), text, data, shape)


def _line_at_one(past: int, count: int) -> Trace:
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [past - 0.5, past + count - 0.5],
        "y": [1, 1],
        "line": {"color": LINE, "width": 1, "dash": "dash"},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def projections_figure(parts: Sequence[tuple[str, Array]], tokens: Positions = NUMBERED, lang: str = "en") -> Figure:
    """Length of each head's vector for each token; parts are (symbol, [heads, T, Dh]), queries first."""
    titles = say(lang, "axis.head"), say(lang, "axis.token")
    style = Style("magnitude", titles, "length", (32, 64), names=(None, tokens))
    panes = [Pane(say(lang, "length.of", name=name), norms(values), starts=(0, tokens.past)) for name, values in parts]
    data, axes = pane_grid(panes, style, lang, across=3)
    told = []
    for name, values in parts:
        lengths = norms(values)
        finite = lengths[np.isfinite(lengths)]
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (np.nan, np.nan)
        if number(low) == number(high):
            told.append(say(lang, "projections.equal", name=name, heads=len(values), low=low))
        else:
            told.append(say(lang, "projections.part", name=name, heads=len(values), low=low, high=high))
    shape = layout(110 + tokens.below + 22 * max(3, min(32, max(len(v) for _, v in parts))), **axes)
    shape["margin"] = room(shape["margin"], tokens, below=True)
    return figure("projections", say(lang, "projections.title"), join(lang, "sentences", told), data, shape)


def norm_comparison_figure(given: Array, rms_normed: Array, layer_normed: Array, lang: str = "en") -> Figure:
    """One row of features as given, after RMSNorm, and after LayerNorm; [D] each."""
    n = len(given)
    series = [
        ("given", given, "resid", "circle-open"),
        ("rms", rms_normed, "q", "circle"),
        ("layer", layer_normed, "ffn", "diamond"),
    ]
    data, told = [], []
    for i, (key, values, role, symbol) in enumerate(series):
        name = say(lang, f"compare.{key}")
        hover = say(lang, "compare.hover", name=name)
        data.append(stems(name, np.arange(n), values, role, hover, shift=(i - 1) * 0.2, symbol=symbol))
        told.append(
            say(lang, "compare.text", name=name, row=row(values), mean=number(np.mean(values)), rms=float(rms(values)))
        )
    axes: dict[str, object] = {}
    top = 1.08 * nice_limit(*(v for _, v, _, _ in series))
    place(axes, 0, whole_axis(n, 0, say(lang, "axis.feature")), value_axis(-top, top), ((0, 1), (0, 1)))
    shape = layout(260, **axes, **legend(1.02, "bottom", "paper"))
    return figure("norm_comparison", say(lang, "compare.title"), join(lang, "sentences", told), data, shape)
