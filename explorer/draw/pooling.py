"""Large matrices made small enough to draw.

Purpose: cut a matrix into tiles and keep one number of each.
Must not know: what the matrix is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from explorer.draw.numbers import Array


def tile(n: int, most: int) -> int:
    """How many neighbours one drawn cell stands for, so that at most `most` cells are drawn."""
    return -(-n // most)


def centres(n: int, size: int, start: int = 0) -> Array:
    """The coordinate at the middle of each tile: whole numbers while a tile is one cell."""
    first = np.arange(0, n, size)
    return start + (first + np.minimum(first + size, n) - 1) / 2


def pool(values: Array, rows: int, columns: int) -> Array:
    """[R, C] -> [⌈R/rows⌉, ⌈C/columns⌉]: of each tile the finite number that is farthest from zero, sign kept.

    A tile without a finite number gives its first entry.
    """
    if rows == columns == 1:
        return values
    highest, lowest = _tiles((np.fmax, np.fmin), values, rows, columns, _only_finite)
    with np.errstate(invalid="ignore"):
        farthest = np.where(highest >= -lowest, highest, lowest)
    return np.where(np.isnan(highest), values[::rows, ::columns], farthest)


def pool_states(codes: Array, rows: int, columns: int) -> Array:
    """[R, C] state codes -> [⌈R/rows⌉, ⌈C/columns⌉]: 0 where a tile holds a plain number, else its smallest code."""
    return codes if rows == columns == 1 else _tiles((np.minimum,), codes, rows, columns)[0]


def _only_finite(strip: Array) -> Array:
    """The strip with NaN, which fmax and fmin pass over, for everything that is not finite."""
    with np.errstate(invalid="ignore"):
        return np.asarray(strip * 0 + strip)


def _tiles(
    choices: Sequence[np.ufunc],
    values: Array,
    rows: int,
    columns: int,
    ready: Callable[[Array], Array] = lambda strip: strip,
) -> list[Array]:
    """Each of `choices` over each tile, the last tiles being smaller where the sizes do not divide.

    Strips of rows first: each is small enough to stay in the processor's cache and is reduced along its rows.
    """
    if rows == 1:
        whole = ready(values)
        strips = [whole] * len(choices)
    else:
        starts = range(0, len(values), rows)
        strips = [np.empty((len(starts), values.shape[1]), values.dtype) for _ in choices]
        for n, top in enumerate(starts):
            strip = ready(values[top : top + rows])
            for choose, result in zip(choices, strips, strict=True):
                choose.reduce(strip, axis=0, out=result[n])
    edges = np.arange(0, values.shape[1], columns)
    return [np.asarray(choose.reduceat(s, edges, axis=1)) for choose, s in zip(choices, strips, strict=True)]
