"""The chosen cell: read from a request, brought into view, and opened for the page.

Purpose: everything that the page's inspector shows of one cell, as plain data.
Must not know: how a cell is made (explorer.inspector does), how the page draws it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from explorer.capture import Trace
from explorer.draw.pooling import pool
from explorer.inspector import Inspection, inspect, symbol
from explorer.quantities import EXPERT_WEIGHT, QUANTITIES, SCORE_TAPS, WEIGHTS, UnknownName, weight_of
from explorer.spec import RunSpec
from explorer.stages import STAGES
from explorer.stages.terms import ENGLISH, title, title_in
from explorer.ui.symbols import symbol_html, symbol_text

if TYPE_CHECKING:
    from explorer.ui.request import Asked

Cell: TypeAlias = tuple[str, tuple[int, ...]]
Payload = dict[str, Any]
ROUNDING = {"float32": 2e-6, "float16": 2e-3, "bfloat16": 2e-2, "float64": 1e-12}  # of the largest number involved
SLOT = {"B": "b", "H": "h", "Hkv": "h", "T": "t"}  # which picker of the page an axis follows


def chosen(request: Mapping[str, Any], spec: RunSpec) -> Cell | None:
    """The cell that a request's "select" names, or None where there is none, or none at these sizes."""
    given = request.get("select")
    if not isinstance(given, Mapping) or not isinstance(given.get("i"), list):
        return None
    name, index = str(given.get("q")), given["i"]
    try:
        shape = spec.shape(name)
    except UnknownName:
        return None
    if len(index) != len(shape) or not all(type(i) is int and 0 <= i < n for i, n in zip(index, shape, strict=True)):
        return None
    return name, tuple(index)


def within_tile(span: Any, trace: Trace, cell: Cell) -> Cell:
    """The cell of a pooled heatmap's pixel whose number the pixel shows; `span` is the pixel's rows and columns."""
    if not (isinstance(span, list) and len(span) == 2 and all(type(n) is int and n > 0 for n in span)):
        return cell
    name, index = cell
    *prefix, row, column = index if len(index) > 1 else (0, *index)
    values = _matrix(trace, name, tuple(prefix))
    tile = values[row : row + span[0], column : column + span[1]]
    at = np.argwhere(tile == pool(tile, *tile.shape)[0, 0])
    down, right = at[0] if len(at) else (0, 0)
    found = (*prefix, row + int(down), column + int(right))
    return name, found if len(index) > 1 else found[-1:]


def settled(asked: Asked, request: Mapping[str, Any], trace: Trace) -> Asked:
    """What was asked, less a cell that this run lacks; with "show" in its "select", looking where the cell is."""
    cell = asked.view.cell
    if cell is None or not (cell[0] in trace or cell[0] in trace.weights):
        return replace(asked, view=replace(asked.view, cell=None)) if cell else asked
    given = request.get("select")
    given = given if isinstance(given, Mapping) else {}
    cell = within_tile(given.get("span"), trace, cell)
    stage, slots = asked.view.stage, asked.slots
    if given.get("show"):
        stage, slots = in_view(trace, cell, stage, slots)
    return replace(asked, view=replace(asked.view, cell=cell, stage=stage)).showing(slots)


def in_view(trace: Trace, cell: Cell, stage: int, slots: Mapping[str, int]) -> tuple[int, dict[str, int]]:
    """The stage and slots at which the cell is shown: those given where they show it already."""
    name, index = cell
    where = [s.number for s in STAGES if any(name in names for names in s.panels(trace).values())]
    if where and stage not in where:
        stage = _home(name) if _home(name) in where else where[0]
    moved = dict(slots)
    for letter, i in zip(_axes(name)[:-2], index, strict=False):
        if letter == "Hkv":
            group = trace.sizes["H"] // trace.sizes["Hkv"]
            moved["h"] = slots["h"] if slots["h"] // group == i else i * group
        elif letter in SLOT:
            moved[SLOT[letter]] = i
    if expert := EXPERT_WEIGHT.fullmatch(name):
        moved["e"] = int(expert[1])
    return stage, moved


