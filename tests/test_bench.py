"""The benchmark's arithmetic; what it measures depends on the machine and is no part of the tests."""

from __future__ import annotations

import json

import pytest

from tests.bench.stats import as_json, compare, pair_ratios, quartiles, table

OURS, FLOOR = [10.0, 30.0, 20.0], [10.0, 10.0, 40.0]


def test_ratio_of_medians_and_median_of_ratios_differ() -> None:
    by_medians = compare("a", "x", OURS, FLOOR, bar=2, unit="ms")
    by_pairs = compare("b", "x", OURS, FLOOR, bar=2, unit="ms", by_pair=True)
    assert (by_medians.ours, by_medians.floor, by_medians.ratio) == (20, 10, 2)
    assert by_pairs.ratio == 1  # of 1, 3 and 0.5
    assert by_medians.n == 3


def test_one_slow_round_moves_no_median() -> None:
    assert compare("c", "x", [1.0, 1.0, 900.0], [1.0, 1.0, 1.0], bar=1.1, unit="s").ratio == 1


@pytest.mark.parametrize(("bar", "passed"), [(2.0, True), (1.999, False)])
def test_a_bar_is_met_when_reached(bar: float, passed: bool) -> None:
    assert compare("a", "x", OURS, FLOOR, bar=bar, unit="ms").passed is passed


def test_quartiles() -> None:
    assert quartiles([1, 2, 3, 4, 5]) == (2, 4)
    assert quartiles([7]) == (7, 7)


@pytest.mark.parametrize(("ours", "floor"), [([1.0], [1.0, 2.0]), ([], [])])
def test_rounds_come_in_pairs(ours: list[float], floor: list[float]) -> None:
    with pytest.raises(ValueError, match="rounds come in pairs"):
        pair_ratios(ours, floor)


def test_table_and_json_say_the_same() -> None:
    rows = [
        compare("a", "good", OURS, FLOOR, bar=2, unit="ms", notes={"cells": 8}),
        compare("c", "bad", [3.0], [1.0], bar=1.4, unit="s"),
    ]
    lines = table(rows).splitlines()
    assert "pass" in lines[1]
    assert lines[1].endswith("cells 8")
    assert "FAIL" in lines[2]
    back = json.loads(as_json(rows, {"cores": 2}))
    assert back["machine"] == {"cores": 2}
    assert [(row["name"], row["ratio"], row["passed"]) for row in back["rows"]] == [
        ("good", 2, True),
        ("bad", 3, False),
    ]
