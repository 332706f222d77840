"""What a sublayer makes before it is added: the attention update by head, the feed-forward's gated features.

Purpose: the figures "attn_out" and "swiglu".
Must not know: torch, Trace, how the numbers were computed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from explorer.draw.figure import figure, layout, room
from explorer.draw.heatmap import Pane, Style, pane_grid, place_panes
from explorer.draw.numbers import Array
from explorer.draw.positions import NUMBERED, Positions
from explorer.draw.residual import norms
from explorer.draw.scales import Figure
from explorer.draw.words import join, say

MOST_IN_WORDS = 6


def head_contributions(concat: Array, w_o: Array, heads: int) -> Array:
    """What each head adds to the update: its own slice of `concat` through its own columns of W_O.

    concat: [T, C]; w_o: [D, C] as stored; returns [H, T, D]. They sum to the update (before any edit of it).
    """
    width = concat.shape[1] // heads
    x = np.asarray(concat, dtype=np.float64).reshape(len(concat), heads, width)
    w = np.asarray(w_o, dtype=np.float64).reshape(len(w_o), heads, width)
    return np.stack([x[:, h] @ w[:, h].T for h in range(heads)])


def attn_out_figure(update: Array, by_head: Array, tokens: Positions = NUMBERED, lang: str = "en") -> Figure:
    """update: [T, D]; by_head: [H, T] length of each head's share."""
    rows, names = say(lang, "axis.token"), (tokens, None)
    cells = Style("signed", (rows, say(lang, "axis.feature")), "update", names=names)
    share = Style("magnitude", (rows, say(lang, "axis.head")), "share", (64, 32), names=names)
    panes = [
        Pane(say(lang, "attn_out.cells"), update, starts=(tokens.past, 0)),
        Pane(say(lang, "attn_out.share"), by_head.T, starts=(tokens.past, 0)),
    ]
    left, right = (0.0, 0.5), (0.68, 1.0)
    data, axes = place_panes(panes[:1], cells, lang, [(left, (0.0, 1.0))])
    more, extra = place_panes(panes[1:], share, lang, [(right, (0.0, 1.0))], first=1)
    data[0]["colorbar"] |= {"x": 0.5}
    headings = [*axes.pop("annotations"), *extra.pop("annotations")]
    lengths = norms(update)
    last = len(update) - 1
    text = say(
        lang,
        "attn_out.text",
        token=tokens.spoken(last + tokens.past),
        norm=float(lengths[last]),
        heads=join(
            lang,
            "items",
            [say(lang, "attn_out.head", head=h, norm=float(x)) for h, x in enumerate(by_head[:MOST_IN_WORDS, last])],
        ),
    )
    shape = layout(260, **axes, **extra, annotations=headings)
    shape["margin"] = room(shape["margin"], tokens, left=True)
    if tokens.texts:  # the rows of both panes are the same tokens; there is room for their texts at the left only
        shape["yaxis2"] = {**shape["yaxis2"], "showticklabels": False, "title": None}
    return figure("attn_out", say(lang, "attn_out.title"), text, [*data, *more], shape)


def swiglu_figure(parts: Sequence[tuple[str, Array]], tokens: Positions = NUMBERED, lang: str = "en") -> Figure:
    """gate, up and hidden of the feed-forward, each (symbol, [T, F]), on one scale."""
    titles = say(lang, "axis.token"), say(lang, "axis.hidden")
    style = Style("signed", titles, "update", (48, 48), names=(tokens, None))
    panes = [Pane(name, values, starts=(tokens.past, 0)) for name, values in parts]
    data, axes = pane_grid(panes, style, lang, across=3)
    last, told = len(parts[0][1]) - 1, []
    for name, values in parts:
        told.append(say(lang, "swiglu.part", name=name, row=values[last]))
    text = say(lang, "swiglu.text", token=tokens.spoken(last + tokens.past), parts=join(lang, "rows", told))
    shape = layout(250, **axes)
    shape["margin"] = room(shape["margin"], tokens, left=True)
    return figure("swiglu", say(lang, "swiglu.title"), text, data, shape)
