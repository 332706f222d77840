"""What an update does to the residual stream, token by token.

Purpose: the figure "residual": norms of the stream and of each update, the update's cells, its cosine to the stream.
Must not know: torch, Trace, what makes the updates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from explorer.draw.figure import (
    Trace,
    figure,
    heading,
    layout,
    legend,
    place,
    room,
    spread,
    stems,
    token_axis,
    value_axis,
)
from explorer.draw.heatmap import Pane, Style, place_panes
from explorer.draw.numbers import Array, number, spoken
from explorer.draw.positions import NUMBERED, Positions
from explorer.draw.scales import Figure, nice_limit
from explorer.draw.words import join, say

MOST_TOKENS = 128
MOST_IN_WORDS = 6


@dataclass(frozen=True)
class Stream:
    """The stream at one moment. name: its symbol; values: [T, D]."""

    name: str
    values: Array


@dataclass(frozen=True)
class Update:
    """What is added between two moments of the stream. name: its symbol; role: colour role; values: [T, D]."""

    name: str
    role: str
    values: Array


def norms(values: Array) -> Array:
    """Euclidean length of each row, [T] float64."""
    return np.asarray(np.sqrt(np.square(np.asarray(values, dtype=np.float64)).sum(-1)))


def cosines(update: Array, stream: Array) -> Array:
    """Cosine between matching rows, [T] float64 in −1 … 1; NaN where a row has no direction."""
    u, s = np.asarray(update, dtype=np.float64), np.asarray(stream, dtype=np.float64)
    length = norms(u) * norms(s)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(length > 0, np.clip((u * s).sum(-1) / length, -1, 1), np.nan))


def chosen_tokens(tokens: int) -> Array:
    """The token numbers that get a lollipop: all, or MOST_TOKENS evenly spread."""
    return np.unique(np.linspace(0, tokens - 1, min(tokens, MOST_TOKENS)).round().astype(int))


def residual_figure(
    streams: Sequence[Stream], updates: Sequence[Update], tokens: Positions = NUMBERED, lang: str = "en"
) -> Figure:
    """streams: X, Y, X_next; updates: one fewer, updates[i] leads from streams[i] to streams[i+1].

    Panes: norms of streams and updates; cosine of each update to the stream it is added to; each update's cells.
    """
    drawn = chosen_tokens(updates[0].values.shape[0])
    area = 398 + tokens.below  # pixels inside the margins
    top = (round(1 - 159 / area, 4), 1.0)
    data, axes = _norm_pane(streams, updates, drawn, tokens, top, lang)
    more, extra = _cosine_pane(streams, updates, drawn, tokens, top, lang)
    titles = say(lang, "axis.token"), say(lang, "axis.feature")
    style = Style("signed", titles, "update", names=(tokens, None))
    panes = [Pane(say(lang, "residual.cells", name=u.name), u.values, starts=(tokens.past, 0)) for u in updates]
    boxes = [(x, (0.0, round(143 / area, 4))) for x in spread(len(panes), 0.1)]
    cells, grid = place_panes(panes, style, lang, boxes, first=2)
    headings = [*axes.pop("annotations"), *extra.pop("annotations"), *grid.pop("annotations")]
    shape = layout(72 + area, **axes, **extra, **grid, annotations=headings)
    shape |= legend(round(171 / area, 4), "bottom", "paper")
    shape["margin"] = room(shape["margin"], tokens, left=True)
    told = [_in_words(streams[i], u, streams[i + 1], tokens, lang) for i, u in enumerate(updates)]
    text = join(lang, "sentences", told)
    return figure("residual", say(lang, "residual.title"), text, [*data, *more, *cells], shape)


def _beside(i: int, n: int) -> float:
    """How far lollipop i of n stands from its token, so that all n stand side by side."""
    return (i - (n - 1) / 2) * min(0.16, 0.8 / n)


def _token_axis(drawn: Array, tokens: Positions, lang: str) -> dict[str, Any]:
    return token_axis(tokens, int(drawn[-1]) + 1, say(lang, "axis.token"))


Box = tuple[float, float]
SYMBOLS = ("circle-open", "circle", "square")


def _norm_pane(
    streams: Sequence[Stream], updates: Sequence[Update], drawn: Array, tokens: Positions, box: Box, lang: str
) -> tuple[list[Trace], dict[str, Any]]:
    series: list[tuple[str, str, Array, str]] = []
    for i, stream in enumerate(streams):
        series.append((stream.name, "resid", norms(stream.values), SYMBOLS[i % len(SYMBOLS)]))
        if i < len(updates):
            series.append((updates[i].name, updates[i].role, norms(updates[i].values), "diamond"))
    data = []
    for i, (name, role, lengths, symbol) in enumerate(series):
        hover = say(lang, "norm.hover", name=name)
        more: dict[str, Any] = {"shift": _beside(i, len(series)), "symbol": symbol}
        more["called"] = tokens.labels(drawn + tokens.past)
        data.append(stems(name, drawn + tokens.past, lengths[drawn], role, hover, **more))
    axes: dict[str, Any] = {}
    top = nice_limit(*(lengths for _, _, lengths, _ in series))
    y = value_axis(0, 1.06 * top, say(lang, "axis.norm"))
    place(axes, 0, _token_axis(drawn, tokens, lang), y, (spread(2, 0.1)[0], box))
    return data, axes | {"annotations": [heading(0, say(lang, "residual.norms"))]}


def _cosine_pane(
    streams: Sequence[Stream], updates: Sequence[Update], drawn: Array, tokens: Positions, box: Box, lang: str
) -> tuple[list[Trace], dict[str, Any]]:
    data = []
    for i, update in enumerate(updates):
        values = cosines(update.values, streams[i].values)[drawn]
        hover = say(lang, "cosine.hover", name=update.name, stream=streams[i].name)
        more: dict[str, Any] = {"shift": _beside(i, len(updates)), "symbol": "diamond", "showlegend": False}
        more["called"] = tokens.labels(drawn + tokens.past)
        data.append(stems(update.name, drawn + tokens.past, values, update.role, hover, pane=1, **more))
    axes: dict[str, Any] = {}
    y = value_axis(-1.08, 1.08, say(lang, "axis.cosine"))
    place(axes, 1, _token_axis(drawn, tokens, lang), y, (spread(2, 0.1)[1], box))
    return data, axes | {"annotations": [heading(1, say(lang, "residual.cosine"))]}


def _in_words(before: Stream, update: Update, after: Stream, tokens: Positions, lang: str) -> str:
    count = len(update.values)
    chosen = np.unique(np.linspace(0, count - 1, min(count, MOST_IN_WORDS)).round().astype(int))
    lengths = [norms(x.values) for x in (before, update, after)]
    cosine = cosines(update.values, before.values)
    parts = []
    for t in chosen:
        turned = {"cosine": number(cosine[t])} if np.isfinite(cosine[t]) else {}
        before_t, update_t, after_t = (float(x[t]) for x in lengths)
        key = "residual.text" if turned else "residual.text.flat"
        token = tokens.spoken(int(t) + tokens.past)
        parts.append(say(lang, key, token=token, before=before_t, update=update_t, after=after_t, **turned))
    names = {"name": spoken(update.name), "before": spoken(before.name), "after": spoken(after.name)}
    return say(lang, "residual.part", **names, tokens=join(lang, "rows", parts))
