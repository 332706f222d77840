"""What a sublayer makes before it is added: the attention update by head, the feed-forward's gated features.

Purpose: the figures "attn_out" and "swiglu".
Must not know: torch, Trace, how the numbers were computed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from explorer.draw.figure import figure, layout
from explorer.draw.heatmap import Pane, Style, pane_grid, place_panes
from explorer.draw.numbers import Array
from explorer.draw.residual import norms
from explorer.draw.scales import Figure
from explorer.draw.words import say

MOST_IN_WORDS = 6


def head_contributions(concat: Array, w_o: Array, heads: int) -> Array:
    """What each head adds to the update: its own slice of `concat` through its own columns of W_O.

    concat: [T, C]; w_o: [D, C] as stored; returns [H, T, D]. They sum to the update (before any edit of it).
    """
    width = concat.shape[1] // heads
    x = np.asarray(concat, dtype=np.float64).reshape(len(concat), heads, width)
    w = np.asarray(w_o, dtype=np.float64).reshape(len(w_o), heads, width)
    return np.stack([x[:, h] @ w[:, h].T for h in range(heads)])


def attn_out_figure(update: Array, by_head: Array, past: int = 0, lang: str = "en") -> Figure:
    """update: [T, D]; by_head: [H, T] length of each head's share."""
    cells = Style("signed", (say(lang, "axis.token"), say(lang, "axis.feature")), "update")
    share = Style("magnitude", (say(lang, "axis.token"), say(lang, "axis.head")), "share", (64, 32))
    panes = [
        Pane(say(lang, "attn_out.cells"), update, starts=(past, 0)),
        Pane(say(lang, "attn_out.share"), by_head.T, starts=(past, 0)),
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
        token=last + past,
        norm=float(lengths[last]),
        heads=", ".join(
            say(lang, "attn_out.head", head=h, norm=float(x)) for h, x in enumerate(by_head[:MOST_IN_WORDS, last])
        ),
    )
    shape = layout(260, **axes, **extra, annotations=headings)
    return figure("attn_out", say(lang, "attn_out.title"), text, [*data, *more], shape)


def swiglu_figure(parts: Sequence[tuple[str, Array]], past: int = 0, lang: str = "en") -> Figure:
    """gate, up and hidden of the feed-forward, each (symbol, [T, F]), on one scale."""
    style = Style("signed", (say(lang, "axis.token"), say(lang, "axis.hidden")), "update", (48, 48))
    data, axes = pane_grid([Pane(name, values, starts=(past, 0)) for name, values in parts], style, lang, across=3)
    last, told = len(parts[0][1]) - 1, []
    for name, values in parts:
        told.append(say(lang, "swiglu.part", name=name, row=values[last]))
    text = say(lang, "swiglu.text", token=last + past, parts="; ".join(told))
    return figure("swiglu", say(lang, "swiglu.title"), text, data, layout(250, **axes))
