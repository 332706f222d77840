"""Pooling against a slow loop."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.draw.pooling import centres, pool, pool_states, tile


def slowly(values: np.ndarray, rows: int, columns: int) -> list[list[float]]:
    """Of each tile the number farthest from zero, cell by cell."""
    height, width = values.shape
    result = []
    for r in range(0, height, rows):
        result.append([])
        for c in range(0, width, columns):
            cells = [values[i, j] for i in range(r, min(r + rows, height)) for j in range(c, min(c + columns, width))]
            result[-1].append(max(cells, key=abs))
    return result


@pytest.mark.parametrize(("shape", "steps"), [((7, 5), (2, 2)), ((6, 9), (1, 4)), ((3, 3), (5, 5)), ((4, 4), (1, 1))])
def test_pool_keeps_the_farthest_from_zero(shape: tuple[int, int], steps: tuple[int, int]) -> None:
    values = np.random.default_rng(0).normal(size=shape)
    assert pool(values, *steps) == pytest.approx(np.array(slowly(values, *steps)))


def test_pool_passes_over_what_is_not_finite() -> None:
    values = np.array([[np.nan, 1.0, -np.inf, -np.inf], [-3.0, np.inf, -np.inf, -np.inf]])
    assert pool(values, 2, 2).tolist() == [[-3.0, -np.inf]]


def test_pool_states() -> None:
    codes = np.array([[1, 1, 2, 2, 4], [1, 2, 1, 0, 4]])
    assert pool_states(codes, 2, 2).tolist() == [[1, 0, 4]]
    assert pool_states(codes, 1, 1) is codes


def test_tiles_and_centres() -> None:
    assert [tile(64, 64), tile(65, 64), tile(768, 96), tile(1, 9)] == [1, 2, 8, 1]
    assert centres(5, 1, start=3).tolist() == [3, 4, 5, 6, 7]
    assert centres(5, 2).tolist() == [0.5, 2.5, 4]


def test_pool_of_whole_numbers_and_of_half_precision() -> None:
    whole = np.arange(12).reshape(3, 4) - 6
    assert pool(whole, 2, 3).tolist() == [[-6, -3], [4, 5]]
    half = np.random.default_rng(1).normal(size=(9, 7)).astype(np.float16)
    assert pool(half, 4, 3) == pytest.approx(np.array(slowly(half, 4, 3)))


def test_pool_keeps_infinities_only_where_nothing_else_is() -> None:
    values = np.array([[np.inf, -np.inf, 2.0, np.nan], [-0.0, np.inf, np.nan, -np.inf]])
    assert pool(values, 2, 1).tolist()[0][:3] == [0.0, -np.inf, 2.0]
    assert np.isnan(pool(values, 1, 4)[1:]).sum() == 0
    assert pool(values, 2, 4).tolist() == [[2.0]]
