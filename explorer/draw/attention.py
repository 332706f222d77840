"""Scores and probabilities of attention, one heatmap a head: queries down, keys across.

Purpose: the figures "masked_scores" and "probs" and what they say in words.
Must not know: torch, Trace, how scores are computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from explorer.draw.figure import figure, layout, legend, room
from explorer.draw.heatmap import Pane, Style, pane_grid, state_legend
from explorer.draw.numbers import Array, number, row
from explorer.draw.positions import NUMBERED, Positions
from explorer.draw.scales import GLYPHS, Figure, states
from explorer.draw.words import join, say

MOST_HEADS = 16
MOST_CELLS = 12_288
MOST_ROWS_IN_WORDS = 8


@dataclass(frozen=True)
class Attention:
    """What one batch row's attention figures are drawn from.

    heads:  the numbers of the heads that are drawn (shown_heads)
    values: their masked scores or probabilities, [Tq, Tk] each
    future, padded: bool [Tq, Tk], True where the mask hides a key because it comes later, or because it is padding
    tokens: how tokens are called; the first query stands at position tokens.past
    head:   the head in focus, one of `heads`
    """

    heads: Sequence[int]
    values: Sequence[Array]
    future: Array
    padded: Array
    tokens: Positions = NUMBERED
    head: int = 0


def masked_scores_figure(a: Attention, lang: str = "en") -> Figure:
    """Scores after the mask: signed scale; a hidden key's −∞ is a grey cell, not a very low score."""
    return _figure(a, "masked_scores", "signed", -np.inf, GLYPHS, lang)


def probs_figure(a: Attention, lang: str = "en") -> Figure:
    """Probabilities: 0 to 1; a hidden key's exact 0 is a grey cell, apart from a merely small probability."""
    return _figure(a, "probs", "unit", 0.0, ("", "0", "0", *GLYPHS[3:]), lang)


def shown_heads(heads: int, head: int) -> range:
    """The heads that are drawn: all, or MOST_HEADS of them around `head`."""
    first = min(max(0, head - MOST_HEADS // 2), max(0, heads - MOST_HEADS))
    return range(first, min(heads, first + MOST_HEADS))


def _figure(a: Attention, key: str, scale: str, hidden: float, glyphs: tuple[str, ...], lang: str) -> Figure:
    codes = [states(values, a.future, a.padded, hidden) for values in a.values]
    side = int(np.sqrt(MOST_CELLS / len(a.heads)))
    titles = say(lang, "axis.query"), say(lang, "axis.key")
    style = Style(scale, titles, key, (side, side), True, glyphs, (a.tokens, a.tokens))
    panes = [
        Pane(say(lang, "head", head=h), v, c, (a.tokens.past, 0))
        for h, v, c in zip(a.heads, a.values, codes, strict=True)
    ]
    data, axes = pane_grid(panes, style, lang)
    across, (queries, keys) = min(4, len(panes)), a.values[0].shape
    each = min(260 if across < 3 else 210, (720 - a.tokens.left) / across * queries / keys)
    height = round(100 + a.tokens.below + -(-len(panes) // 4) * (max(60, each) + 30))
    text = say(lang, f"{key}.text", head=a.head, rows=_rows_in_words(a, codes, lang))
    data += state_legend(codes, lang)
    shape = layout(height, **axes, **legend())
    shape["margin"] = room({"l": 48, "r": 12, "t": 50, "b": 46}, a.tokens, left=True, below=True)
    return figure(key, say(lang, f"{key}.title"), text, data, shape)


def _rows_in_words(a: Attention, codes: Sequence[Array], lang: str) -> str:
    """Each query's row while rows are short, else its three largest plain cells; at most MOST_ROWS_IN_WORDS queries."""
    at = list(a.heads).index(a.head)
    focus, codes_here = a.values[at], codes[at]
    queries, keys = focus.shape
    chosen = np.unique(np.linspace(0, queries - 1, min(queries, MOST_ROWS_IN_WORDS)).round().astype(int))
    parts = []
    for i in chosen:
        values = focus[i].astype(np.float64)
        if keys <= 6:
            shown = row(values)
        else:
            allowed = np.flatnonzero(codes_here[i] == 0)
            best = allowed[np.argsort(-values[allowed], kind="stable")[:3]]
            told = [say(lang, "key.value", key=a.tokens.spoken(int(j)), value=number(values[j])) for j in best]
            shown = join(lang, "items", told)
        parts.append(say(lang, "query.row", query=a.tokens.spoken(int(i) + a.tokens.past), row=shown))
    return join(lang, "rows", parts)
