"""Large matrices made small enough to draw.

Purpose: cut a matrix into tiles and keep one number of each.
Must not know: what the matrix is.
"""

from __future__ import annotations

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
    finite = np.isfinite(values)
    highest = _tiles(np.maximum, np.where(finite, values, -np.inf), rows, columns)
    lowest = _tiles(np.minimum, np.where(finite, values, np.inf), rows, columns)
    farthest = np.where(highest >= -lowest, highest, lowest)
    return np.where(np.isneginf(highest), values[::rows, ::columns], farthest)


def pool_states(codes: Array, rows: int, columns: int) -> Array:
    """[R, C] state codes -> [⌈R/rows⌉, ⌈C/columns⌉]: 0 where a tile holds a plain number, else its smallest code."""
    return codes if rows == columns == 1 else _tiles(np.minimum, codes, rows, columns)


def _tiles(choose: np.ufunc, values: Array, rows: int, columns: int) -> Array:
    """`choose` over each tile, the last ones being smaller where the sizes do not divide."""
    r, c = values.shape
    strips = choose.reduceat(values, np.arange(0, c, columns), axis=1)
    return np.asarray(choose.reduceat(strips, np.arange(0, r, rows), axis=0))
