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
    tiles = _tiles(np.asarray(values, dtype=np.float64), rows, columns)
    reach = np.where(np.isfinite(tiles), np.abs(tiles), -1.0)
    return np.take_along_axis(tiles, reach.argmax(-1, keepdims=True), -1)[..., 0]


def pool_states(codes: Array, rows: int, columns: int) -> Array:
    """[R, C] state codes -> [⌈R/rows⌉, ⌈C/columns⌉]: 0 where a tile holds a plain number, else its commonest code."""
    if rows == columns == 1:
        return codes
    tiles = _tiles(codes.astype(np.float64), rows, columns)
    counts = np.stack([(tiles == code).sum(-1) for code in range(6)], -1)
    return np.where(counts[..., 0] > 0, 0, counts[..., 1:].argmax(-1) + 1).astype(np.int8)


def _tiles(values: Array, rows: int, columns: int) -> Array:
    """[R, C] -> [R', C', rows·columns], the last tiles filled up with NaN."""
    r, c = values.shape
    full = np.full((-(-r // rows) * rows, -(-c // columns) * columns), np.nan)
    full[:r, :c] = values
    cut = full.reshape(full.shape[0] // rows, rows, full.shape[1] // columns, columns)
    return cut.transpose(0, 2, 1, 3).reshape(cut.shape[0], cut.shape[2], rows * columns)
