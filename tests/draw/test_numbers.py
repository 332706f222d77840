"""Numbers in sentences and arrays in JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest

from explorer.draw.numbers import WRITER, degrees, number, plain, row, spoken


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2**0.5, "1.414"),
        (-0.5, "−0.5"),
        (1.0, "1"),
        (-0.0, "0"),
        (-1e-300 * 0, "0"),
        (1e-6, "1e−6"),
        (-2.5e30, "−2.5e30"),
        (float("-inf"), "−∞"),
        (float("inf"), "∞"),
        (float("nan"), "NaN"),
        (np.float32(0.1), "0.1"),
    ],
)
def test_number(value: float, text: str) -> None:
    assert number(value) == text


def test_number_with_a_format() -> None:
    assert number(0.48149, ".2f") == "0.48"
    assert number(-0.001, ".1f") == "0.0"


def test_row_is_cut_when_long() -> None:
    assert row([1, -1]) == "(1, −1)"
    assert row(range(6)) == "(0, 1, 2, 3, 4, 5)"
    assert row(range(7)) == "(0, 1, 2, 3, 4, …)"


def test_writer_fills_every_kind() -> None:
    values = {"i": 3, "x": 1.23456, "v": np.array([1, -np.inf]), "s": "a", "y": 2.0}
    assert WRITER.write("{i} {x} {x:.2f} {v} {s} {y:.1f}", values) == "3 1.235 1.23 (1, −∞) a 2.0"


def test_writer_refuses_what_does_not_fit() -> None:
    with pytest.raises(KeyError, match="b"):
        WRITER.write("{a} {b}", {"a": 1})
    with pytest.raises(ValueError, match="no placeholder uses: b"):
        WRITER.write("{a}", {"a": 1, "b": 2})


def test_plain_keeps_float32_and_makes_json() -> None:
    values = np.array([[0.1, -np.inf], [np.nan, 1 / 3]], dtype=np.float32)
    lists = plain(values)
    assert lists[0] == [0.1, None]
    assert lists[1][0] is None
    assert np.float32(lists[1][1]) == values[1, 1]
    json.dumps(lists, allow_nan=False)


def test_plain_rounds_when_asked() -> None:
    assert plain(np.array([1.23456, -0.000123456, 0, np.nan]), digits=4) == [1.235, -0.0001235, 0, None]


def test_spoken() -> None:
    assert spoken("O<sub>attn</sub> and X") == "O_attn and X"


@pytest.mark.parametrize(
    ("turn", "said"), [(np.pi / 2, "90"), (400.0, "22918"), (-2.0, "−114.6"), (1e-3, "0.0573"), (1e16, "5.73e17")]
)
def test_degrees_are_written_in_full(turn: float, said: str) -> None:
    assert degrees(turn) == said
