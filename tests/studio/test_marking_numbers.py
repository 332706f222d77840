"""Right and wrong shapes and numbers, against calculations of the tests' own: none is marked from a table."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from explorer import RunSpec
from explorer.run import run
from explorer.studio import shapes as shapes_module
from explorer.studio import typed
from explorer.studio.offset import score
from tests.studio.judging import BY_NAME, LANGUAGES, judge, reckoned, written

# ------------------------------------------------------------------------------------------------------- shapes


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 50, 999, 12345])
def test_shapes_are_marked_by_the_run(seed: int) -> None:
    right = reckoned(shapes_module.case(seed))
    assert judge("shapes", [written(shape) for shape in right], seed).done
    for n in range(len(right)):
        wrong = [written(shape) for shape in right]
        wrong[n] = written((*right[n][:-1], right[n][-1] + 1))
        marks = judge("shapes", wrong, seed).marks
        assert [m for i, m in enumerate(marks) if i != n] == [True] * 5 and marks[n] is False


def test_the_first_case_is_the_course_s_and_others_come_with_groups() -> None:
    assert reckoned(shapes_module.case(0))[0] == (2, 3, 5, 4)
    specs = [shapes_module.case(seed) for seed in range(1, 60)]
    assert len(set(specs)) > 30
    assert any(spec.kv_heads < spec.h for spec in specs) and any(spec.kv_heads == spec.h for spec in specs)
    assert judge("shapes", [written(s) for s in reckoned(shapes_module.case(0))]).more["preset"] == "capstone"


@pytest.mark.parametrize("text", ["2x3x5x4", "2×3×5×4", "2 * 3 * 5 * 4", "(2, 3, 5, 4)", "[2,3,5,4]", " 2 3 5 4 ",
                                  "2X3X5X4", "２×３×５×４", "2、3、5、4", "torch.Size([2, 3, 5, 4])",
                                  "2·3·5·4", "2x3x5 x4"])  # fmt: skip
def test_shapes_may_be_written_in_many_ways(text: str) -> None:
    assert judge("shapes", [text]).marks[0] is True


# What is typed for Q, K, scores, one head's scores, concat, block output of B=2 T=5 d_model=12 h=3 -> part of its hint.
MISTAKES = [
    (0, "2x5x12", "before the split"), (0, "2x5x4", "heads is missing"), (0, "2x5x3x4", "changed places"),
    (0, "2x3x4x5", "last two axes"), (0, "3x5x4", "batch axis"), (0, "2x3x5x12", "whole width"),
    (0, "2x4x3x5", "another order"), (0, "2x3", "2 axes; 4"), (0, "2x3x5x7", "Only axis 4"),
    (0, "9x9x5x4", "2 axes are"),
    (0, "seven", "cannot be read"), (0, "2x3x5x4x", "cannot be read"), (0, "-2x3x5x4", "cannot be read"),
    (2, "2x3x5x4", "features were summed"), (2, "2x5x5", "heads is missing"), (2, "3x5x5", "batch axis"),
    (3, "2x3x5x5", "every head"), (3, "3x5x5", "every head"), (3, "2x5x5", "an axis in front"), (3, "5x4", "hands on"),
    (4, "2x3x5x4", "side by side"), (4, "2x5x4", "a single head"), (4, "5x12", "batch axis"), (5, "2x12x5", "last two"),
    (5, "2x5x24", "hidden width"),
]  # fmt: skip


@pytest.mark.parametrize(("place", "text", "part"), MISTAKES)
def test_a_mistake_that_can_be_seen_is_named_and_the_answer_is_not(place: int, text: str, part: str) -> None:
    answer = [""] * 6
    answer[place] = text
    found = judge("shapes", answer)
    assert found.marks == tuple(False if n == place else None for n in range(6))
    assert part in found.hints[place]
    right = reckoned(shapes_module.case(0))[place]
    assert written(right) not in found.hints[place] and str(list(right)) not in found.hints[place]
    assert judge("shapes", answer, lang="zh").hints[place] != found.hints[place]


def test_grouped_heads_are_told_apart() -> None:
    seed = next(n for n in range(1, 99) if shapes_module.case(n).kv_heads < shapes_module.case(n).h)
    q, k, *_ = reckoned(shapes_module.case(seed))
    swapped = judge("shapes", [written(k), written(q)], seed)
    assert "only keys and values" in swapped.hints[0] and "fewer heads" in swapped.hints[1]


# ------------------------------------------------------------------------------------------------------- the toy


P, V, X = np.array([[1, 0], [0.5, 0.5]]), np.array([[1, 1], [1, -1]]), np.array([[1, 1], [1, -1]])
BY_HAND = [*(P @ V).ravel(), *(X + P @ V).ravel()]


def test_the_toy_by_hand() -> None:
    assert judge("toy_by_hand", [f"{x:g}" for x in BY_HAND]).done
    assert judge("toy_by_hand", [f"{x:g}".replace("-", "−") for x in BY_HAND]).done
    assert judge("toy_by_hand", ["2/2", "1,0", "√1", "0", "4/2", "2", "sqrt(4)", "-1.0"]).done
    task = BY_NAME["toy_by_hand"].ask(0, "en")
    assert [matrix["rows"] for matrix in task["given"]] == [
        [["1", "0"], ["0.5", "0.5"]], [["1", "1"], ["1", "−1"]], [["1", "1"], ["1", "−1"]],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("place", "text", "part"),
    [(2, "2", "without their weights"), (1, "0", "comes after it"), (3, "-1", "own value"), (0, "-1", "the sign"),
     (4, "1", "O alone"), (6, "1", "O alone"), (4, "0", "not a difference"), (7, "1", "not a difference"),
     (5, "9", "Take row 0"),
     (0, "x", "cannot be read"), (3, "5", "row 1 of P and column 1")],
)  # fmt: skip
def test_mistakes_in_the_toy(place: int, text: str, part: str) -> None:
    answer = [""] * 8
    answer[place] = text
    found = judge("toy_by_hand", answer)
    assert found.marks[place] is False and part in found.hints[place]


# ------------------------------------------------------------------------------------------------------- offset


def turned(x: np.ndarray, position: int, theta: float) -> np.ndarray:
    """RoPE of one head by complex numbers: pair i is features i and i + half."""
    half = x.size // 2
    angle = position * theta ** (-2 * np.arange(half) / x.size)
    z = (x[:half] + 1j * x[half:]) * np.exp(1j * angle)
    return np.concatenate([z.real, z.imag])


@pytest.mark.parametrize(("m", "n"), [(0, 0), (3, 1), (1, 3), (250, 17), (500, 499)])
def test_scores_at_any_two_positions(m: int, n: int) -> None:
    spec = RunSpec(T=2, d_model=12, h=3, weights="random")
    trace = run(spec)
    q, k = (trace[name].astype(np.float64) for name in ("q_norm", "k_norm"))
    by_hand = turned(q[0, 0, 1], m, spec.rope_theta) @ turned(k[0, 0, 0], n, spec.rope_theta) / math.sqrt(4)
    assert abs(score(m, n) - by_hand) < 1e-4
    assert abs(score(m + 123, n + 123) - score(m, n)) < 1e-4


@pytest.mark.parametrize("lang", LANGUAGES)
def test_only_the_offset_is_the_reason(lang: str) -> None:
    done = []
    for choice in range(4):
        found = judge("offset", {"choice": choice, "numbers": ["3", "1", "10"]}, 2, lang)
        assert found.hints[0]
        done.append(found.done)
        if found.done:
            plain, both, one = (row["score"] for row in found.more["scores"])
            assert abs(plain - both) < 1e-4 < 1e-2 < abs(plain - one)
            assert [row["offset"] for row in found.more["scores"]] == [-2, -2, 8]
    assert sorted(done) == [False, False, False, True]


def test_the_reason_alone_is_not_enough_and_positions_are_bounded() -> None:
    right = next(n for n in range(4) if judge("offset", {"choice": n}).marks == (True,))
    assert not judge("offset", {"choice": right}).done
    for numbers in (
        ["-1", "0", "1"],
        ["0", "501", "1"],
        ["1", "1", "0"],
        ["a", "b", "c"],
        ["1.5", "1", "1"],
        [None],
        7,
    ):
        found = judge("offset", {"choice": right, "numbers": numbers})
        assert not found.done and any(found.hints[1:]), numbers
    whole = judge("offset", {"choice": right, "numbers": ["3", "1", "44"]})  # 44 radians are nearly seven turns
    assert whole.done


# ----------------------------------------------------------------------------------------------------------- reading


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("−1", -1), ("-1", -1), ("+2", 2), ("0,5", 0.5), (".5", 0.5), ("1/2", 0.5), ("½", 0.5),
     ("√2", 2**0.5),
     ("-√2/2", -(2**0.5) / 2), ("1/√2", 2**-0.5), ("2√2", 8**0.5), ("2*√2", 8**0.5), ("sqrt(2)", 2**0.5),
     ("根号2", 2**0.5), ("１／２", 0.5), (" 3 ", 3), (3, 3), (2.5, 2.5), ("", None), ("/", None), ("1/0", None),
     ("1/", None), ("√", None),
     ("1e5", None), ("inf", None), ("nan", None), ("1,2,3", None), (True, None), (None, None), ([], None),
     (10**400, None), (math.inf, None), (math.nan, None), ("9" * 50, None), ("9" * 500, None), ("٣", None)],
)  # fmt: skip
def test_numbers_as_people_write_them(text: Any, value: float | None) -> None:
    found = typed.number(text)
    assert found is None if value is None else found == pytest.approx(value)
