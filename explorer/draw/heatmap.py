"""Heatmaps side by side, in which masked and non-finite cells are cells of their own kind.

Purpose: panes of cells with one scale, hover texts, a legend of states, and number texts while cells are few.
Must not know: which quantity is shown.

Each pane is two heatmaps: plain numbers, and above them the state codes of all other cells (explorer.draw.scales).
Where cells are few, two traces of text follow. Rows run from the top down, as in a printed matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from explorer.draw.figure import Trace, heading, place, spread, suffix, whole_axis
from explorer.draw.numbers import Array, number, plain
from explorer.draw.pooling import centres, pool, pool_states, tile
from explorer.draw.positions import Positions
from explorer.draw.scales import GLYPHS, PALETTE, STATES, STRONG, STRONG_STATES, paint, scale_range, states
from explorer.draw.words import say

FEW = 8  # up to so many rows and columns, cells carry their numbers,
FEW_ACROSS = 20  # as long as so many stand side by side in all panes
ROOMY = 12  # and from more on shorter ones
READ = 16  # up to so many rows and columns, the page's own matrices show numbers; figures take the same pale colours


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
    names:  how rows and columns are called, where they are tokens
    """

    scale: str
    axes: tuple[str, str]
    hover: str
    most: tuple[int, int] = (64, 96)
    square: bool = False
    glyphs: tuple[str, ...] = GLYPHS
    names: tuple[Positions | None, Positions | None] = (None, None)


@dataclass(frozen=True)
class _Cells:
    """What of a pane is drawn: z and codes after pooling, the tile size, and where the cells stand."""

    z: Array
    codes: Array
    steps: tuple[int, int]
    place: dict[str, Any]
    few: bool
    crowded: bool
    pale: bool


def _cells(pane: Pane, style: Style, at: int, across: int) -> _Cells:
    """The cells of a pane on axes number `at`, one of `across` panes side by side."""
    rows, columns = pane.values.shape
    steps = tile(rows, style.most[0]), tile(columns, style.most[1])
    codes = states(pane.values) if pane.codes is None else pane.codes
    z, codes = pool(pane.values, *steps), pool_states(codes, *steps)
    z = np.where(codes == 0, z, np.nan)
    place = {
        "x": centres(columns, steps[1], pane.starts[1]).tolist(),
        "y": centres(rows, steps[0], pane.starts[0]).tolist(),
        "xaxis": f"x{suffix(at)}",
        "yaxis": f"y{suffix(at)}",
        "name": pane.title,
    }
    beside, most = columns * across, max(rows, columns)
    return _Cells(z, codes, steps, place, most <= FEW and beside <= FEW_ACROSS, beside > ROOMY, most <= READ)


def _heatmap(cells: _Cells, scale: str, limits: tuple[float, float], hover: str) -> Trace:
    gap = 1 if max(cells.z.shape) <= 16 else 0
    return {
        "type": "heatmap",
        **cells.place,
        "zmin": limits[0],
        "zmax": limits[1],
        "colorscale": PALETTE["light"][scale],
        "showscale": False,
        "hoverongaps": False,
        "xgap": gap,
        "ygap": gap,
        "hovertemplate": f"{hover}<extra>{cells.place['name']}</extra>",
        "meta": paint(colorscale=scale),
    }


def _numbers(cells: _Cells, style: Style, colours: str, limits: tuple[float, float], lang: str) -> Trace:
    """The trace of all cells that hold a plain number."""
    single = cells.steps == (1, 1)
    size = f"{cells.steps[0]}×{cells.steps[1]}"
    hover = say(lang, style.hover) if single else say(lang, f"{style.hover}.pooled", size=size)
    return _heatmap(cells, colours, limits, hover) | {"z": plain(cells.z, digits=None if single else 4)}


def _marks(cells: _Cells, style: Style, lang: str) -> Trace:
    """The trace of all other cells; few cells say on hover which state they are in."""
    hover = say(lang, style.hover + (".state" if cells.few else ".states"))
    marks = _heatmap(cells, "state", (0.5, len(STATES) + 0.5), hover)
    marks["z"] = plain(np.where(cells.codes == 0, np.nan, cells.codes))
    if cells.few:
        names = np.array([None, *(say(lang, f"state.{s}") for s in STATES)], dtype=object)
        marks["customdata"] = names[cells.codes].tolist()
    elif not cells.codes.any():  # nothing to mark: one empty cell instead of a whole grid of them
        marks |= {"x": [0], "y": [0], "z": [[None]]}
    return marks


