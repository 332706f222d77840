"""A quantity or weight of a run -> what the page draws: number grids while small, pooled heatmaps beyond.

Purpose: values, marks and changes of the cells that are shown, and nothing of the others.
Must not know: gradio, JSON.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from explorer.capture import Trace
from explorer.draw.pooling import pool, tile
from explorer.quantities import QUANTITIES, SCORE_TAPS, weight_of
from explorer.spec import Edit
from explorer.stages.terms import title_in
from explorer.ui.symbols import shape_html, symbol_html, symbol_text

Array = NDArray[Any]
Panel = dict[str, Any]

GRID_ROWS, GRID_COLS = 16, 16  # a slice larger than that is a heatmap
GRID_CELLS = 200  # of all slices of a panel together; beyond it one slice is shown
HEAT_MOST = 64  # rows or columns of a heatmap; beyond it cells are pooled
WIDER = 4.0  # colours follow an edit up to this many times the unedited range; beyond it a cell is marked as clipped
MASKED, PADDED, EDITED, CHANGED = 1, 2, 4, 8  # bits of a cell's state; the page knows the same
SLOT = {"B": "b", "H": "h", "Hkv": "h", "T": "t", "k": "k"}


@dataclass(frozen=True)
class Shown:
    """One run as it is looked at.

    trace, base: the run, and the same without edits and switches (the same object when there are none)
    edits:       those in force
    compare:     "value", "change" or "both"
    slots:       which batch row, head and token is shown where not all are
    """

    trace: Trace
    base: Trace
    edits: tuple[Edit, ...]
    compare: str
    slots: Mapping[str, int]

    @property
    def edited(self) -> bool:
        return self.base is not self.trace


def panel(shown: Shown, name: str, group: str, texts: Mapping[str, Any]) -> Panel:
    """The panel of one quantity or weight; see the page protocol in assets/js/panel.js."""
    about = QUANTITIES[name] if name in QUANTITIES else weight_of(name)
    scale, words = getattr(about, "scale", "signed"), title_in(shown.trace, name, texts["lang"])
    shape = tuple(shown.trace.sizes[letter] for letter in about.axes)
    rows, cols = _matrix_size(shape)
    grid = rows <= GRID_ROWS and cols <= GRID_COLS
    prefixes = list(_prefixes(about.axes, shape, shown, grid))
    # Of scores that nothing kept, the matrix that is shown is computed, and no other.
    alone = prefixes[0] if name in shown.trace.recomputed and not grid else None
    values, base = _array(shown.trace, name, alone), _array(shown.base, name, alone)
    flags = _flags(shown, name, values, base, alone)
    delta = _delta(values, base) if shown.compare != "value" and shown.edited else None
    if shown.compare == "change":
        scale, limit = "signed", _largest(delta) if delta is not None else 0.0
    else:
        limit = 1.0 if scale == "unit" else _largest(values) if scale == "index" else _limit(values, base)
    drawn = delta if shown.compare == "change" and delta is not None else values
    slices: list[Panel] = [
        {
            "label": _label(about.axes, prefix, prefixes, texts, shown.trace.sizes["P"]),
            "prefix": prefix,
            "rows": rows,
            "cols": cols,
        }
        | (_grid(values, flags, delta, prefix) if grid else _heat(drawn, flags, (0, 0) if alone else prefix))
        for prefix in prefixes
    ]
    pooled = not grid and slices[0]["pooled"] != (1, 1)
    return {
        "q": name, "symbol": symbol_html(about.latex), "plain": symbol_text(about.latex), "title": words,
        "caption": words, "role": about.role, "axes": about.axes, "letters": shape_html(about.axes),
        "shape": shape, "kind": "grid" if grid else "heat", "scale": scale, "range": limit or 1.0,
        "first": _first(about.axes, shown.trace), "editable": True,
        "weight": name not in QUANTITIES, "group": group, "slices": slices,
        "note": texts["pooled"].format(rows=slices[0]["pooled"][0], cols=slices[0]["pooled"][1]) if pooled else "",
    }  # fmt: skip


def hidden_slots(shown: Shown, names: list[str]) -> dict[str, int]:
    """Slot letter -> how many there are, for each of which only one is shown."""
    counts: dict[str, int] = {}
    for name in names:
        about = QUANTITIES[name] if name in QUANTITIES else weight_of(name)
        shape = tuple(shown.trace.sizes[letter] for letter in about.axes)
        rows, cols = _matrix_size(shape)
        grid = rows <= GRID_ROWS and cols <= GRID_COLS
        for letter, n in zip(about.axes[:-2], shape, strict=False):
            slot = SLOT[letter]
            if n > 1 and slot in ("b", "h", "t") and not _shows_all(about.axes, shape, letter, grid):
                counts[slot] = shown.trace.sizes[{"b": "B", "h": "H", "t": "T"}[slot]]
    return counts


def _first(axes: tuple[str, ...], trace: Trace) -> int:
    """The number of the first row: tokens and queries are called by their positions, cached tokens counted."""
    return trace.sizes["P"] if len(axes) > 1 and axes[-2] in ("T", "Tq") else 0


def _array(trace: Trace, name: str, alone: tuple[int, ...] | None) -> Array:
    """The whole quantity or weight, or [1, 1, Tq, Tk] of scores: the batch row and head that stand `alone`."""
    if alone:
        return trace.rows(name, *alone)[None, None]
    return trace[name] if name in trace else trace.weights[name]


def _matrix_size(shape: tuple[int, ...]) -> tuple[int, int]:
    return (1, shape[0]) if len(shape) == 1 else (shape[-2], shape[-1])


def _shows_all(axes: tuple[str, ...], shape: tuple[int, ...], letter: str, grid: bool) -> bool:
    """Whether every position of a leading axis is shown: one batch row at a time, all heads while they are small."""
    if letter == "B" or not grid:
        return False
    own = [n for a, n in zip(axes, shape, strict=True) if a != "B"]
    return int(np.prod(own)) <= GRID_CELLS


def _prefixes(axes: tuple[str, ...], shape: tuple[int, ...], shown: Shown, grid: bool) -> Iterator[tuple[int, ...]]:
    """The leading indices of the matrices that are shown."""
    choices = []
    for letter, n in zip(axes[:-2], shape, strict=False):
        if n == 1 or _shows_all(axes, shape, letter, grid):
            choices.append(range(n))
        else:
            at = shown.slots.get(SLOT[letter], 0)
            if letter == "Hkv":
                at = at * n // shown.trace.sizes["H"]
            choices.append(range(at, at + 1))
    yield from product(*choices)


def _label(
    axes: tuple[str, ...],
    prefix: tuple[int, ...],
    all_shown: list[tuple[int, ...]],
    texts: Mapping[str, Any],
    past: int,
) -> str:
    """Which slice this is among those that are shown, tokens by position; of only one, the page's pickers say it."""
    parts = [
        f"{texts.get(f'slice_word_{letter}', letter)} {i + past * (letter == 'T')}"
        for n, (letter, i) in enumerate(zip(axes, prefix, strict=False))
        if len({shown[n] for shown in all_shown}) > 1
    ]
    return " · ".join(parts)


