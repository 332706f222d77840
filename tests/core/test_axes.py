"""The glossary of axis letters."""

from __future__ import annotations

import re

import pytest

from explorer import PRESETS
from explorer.axes import AXES, actual_shape, symbolic_shape
from explorer.quantities import QUANTITIES, WEIGHTS
from tests.core.cases import CASES


def test_every_letter_in_use_is_explained() -> None:
    used = {letter for thing in (*QUANTITIES.values(), *WEIGHTS.values()) for letter in thing.axes}
    assert used == set(AXES)
    for letter, axis in AXES.items():
        assert axis.letter == letter and axis.symbol and axis.meaning


def test_symbols_are_those_of_the_course() -> None:
    assert symbolic_shape(("B", "T", "D")) == "B×T×d_model"
    assert symbolic_shape(("B", "H", "Tq", "Tk")) == "B×h×T_q×T_k"
    assert symbolic_shape(("B", "Hkv", "P", "Dh")) == "B×h_kv×P×d_h"
    assert symbolic_shape(()) == ""
    assert len({axis.symbol for axis in AXES.values()}) == len(AXES)


def test_lengths() -> None:
    sizes = PRESETS["capstone"].sizes
    assert actual_shape(("B", "H", "T", "Dh"), sizes) == (2, 3, 5, 4)
    with pytest.raises(KeyError):
        actual_shape(("Z",), sizes)


@pytest.mark.parametrize("case", CASES)
def test_what_a_length_is_made_of_adds_up(case: str) -> None:
    sizes = CASES[case].sizes
    assert set(sizes) == set(AXES)
    for axis in AXES.values():
        if axis.counts:
            letters = {name: sizes[name] for name in re.findall(r"\w+", axis.counts)}
            parts = list(letters.values())
            expected = sum(parts) if "+" in axis.counts else parts[0] * parts[1] if "·" in axis.counts else parts[0]
            assert sizes[axis.letter] == expected, axis
