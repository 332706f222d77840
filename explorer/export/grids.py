"""Quantities and weights as HTML tables of numbers: whole while small, a corner of them beyond.

Purpose: every number shown carries its name and index (data-q, data-i), its full value on hover, and what became of it.
Must not know: stages, the rest of the page.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from explorer.axes import AXES
from explorer.capture import Trace
from explorer.draw.numbers import number
from explorer.draw.scales import nice_limit
from explorer.export.texts import TEXTS, Texts
from explorer.inspector import mathml, symbol
from explorer.quantities import QUANTITIES, Quantity, Weight, weight_of
from explorer.stages.terms import title_in

Array = NDArray[Any]
WHOLE = 260  # numbers of a tensor that are shown whole
CORNER = 8  # rows and columns of the corner that is shown of a larger one
HEADS = 4  # slices of one tensor at most


@dataclass(frozen=True)
class Place:
    """The batch row and query head that are shown, and the language in which."""

    row: int
    head: int
    lang: str


def tensor(done: Trace, base: Trace, name: str, place: Place) -> str:
    """One quantity or weight: its symbol, title, shape, and its numbers for the chosen batch row and head."""
    about = _about(name)
    lengths = done.shape(name) if name in done else done.weights[name].shape
    shape = " × ".join(f"{AXES[a].symbol}&thinsp;=&thinsp;{n}" for a, n in zip(about.axes, lengths, strict=True))
    prefixes = list(_prefixes(about.axes, lengths, place.row, place.head, done.sizes))
    limit = nice_limit(*(_part(done, name, prefix) for prefix in prefixes))
    slices = [_slice(done, base, name, prefix, lengths, limit, TEXTS[place.lang]) for prefix in prefixes]
    called = escape(title_in(done, name, place.lang))
    return (
        f'<div class="tensor role-{about.role}"><h4>{mathml(symbol(name))} <span>{called}</span></h4>'
        f'<p class="shape"><code>{escape(name)}</code> {shape}</p><div class="slices">{"".join(slices)}</div></div>'
    )


def _about(name: str) -> Quantity | Weight:
    return QUANTITIES[name] if name in QUANTITIES else weight_of(name)


def _part(trace: Trace, name: str, prefix: tuple[int, ...]) -> Array:
    """One matrix of a quantity or weight; scores that a run did not keep are computed for this one alone."""
    if name in trace.recomputed:
        return trace.rows(name, *prefix)
    return np.atleast_2d((trace[name] if name in trace else trace.weights[name])[prefix])


def _prefixes(
    axes: tuple[str, ...], shape: tuple[int, ...], row: int, head: int, sizes: dict[str, int]
) -> Iterator[tuple[int, ...]]:
    """The leading indices of the matrices that are shown: of the chosen batch row all while small, else the head's."""
    chosen = {"B": row, "H": head, "Hkv": head * sizes["Hkv"] // sizes["H"]}
    own = [n for axis, n in zip(axes, shape, strict=True) if axis != "B"]
    whole = int(np.prod(own)) <= WHOLE and int(np.prod(own[:-2])) <= HEADS
    yield from product(
        *(
            range(n) if whole and axis != "B" else (min(chosen.get(axis, 0), n - 1),)
            for axis, n in zip(axes[:-2], shape[:-2], strict=True)
        )
    )


def _slice(
    done: Trace, base: Trace, name: str, prefix: tuple[int, ...], lengths: tuple[int, ...], limit: float, texts: Texts
) -> str:
    part, old = _part(done, name, prefix), _part(base, name, prefix)
    edited = _edited(done, name, prefix, lengths).reshape(part.shape)
    if part.size <= WHOLE:
        rows, cols = part.shape
    else:
        rows, cols = min(CORNER, part.shape[0]), min(CORNER, part.shape[1])
    lone = len(lengths) == 1  # a vector's row has no number
    lines = [f"<tr>{'' if lone else '<th></th>'}{''.join(f'<th>{c}</th>' for c in range(cols))}</tr>"]
    for r in range(rows):
        at = prefix if lone else (*prefix, r)
        cells = "".join(_cell(name, (*at, c), part[r, c], old[r, c], edited[r, c], limit, texts) for c in range(cols))
        lines.append(f"<tr>{'' if lone else f'<th>{r}</th>'}{cells}{'<td>…</td>' if cols < part.shape[1] else ''}</tr>")
    if rows < part.shape[0]:
        lines.append(f"<tr><th></th>{'<td>…</td>' * cols}</tr>")
    words = " · ".join(
        f"{AXES[a].symbol} {i}" for a, i, n in zip(_about(name).axes, prefix, lengths, strict=False) if n > 1
    )
    cut = texts.cut.format(rows=rows, cols=cols, all_rows=part.shape[0], all_cols=part.shape[1])
    caption = f"{words} {cut}" if part.size > WHOLE else words
    return f"<figure><figcaption>{caption}</figcaption><table>{''.join(lines)}</table></figure>"


def _cell(name: str, index: tuple[int, ...], value: Any, old: Any, edited: Any, limit: float, texts: Texts) -> str:
    same = value == old or (np.isnan(value) and np.isnan(old))
    marks = [word for word, on in (("edited", edited), ("changed", not same), ("hidden", np.isneginf(value))) if on]
    where = ",".join(map(str, index))
    said = f"{name}[{where}] = {float(value)!r}" + ("" if same else f", {texts.unedited} {float(old)!r}")
    classes = f' class="{" ".join(marks)}"' if marks else ""
    colour = _colour(_about(name), float(value), limit)
    return f'<td{classes} data-q="{name}" data-i="{where}" title="{said}"{colour}>{number(float(value))}</td>'


def _colour(about: Quantity | Weight, value: float, limit: float) -> str:
    """How far a cell's colour is from that of zero, for style.css: to one side, the other, or along probability's."""
    scale = getattr(about, "scale", "signed")
    if scale == "index" or not np.isfinite(value):
        return ""
    end, most = ("unit", 1.0) if scale == "unit" else ("plus" if value > 0 else "minus", limit)
    far = min(abs(value) / most, 1.0)
    return f' style="--{end}:{far:.0%}"' if far >= 0.005 else ""


def _edited(done: Trace, name: str, prefix: tuple[int, ...], lengths: tuple[int, ...]) -> Array:
    """bool, True where an edit in force sets the cell of this matrix."""
    mask = np.zeros(lengths[len(prefix) :], dtype=bool)
    for edit in done.spec.edits if done.spec else ():
        before, within = edit.index[: len(prefix)], edit.index[len(prefix) :]
        here = all(i is None or i == at for i, at in zip(before, prefix, strict=False))
        if edit.on and edit.target == name and here:
            mask[tuple(slice(None) if i is None else i for i in within)] = True
    return mask