def _flags(shown: Shown, name: str, values: Array, base: Array, alone: tuple[int, ...] | None) -> NDArray[np.uint8]:
    """State bits of every cell of `values`."""
    flags = np.zeros(values.shape, np.uint8)
    if name in SCORE_TAPS and name != "scores":
        masked = shown.trace.masked[alone[0] : alone[0] + 1] if alone else shown.trace.masked
        hidden = np.broadcast_to(masked, values.shape) & (values == (-np.inf if name != "probs" else 0))
        queries, keys = values.shape[-2:]
        future = np.arange(keys)[None] > np.arange(queries)[:, None] + (keys - queries)
        flags |= np.where(hidden, np.where(future, MASKED, PADDED), 0).astype(np.uint8)
    if shown.edited:
        flags[_differs(values, base)] |= CHANGED
        for edit in shown.edits:
            if edit.target == name:
                flags[tuple(slice(None) if i is None else i for i in edit.index)] |= EDITED
    return flags


def _differs(values: Array, base: Array) -> NDArray[np.bool_]:
    unequal: NDArray[np.bool_] = (values != base) & ~(np.isnan(values) & np.isnan(base))
    return unequal


def _delta(values: Array, base: Array) -> Array:
    with np.errstate(invalid="ignore"):
        difference: Array = np.where(_differs(values, base), values - base, 0).astype(np.float32)
    return difference


def _largest(values: Array) -> float:
    size = np.abs(values[np.isfinite(values)])
    return float(size.max()) if size.size else 0.0


def _limit(values: Array, base: Array) -> float:
    """The value with the fullest colour: the largest shown, but never more than WIDER times the unedited largest."""
    largest, before = _largest(values), _largest(base)
    return min(largest, WIDER * before) if before else largest


def _grid(values: Array, flags: NDArray[np.uint8], delta: Array | None, prefix: tuple[int, ...]) -> Panel:
    cells = np.ascontiguousarray(values[prefix]).ravel()
    part: Panel = {"values": cells, "state": (flags[prefix].ravel() + 48).tobytes().decode("ascii")}
    if delta is not None:
        part["delta"] = np.ascontiguousarray(delta[prefix]).ravel()
    if not np.isfinite(cells).all():
        odd = np.flatnonzero(~np.isfinite(cells))
        part["special"] = {str(n): "nan" if np.isnan(cells[n]) else "inf" if cells[n] > 0 else "-inf" for n in odd}
    return part


def _heat(values: Array, flags: NDArray[np.uint8], prefix: tuple[int, ...]) -> Panel:
    whole, marks = np.atleast_2d(values[prefix]), np.atleast_2d(flags[prefix])
    steps = tile(whole.shape[0], HEAT_MOST), tile(whole.shape[1], HEAT_MOST)
    small = np.ascontiguousarray(pool(whole, *steps), np.float32)
    state = _tile_marks(marks, *steps).ravel()
    return {
        "values_b64": base64.b64encode(small.tobytes()).decode("ascii"), "rows": small.shape[0], "cols": small.shape[1],
        "state": (state + 48).tobytes().decode("ascii"), "pooled": steps, "whole": whole.shape,
    }  # fmt: skip


def _tile_marks(marks: NDArray[np.uint8], down: int, right: int) -> NDArray[np.uint8]:
    """The marks of each drawn pixel: those of its first cell, and an edit or change anywhere in it."""
    first = np.ascontiguousarray(marks[::down, ::right])
    moved = marks & (EDITED | CHANGED)
    if down == right == 1 or not moved.any():
        return first
    rows = np.bitwise_or.reduceat(moved, np.arange(0, marks.shape[0], down), axis=0)
    return first | np.bitwise_or.reduceat(rows, np.arange(0, marks.shape[1], right), axis=1)
