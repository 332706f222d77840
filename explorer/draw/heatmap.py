"""Heatmaps side by side, in which masked and non-finite cells are cells of their own kind.

Purpose: panes of cells with one scale, hover texts, a legend of states, and number texts while cells are few.
Must not know: which quantity is shown.

Each pane is two traces: plain numbers, and above them the state codes of all other cells (explorer.draw.scales).
Rows run from the top down, as in a printed matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from explorer.draw.figure import Trace, heading, place, spread, suffix, whole_axis
from explorer.draw.numbers import Array, plain
from explorer.draw.pooling import centres, pool, pool_states, tile
from explorer.draw.scales import GLYPHS, PALETTE, STATES, paint, scale_range, states
from explorer.draw.words import say

FEW = 8  # up to so many rows and columns, cells carry their numbers,
FEW_ACROSS = 20  # as long as so many stand side by side in all panes


@dataclass(frozen=True)
class Pane:
    """One matrix.

    title:  its heading, also shown on hover
    values: [R, C]
    codes:  state codes [R, C] (scales.states); None marks only what is not finite
    starts: the number of the first row and column
    """

    title: str
    values: Array
    codes: Array | None = None
    starts: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Style:
    """How a group of panes looks.

    scale:  "signed", "unit" or "magnitude"
    axes:   (row title, column title)
    hover:  key of the hover text in the words; it may use %{y}, %{x} and %{z}
    most:   the most rows and columns drawn; beyond it cells are pooled
    square: keep cells square
    glyphs: what is written into a cell of each state
    """

    scale: str
    axes: tuple[str, str]
    hover: str
    most: tuple[int, int] = (64, 96)
    square: bool = False
    glyphs: tuple[str, ...] = GLYPHS


def heatmap_traces(
    pane: Pane, style: Style, at: int, limits: tuple[float, float], lang: str, bar: bool, across: int
) -> list[Trace]:
    """The two traces of one pane on axes number `at`. `bar` adds the colour bar.

    across: how many panes stand side by side.
    """
    rows, columns = pane.values.shape
    steps = tile(rows, style.most[0]), tile(columns, style.most[1])
    codes = states(pane.values) if pane.codes is None else pane.codes
    z, code = pool(np.where(codes == 0, pane.values, np.nan), *steps), pool_states(codes, *steps)
    shared = {
        "type": "heatmap",
        "x": centres(columns, steps[1], pane.starts[1]).tolist(),
        "y": centres(rows, steps[0], pane.starts[0]).tolist(),
        "xaxis": f"x{suffix(at)}",
        "yaxis": f"y{suffix(at)}",
        "hoverongaps": False,
        "xgap": 1 if max(z.shape) <= 16 else 0,
        "ygap": 1 if max(z.shape) <= 16 else 0,
    }
    few = max(rows, columns) <= FEW and columns * across <= FEW_ACROSS
    hover = (
        say(lang, style.hover) if steps == (1, 1) else say(lang, f"{style.hover}.pooled", size=f"{steps[0]}×{steps[1]}")
    )
    numbers: Trace = {
        **shared,
        "name": pane.title,
        "z": plain(z, digits=None if steps == (1, 1) else 4),
        "zmin": limits[0],
        "zmax": limits[1],
        "colorscale": PALETTE["light"][style.scale],
        "showscale": bar,
        "hovertemplate": f"{hover}<extra>{pane.title}</extra>",
        "meta": paint(colorscale=style.scale),
    }
    if bar:
        numbers["colorbar"] = {"thickness": 10, "outlinewidth": 0, "nticks": 5, "xpad": 6}
    if few:
        numbers |= {"texttemplate": "%{z:.3~g}", "textfont": {"size": 11}}
    return [numbers, _marks(shared, code, few, style, pane.title, lang)]


def _marks(shared: Trace, code: Array, few: bool, style: Style, title: str, lang: str) -> Trace:
    """The trace of all cells that hold no plain number; few cells say on hover which state they are in."""
    marks: Trace = {
        **shared,
        "name": title,
        "z": plain(np.where(code == 0, np.nan, code)),
        "zmin": 0.5,
        "zmax": len(STATES) + 0.5,
        "colorscale": PALETTE["light"]["state"],
        "showscale": False,
        "hovertemplate": f"{say(lang, style.hover + ('.state' if few else '.states'))}<extra>{title}</extra>",
        "meta": paint(colorscale="state"),
    }
    if few:
        names = np.array([None, *(say(lang, f"state.{s}") for s in STATES)], dtype=object)
        marks |= {
            "texttemplate": "%{text}",
            "textfont": {"size": 11},
            "text": np.array(style.glyphs, dtype=object)[code].tolist(),
        }
        marks["customdata"] = names[code].tolist()
    elif not code.any():  # nothing to mark: one empty cell instead of a whole grid of them
        marks |= {"x": [0], "y": [0], "z": [[None]]}
    return marks


def pane_grid(panes: Sequence[Pane], style: Style, lang: str, across: int = 4) -> tuple[list[Trace], dict[str, Any]]:
    """Traces and axes of panes in reading order, at most `across` in a row, filling the whole figure."""
    columns = min(across, len(panes))
    rows = -(-len(panes) // columns)
    boxes_x, boxes_y = spread(columns, 0.07 if columns < 4 else 0.05), spread(rows, 0.12)[::-1]
    boxes = [(boxes_x[i % columns], boxes_y[i // columns]) for i in range(len(panes))]
    return place_panes(panes, style, lang, boxes)


def place_panes(
    panes: Sequence[Pane], style: Style, lang: str, boxes: Sequence[Sequence[Sequence[float]]], first: int = 0
) -> tuple[list[Trace], dict[str, Any]]:
    """Traces and axes of panes, pane i in boxes[i] = (x domain, y domain), axes numbered from `first`.

    All panes share one range, from their plain numbers.
    """
    limits = scale_range(style.scale, *(p.values for p in panes))
    data: list[Trace] = []
    axes: dict[str, Any] = {"annotations": []}
    across = len({tuple(box[0]) for box in boxes})
    for i, pane in enumerate(panes):
        at = first + i
        data += heatmap_traces(pane, style, at, limits, lang, bar=i == 0, across=across)
        rows, columns = pane.values.shape
        lowest = min(box[1][0] for box in boxes if box[0] == boxes[i][0])
        x = whole_axis(columns, pane.starts[1], style.axes[1] if boxes[i][1][0] == lowest else "", most=8)
        y = whole_axis(
            rows, pane.starts[0], style.axes[0] if boxes[i][0][0] == boxes[0][0][0] else "", most=8, down=True
        )
        if style.square:
            x["constrain"] = y["constrain"] = "domain"
            x["constraintoward"] = "left"
            y |= {"scaleanchor": f"x{suffix(at)}", "constraintoward": "top"}
        place(axes, at, x, y, boxes[i])
        axes["annotations"].append(heading(at, pane.title))
    return data, axes


def state_legend(codes: Sequence[Array] | Array, lang: str) -> list[Trace]:
    """One legend entry a state, shown when some cell is in it; the number of traces never changes."""
    present = {int(c) for code in codes for c in np.unique(code)}
    entries: list[Trace] = []
    for i, state in enumerate(STATES, start=1):
        colour = PALETTE["light"][state]
        entries.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": [None],
                "y": [None],
                "name": say(lang, f"state.{state}"),
                "marker": {"symbol": "square", "size": 11, "color": colour},
                "showlegend": i in present,
                "hoverinfo": "skip",
                "meta": paint(marker_color=state),
            }
        )
    return entries
