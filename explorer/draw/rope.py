"""RoPE as geometry: each feature pair of each token as an arrow before and after its turn.

Purpose: the figure "rope": a grid of circles, one a (tensor, pair, token), with both arrows, the arc and the angle.
Must not know: torch, Trace, how the tables are made.

Source: Su et al. 2021 §3.4; pair i is (feature i, feature i + d_h/2), as MiniMind's rotate-half has it. A turn keeps
an arrow's length, so both tips lie on one circle around the middle, and the turn runs counter-clockwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from explorer.draw.figure import LINE, Trace, figure, layout, legend
from explorer.draw.numbers import Array, degrees, number, plain, row
from explorer.draw.positions import NUMBERED, SLANT, Positions
from explorer.draw.scales import PALETTE, Figure, paint
from explorer.draw.words import join, say

MOST_CIRCLES = 12  # a tensor; with queries and keys that makes 24
PITCH = 2.6  # from one middle to the next, in radii of the largest circle
LONG = 0.5  # of the longest arrow: from here on tips have their full size
ARC = 0.42  # radius of the arc that shows the angle
ROUND = np.linspace(0, 2 * np.pi, 49)


@dataclass(frozen=True)
class Turn:
    """One head of queries or keys around RoPE.

    name, role: its symbol and colour role, for example "Q", "q"
    before, after: [T, Dh]
    edited: whether an edit may have set `after`; only then the arrows are checked against RoPE's angle
    """

    name: str
    role: str
    before: Array
    after: Array
    edited: bool = True


@dataclass(frozen=True)
class Circle:
    """One feature pair of one token: where it is drawn, its two arrows, and the angle between them.

    angle:  radians, whole turns included: RoPE's own, or the measured one where an edit made the arrows show another
    agrees: whether it is RoPE's own
    """

    turn: Turn
    pair: int
    token: int
    middle: tuple[float, float]
    before: Array
    after: Array
    angle: float
    agrees: bool

    @property
    def length(self) -> float:
        """The longer of the two arrows."""
        lengths = [float(np.hypot(*end)) for end in (self.before, self.after)]
        return max((x for x in lengths if np.isfinite(x)), default=0.0)


def rope_figure(
    turns: Sequence[Turn], angles: Array, tokens: Positions = NUMBERED, pair: int | None = None, lang: str = "en"
) -> Figure:
    """The grid of circles: a row for each tensor and pair, a column for each token.

    turns:  queries and keys
    angles: [T, Dh/2] radians that RoPE turns each pair of each token, whole turns included
    tokens: how tokens are called
    pair:   one pair only; None shows the fastest and a slower one
    """
    drawn, pairs = shown_cells(angles.shape[0], angles.shape[1], pair)
    rows = [(turn, p) for turn in turns for p in pairs]
    circles = [
        _circle(turn, p, t, (PITCH * column, -PITCH * line), angles)
        for line, (turn, p) in enumerate(rows)
        for column, t in enumerate(drawn)
    ]
    longest = max(c.length for c in circles) or 1.0
    data: list[Trace] = [_rings(circles, longest)]
    for turn in turns:
        own = [c for c in circles if c.turn is turn]
        data += [_arrows(own, tokens, longest, lang, after) for after in (False, True)]
    data += [_arcs(circles), _labels(circles, lang)]
    text = join(lang, "sentences", [_in_words(c, tokens, lang) for c in circles])
    return figure("rope", say(lang, "rope.title"), text, data, _layout(rows, drawn, tokens, lang))


def shown_cells(tokens: int, pairs: int, pair: int | None) -> tuple[list[int], list[int]]:
    """(tokens, pairs) to draw, at most MOST_CIRCLES together; the first and last token are always among them.

    Without a chosen pair: pair 0, which turns fastest, and the last one; in a wide head the pair a quarter of the way
    down instead, since the last ones hardly move within any text that fits here.
    """
    slower = pairs - 1 if pairs < 8 else pairs // 4
    chosen = sorted({0, slower} if pair is None else {min(max(pair, 0), pairs - 1)})
    some = np.linspace(0, tokens - 1, min(tokens, MOST_CIRCLES // len(chosen))).round().astype(int)
    return sorted({int(t) for t in some}), chosen


def measured_turn(before: Array, after: Array) -> float:
    """Radians in [0, 2π) from one arrow to the other, counter-clockwise; NaN when an arrow has no direction."""
    if not np.all(np.isfinite([*before, *after])) or not np.any(before) or not np.any(after):
        return float("nan")
    angle = np.arctan2(after[1], after[0]) - np.arctan2(before[1], before[0])
    return float(angle % (2 * np.pi))


def _circle(turn: Turn, pair: int, token: int, middle: tuple[float, float], angles: Array) -> Circle:
    at = [pair, pair + turn.before.shape[1] // 2]
    before, after = (x[token, at].astype(np.float64) for x in (turn.before, turn.after))
    table, measured = float(angles[token, pair]), measured_turn(before, after)
    away = abs((measured - table + np.pi) % (2 * np.pi) - np.pi)
    agrees = bool(not turn.edited or np.isnan(measured) or away < 2e-3)
    return Circle(turn, pair, token, middle, before, after, table if agrees else measured, agrees)


def _path(circles: Sequence[Circle], radii: Sequence[float], sweeps: Sequence[Array]) -> dict[str, Any]:
    """x and y of one curve around each middle, with a gap after each."""
    x = [[*(c.middle[0] + r * np.cos(sweep)), np.nan] for c, r, sweep in zip(circles, radii, sweeps, strict=True)]
    y = [[*(c.middle[1] + r * np.sin(sweep)), np.nan] for c, r, sweep in zip(circles, radii, sweeps, strict=True)]
    both = {"x": plain(np.concatenate(x)), "y": plain(np.concatenate(y))}
    return {"type": "scatter", "mode": "lines", **both, "hoverinfo": "skip", "showlegend": False}


def _rings(circles: Sequence[Circle], longest: float) -> Trace:
    """Every arrow's own circle: the tip's path."""
    radii = [float(np.hypot(*c.before)) / longest for c in circles]
    return {**_path(circles, radii, [ROUND] * len(circles)), "line": {"color": LINE, "width": 1}}


def _arcs(circles: Sequence[Circle]) -> Trace:
    """From the arrow before to the arrow after, whole turns left out; 25 points each."""
    sweeps = []
    for c in circles:
        start = np.arctan2(c.before[1], c.before[0]) if np.any(c.before) else np.nan
        sweeps.append(start + np.linspace(0, 1, 25) * np.fmod(c.angle, 2 * np.pi))
    line = {"color": PALETTE["light"]["muted"], "width": 2}
    return {**_path(circles, [ARC] * len(circles), sweeps), "line": line, "meta": paint(line_color="muted")}


def _tip(length: float, most: float) -> float:
    """Pixels of an arrow's tip; a short arrow's is smaller, so that its line shows. length: of the longest arrow's."""
    return round(most * float(np.clip(length / LONG, 0.35, 1)), 1) if np.isfinite(length) else most