def _texts(cells: _Cells, style: Style, end: float) -> list[Trace]:
    """What is written on the cells, in two traces: dark and light text. end: where the scale has its fullest colour."""
    reach = np.abs(np.where(cells.codes == 0, cells.z, 0)) / end
    strong = np.where(cells.codes == 0, reach >= STRONG, np.isin(cells.codes, STRONG_STATES)).ravel()
    digits, size = (".2g", 10) if cells.crowded else (".3g", 11)
    pairs = zip(cells.z.ravel().tolist(), cells.codes.ravel().tolist(), strict=True)
    written = np.array([style.glyphs[code] if code else number(z, digits) for z, code in pairs], dtype=object)
    y, x = np.meshgrid(cells.place["y"], cells.place["x"], indexing="ij")
    shared = {**cells.place, "type": "scatter", "mode": "text", "hoverinfo": "skip", "showlegend": False}
    shared |= {"x": x.ravel().tolist(), "y": y.ravel().tolist()}
    return [
        {
            **shared,
            "text": np.where(strong == at_end, written, "").tolist(),
            "textfont": {"size": size, "color": PALETTE["light"][colour]},
            "meta": paint(textfont_color=colour),
        }
        for colour, at_end in (("on_weak", False), ("on_strong", True))
    ]


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

    All panes share one range, from their plain numbers. The heatmaps come first, two a pane, then all texts.
    """
    across = len({tuple(box[0]) for box in boxes})
    drawn = [_cells(pane, style, first + i, across) for i, pane in enumerate(panes)]
    limits = scale_range(style.scale, *(cells.z for cells in drawn))  # pooling keeps the largest
    pale = all(cells.pale for cells in drawn)
    colours = f"cell_{style.scale}" if pale else style.scale
    heats: list[Trace] = []
    texts: list[Trace] = []
    axes: dict[str, Any] = {"annotations": []}
    for i, (pane, cells) in enumerate(zip(panes, drawn, strict=True)):
        at, box = first + i, boxes[i]
        heats += [_numbers(cells, style, colours, limits, lang), _marks(cells, style, lang)]
        if cells.few:
            texts += _texts(cells, style, np.inf if pale else limits[1])
        lowest = min(other[1][0] for other in boxes if other[0] == box[0])
        y = _axis(pane, cells, style, 0, outer=box[0][0] == boxes[0][0][0])
        x = _axis(pane, cells, style, 1, outer=box[1][0] == lowest)
        if style.square:
            x |= {"constrain": "domain", "constraintoward": "left"}
            y |= {"constrain": "domain", "constraintoward": "top", "scaleanchor": f"x{suffix(at)}"}
        place(axes, at, x, y, box)
        axes["annotations"].append(heading(at, pane.title))
    bar = {"thickness": 10, "outlinewidth": 0, "nticks": 5, "xpad": 6}
    heats[0] |= {"showscale": True, "colorbar": bar}
    return [*heats, *texts], axes


def _axis(pane: Pane, cells: _Cells, style: Style, side: int, outer: bool) -> dict[str, Any]:
    """The axis of rows (side 0) or columns (1); only outer ones have a title, and tokens' texts as tick labels."""
    n, start, names = pane.values.shape[side], pane.starts[side], style.names[side]
    axis = whole_axis(n, start, style.axes[side] if outer else "", most=8, down=side == 0)
    if names is None or not names.texts:
        return axis
    drawn = (int(at) for at in cells.place["yx"[side]] if at == int(at))
    ticks = range(-(-start // axis["dtick"]) * axis["dtick"], start + n, axis["dtick"])
    return axis | names.axis(sorted({*drawn, *ticks}), across=side == 1) | {"showticklabels": outer}


def state_legend(codes: Sequence[Array], lang: str) -> list[Trace]:
    """One legend entry a state, shown when some cell is in it; the number of traces never changes."""
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
                "showlegend": any(bool((code == i).any()) for code in codes),
                "hoverinfo": "skip",
                "meta": paint(marker_color=state),
            }
        )
    return entries