def token_of(trace: Trace, cell: Cell | None) -> int | None:
    """The token of this call that the cell belongs to; None where it belongs to none, as a weight or a cached key."""
    if cell is None:
        return None
    at = dict(zip(_axes(cell[0]), cell[1], strict=False))
    found = at.get("T", at.get("Tq", at.get("Tk", -1) - trace.sizes["P"] if "Tk" in at else -1))
    return found if found >= 0 else None


def opened(trace: Trace, spec: RunSpec, cell: Cell | None, lang: str = ENGLISH) -> Payload | None:
    """The inspector's content. Numbers that JSON lacks are the texts "NaN", "Inf" and "-Inf"."""
    if cell is None:
        return None
    found = inspect(trace, *cell)
    plain: Payload = _plain(found.as_dict())
    quantity = found.name in QUANTITIES
    return plain | {
        "title": title_in(trace, found.name, lang),
        "gap": _plain(abs(found.exact - found.computed) if found.difference else 0.0),
        "rounding": _is_rounding(found, plain["tree"], trace.dtype(found.name)),
        "dtype": trace.dtype(found.name),
        "set_by": _set_by(found, spec) if found.edited else "",
        "masked": found.name in SCORE_TAPS and bool(trace.masked[found.index[0], 0, found.index[2], found.index[3]]),
        "given_as": ("quantity" if quantity else "weight") if found.given else "",
        "sizes": trace.sizes,
        "choices": [*trace.names, *trace.weights],
        "extra": {name: _about(name, lang) for name in {*_names(found.tree), *trace.weights} - WEIGHTS.keys()
                  if name not in QUANTITIES},
    }  # fmt: skip


def _matrix(trace: Trace, name: str, prefix: tuple[int, ...]) -> Any:
    """The last two axes at a prefix; a vector is one row."""
    if name in SCORE_TAPS:
        return trace.rows(name, prefix[0], prefix[1])
    values = trace[name] if name in trace else trace.weights[name]
    return np.atleast_2d(values[prefix] if prefix else values)


def _axes(name: str) -> tuple[str, ...]:
    return QUANTITIES[name].axes if name in QUANTITIES else weight_of(name).axes


def _home(name: str) -> int:
    return max(1, QUANTITIES[name].stage if name in QUANTITIES else weight_of(name).stage)


def _about(name: str, lang: str) -> Payload:
    """What the page's fixed declarations say of a quantity, for the weights of an expert."""
    about = weight_of(name)
    return {
        "symbol": symbol_html(symbol(name)), "plain": symbol_text(symbol(name)), "title": title(name, lang),
        "role": about.role, "stage": about.stage, "axes": about.axes,
    }  # fmt: skip


def _set_by(found: Inspection, spec: RunSpec) -> str:
    """Who set the cell: "hand" where an edit in force covers it, else "switch"."""
    for edit in spec.edits:
        covers = all(i is None or i == j for i, j in zip(edit.index, found.index, strict=False))
        if edit.on and edit.target == found.name and covers:
            return "hand"
    return "switch"


def _is_rounding(found: Inspection, tree: Payload, dtype: str) -> bool:
    """Whether the difference is what the precision explains, given the largest number on the way."""
    sizes = [abs(x) for x in _values(tree) if isinstance(x, (int, float))]
    gap = abs(found.exact - found.computed)
    return math.isfinite(gap) and gap <= ROUNDING.get(dtype, 1e-5) * max([*sizes, 1e-30])


def _parts(tree: Payload) -> Iterator[Payload]:
    """The nodes directly below a node of the tree."""
    of = tree.get("of", [])
    yield from of if isinstance(of, list) else [of]
    yield from (tree[key] for key in ("top", "bottom") if key in tree)


def _values(tree: Payload) -> Iterator[Any]:
    yield tree["x"]
    for part in _parts(tree):
        yield from _values(part)


def _names(tree: Payload) -> Iterator[str]:
    if "q" in tree:
        yield tree["q"]
    for part in _parts(tree):
        yield from _names(part)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else "NaN" if math.isnan(value) else "Inf" if value > 0 else "-Inf"
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
