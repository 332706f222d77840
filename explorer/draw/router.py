"""Who went where: the router's probabilities, the chosen experts, and how many tokens each expert got.

Purpose: the figure "router" of a mixture-of-experts feed-forward.
Must not know: torch, Trace, how the router is trained.
"""

from __future__ import annotations

import numpy as np

from explorer.draw.figure import Trace, figure, heading, layout, place, room, stems, value_axis, whole_axis
from explorer.draw.heatmap import Pane, Style, place_panes
from explorer.draw.numbers import Array, number, plain
from explorer.draw.positions import NUMBERED, Positions
from explorer.draw.scales import PALETTE, Figure, nice_limit, paint
from explorer.draw.words import join, say

MOST_IN_WORDS = 8


def expert_load(index: Array, experts: int) -> Array:
    """How many (token, slot) pairs each expert got, [E]; index [T, k]."""
    return np.bincount(np.asarray(index).astype(int).ravel(), minlength=experts)


def router_figure(probs: Array, index: Array, weight: Array, tokens: Positions = NUMBERED, lang: str = "en") -> Figure:
    """probs: [T, E]; index, weight: [T, k] chosen experts and their shares."""
    count, experts = probs.shape
    titles = say(lang, "axis.token"), say(lang, "axis.expert")
    style = Style("unit", titles, "router", (1024, 64), names=(tokens, None))
    pane = Pane(say(lang, "router.probs"), probs, starts=(tokens.past, 0))
    data, axes = place_panes([pane], style, lang, [((0.0, 0.52), (0.0, 1.0))])
    data[0]["colorbar"] |= {"x": 0.52}
    data.append(_chosen(index, weight, tokens.past, lang))
    load = expert_load(index, experts)
    name = say(lang, "router.load")
    data.append(stems(name, np.arange(experts), load, "ffn", say(lang, "router.load.hover"), pane=1, showlegend=False))
    x, y = whole_axis(experts, 0, say(lang, "axis.expert")), value_axis(0, 1.06 * nice_limit(load), name)
    place(axes, 1, x, y, ((0.72, 1.0), (0.0, 1.0)))
    axes["annotations"].append(heading(1, name))
    shape = layout(min(520, 130 + 24 * max(5, count)), **axes)
    shape["margin"] = room(shape["margin"], tokens, left=True)
    text = _in_words(probs, index, weight, load, tokens, lang)
    return figure("router", say(lang, "router.title"), text, data, shape)


def _chosen(index: Array, weight: Array, past: int, lang: str) -> Trace:
    """A mark at the left of every chosen (token, expert)."""
    tokens, k = index.shape
    colour = PALETTE["light"]["ffn"]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": say(lang, "router.chosen"),
        "x": plain(index.reshape(-1) - 0.4),
        "y": np.repeat(np.arange(tokens) + past, k).tolist(),
        "customdata": [[int(e), w] for e, w in zip(index.reshape(-1), plain(weight.reshape(-1)), strict=True)],
        "marker": {"symbol": "triangle-right", "size": 13, "color": colour, "opacity": 1},
        "hovertemplate": say(lang, "router.chosen.hover"),
        "meta": paint(marker_color="ffn"),
    }


def _in_words(probs: Array, index: Array, weight: Array, load: Array, tokens: Positions, lang: str) -> str:
    some = np.unique(np.linspace(0, len(index) - 1, min(len(index), MOST_IN_WORDS)).round().astype(int))
    rows = []
    for t in some:
        picks = [
            say(lang, "router.pick", expert=int(e), prob=number(probs[t, int(e)]), share=number(w))
            for e, w in zip(index[t], weight[t], strict=True)
        ]
        rows.append(
            say(lang, "router.row", token=tokens.spoken(int(t) + tokens.past), picks=join(lang, "items", picks))
        )
    loads = join(lang, "items", [say(lang, "router.got", expert=e, count=int(n)) for e, n in enumerate(load)])
    return say(lang, "router.text", rows=join(lang, "rows", rows), loads=loads)