def _arrows(circles: Sequence[Circle], tokens: Positions, longest: float, lang: str, after: bool) -> Trace:
    """One trace of arrows, three points each: the middle, the tip, a gap."""
    turn = circles[0].turn
    x, y = np.full(3 * len(circles), np.nan), np.full(3 * len(circles), np.nan)
    custom: list[list[Any]] = []
    tips: list[float] = []
    for i, c in enumerate(circles):
        end = c.after if after else c.before
        tips += [0, _tip(float(np.hypot(*end)) / longest, 13 if after else 10), 0]
        x[3 * i : 3 * i + 2] = c.middle[0], c.middle[0] + end[0] / longest
        y[3 * i : 3 * i + 2] = c.middle[1], c.middle[1] + end[1] / longest
        features = [c.pair, c.pair + turn.before.shape[1] // 2]
        at = tokens.labels([c.token + tokens.past])[0]
        custom += [[at, *features, row(end), number(np.hypot(*end)), degrees(c.angle)]] * 3
    colour, key = PALETTE["light"][turn.role], "after" if after else "before"
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": say(lang, f"rope.{key}", name=turn.name),
        "x": plain(x),
        "y": plain(y),
        "line": {"color": colour, "width": 2.4 if after else 1.6, "dash": "solid" if after else "dot"},
        "marker": {
            "color": colour,
            "symbol": "arrow",
            "angleref": "previous",
            "size": tips,
            "opacity": 1,
        },
        "customdata": custom,
        "hovertemplate": say(lang, f"rope.hover.{key}", name=turn.name),
        "meta": paint(line_color=turn.role, marker_color=turn.role),
    }


def _labels(circles: Sequence[Circle], lang: str) -> Trace:
    """The angle under each circle."""
    keys = ["rope.angle" if c.agrees else "rope.angle.edited" for c in circles]
    return {
        "type": "scatter",
        "mode": "text",
        "x": plain(np.array([c.middle[0] for c in circles])),
        "y": plain(np.array([c.middle[1] - 1.2 for c in circles])),
        "text": [say(lang, k, degrees=degrees(c.angle)) for k, c in zip(keys, circles, strict=True)],
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _in_words(c: Circle, tokens: Positions, lang: str) -> str:
    key = "rope.text" if c.agrees else "rope.text.edited"
    where = {"name": c.turn.name, "pair": c.pair, "position": tokens.spoken(c.token + tokens.past)}
    return say(lang, key, **where, before=c.before, after=c.after, degrees=degrees(c.angle))


def _column(position: int, tokens: Positions, lang: str) -> str:
    """What stands above a column: the token where its text is known, else its position."""
    return tokens.label(position) if tokens.text(position) else say(lang, "position", position=position)


def _layout(rows: Sequence[tuple[Turn, int]], drawn: Sequence[int], tokens: Positions, lang: str) -> dict[str, Any]:
    width, height = PITCH * (len(drawn) - 1), PITCH * (len(rows) - 1)
    bare = {"showgrid": False, "zeroline": False, "ticks": "", "fixedrange": True, "constrain": "domain"}
    x: dict[str, Any] = {
        **bare,
        "range": [-1.3, width + 1.3],
        "tickvals": [PITCH * i for i in range(len(drawn))],
        "ticktext": [_column(t + tokens.past, tokens, lang) for t in drawn],
        "side": "top",
    }
    y: dict[str, Any] = {
        **bare,
        "range": [-height - 1.5, 1.15],
        "tickvals": [-PITCH * i for i in range(len(rows))],
        "ticktext": [say(lang, "rope.row", name=turn.name, pair=p) for turn, p in rows],
        "scaleanchor": "x",
    }
    pixels = min(170, 760 / len(drawn))
    slanted = tokens.below if len(drawn) > 6 else 0
    margin = {"l": 64, "r": 12, "t": 30 + slanted, "b": 44}
    if slanted:
        x["tickangle"] = -SLANT
    shape = layout(round(90 + slanted + pixels * len(rows)), xaxis=x, yaxis=y, **legend(-0.02, "top", "paper"))
    shape["legend"].pop("itemsizing")  # an arrow enlarged to the constant size hides its line
    labels = " ".join([*x["ticktext"], *y["ticktext"]])  # so that a change of labels alone shows as one of the layout
    return shape | {"margin": margin, "meta": {"labels": labels}}
