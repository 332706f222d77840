"""Right and wrong answers, against calculations of the tests' own: no exercise is marked from a table."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from explorer import RunSpec
from explorer.capture import record
from explorer.run import prepare, run
from explorer.stages import STAGES
from explorer.studio import EXERCISES, Marked, typed
from explorer.studio import shapes as shapes_module
from explorer.studio.mixing import KINDS, OPERATIONS
from explorer.studio.mixing import _mixed as mixed_operations
from explorer.studio.offset import score
from explorer.ui.page import answer as page_answer
from explorer.ui.studio import LARGEST_SEED, studio

BY_NAME = {exercise.name: exercise for exercise in EXERCISES}
LANGUAGES = ("en", "zh")


def judge(name: str, answer: Any, seed: int = 0, lang: str = "en") -> Marked:
    return BY_NAME[name].judge(answer, seed, lang)


# ------------------------------------------------------------------------------------------------------- where


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("lang", LANGUAGES)
def test_rope_is_at_stage_three_on_queries_and_keys(seed: int, lang: str) -> None:
    options = BY_NAME["where"].ask(seed, lang)["options"]
    word = {"en": "nothing else", "zh": "只作用于"}[lang]
    (right,) = [n for n, option in enumerate(options) if word in option]
    told = set()
    for n in range(len(options)):
        found = judge("where", n, seed, lang)
        assert found.done and found.marks == (n == right,)
        assert (found.more["right"], found.more["stage"], found.more["once"]) == (right, 3, n)
        told.add(found.hints[0])
    assert len(told) == len(options) == 5, "every choice is answered in its own words"


# ------------------------------------------------------------------------------------------------------- order


def firing_order() -> list[int]:
    """Stages in the order in which the running block first reports a result of each."""
    ready, trace, seen = prepare(RunSpec()), run(RunSpec()), []
    handles = []
    for path, module in ready.block.named_modules():
        if ".taps." in f".{path}":
            name = path.rsplit(".", 1)[-1]
            stage = next((s.number for s in STAGES if name in s.panels(trace)["output"]), 0)
            if stage:
                handle = module.register_forward_hook(lambda *_, stage=stage: seen.append(stage))
                handles.append(handle)
    record(ready.block, ready.hidden_states, ready.position_embeddings)
    for handle in handles:
        handle.remove()
    return list(dict.fromkeys(seen))


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_the_right_order_is_that_in_which_the_block_runs(seed: int) -> None:
    titles = {stage.number: stage.title for stage in STAGES}
    items = BY_NAME["order"].ask(seed, "en")["items"]
    right = [items.index(titles[number]) for number in firing_order()]
    assert judge("order", right, seed).done
    swapped = [right[1], right[0], *right[2:]]
    found = judge("order", swapped, seed)
    assert found.marks == (False, False, *[True] * 6) and not found.done and "6 of 8" in found.verdict
    assert not any(found.hints), "nothing else is given away"


def test_lists_are_well_mixed_and_the_same_in_both_languages() -> None:
    places = [judge("order", list(range(8)), seed).marks for seed in range(40)]
    assert all(sum(map(bool, marks)) <= 1 for marks in places)
    for seed in range(5):
        assert judge("order", [3, 1, 2, 0, 4, 5, 6, 7], seed, "zh").marks == judge(
            "order", [3, 1, 2, 0, 4, 5, 6, 7], seed
        ).marks  # fmt: skip


@pytest.mark.parametrize(
    "answer", [None, [], [0] * 8, list(range(7)), [*range(7), 8], [True, *range(1, 8)], "01234567"]
)
def test_what_is_no_order_is_said_so(answer: Any) -> None:
    found = judge("order", answer)
    assert set(found.marks) == {None} and "did not arrive" in found.verdict


# ------------------------------------------------------------------------------------------------------- shapes


def reckoned(spec: RunSpec) -> list[tuple[int, ...]]:
    """The shapes from the sizes alone."""
    b, t, d, h, kv = spec.B, spec.T, spec.d_model, spec.h, spec.h_kv or spec.h
    return [(b, h, t, d // h), (b, kv, t, d // h), (b, h, t, t), (t, t), (b, t, d), (b, t, d)]


def written(shape: tuple[int, ...], how: str = "{}×") -> str:
    return "×".join(map(str, shape)) if how == "{}×" else how.join(map(str, shape))


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


# ------------------------------------------------------------------------------------------------------- mixing

EXPECTED = {"projections": "features", "ffn": "features", "blend": "tokens"}


@pytest.mark.parametrize("seed", [0, 3])
def test_two_places_for_features_and_one_for_tokens(seed: int) -> None:
    names = mixed_operations(seed)
    right = [KINDS.index(EXPECTED.get(name, "neither")) for name in names]
    assert judge("mixing", {"kinds": right}, seed).done
    for lang in LANGUAGES:
        for n in range(len(names)):
            for other in range(3):
                found = judge("mixing", {"kinds": [other if i == n else None for i in range(8)]}, seed, lang)
                assert found.marks[n] is (other == right[n]) and found.hints[n]


@pytest.mark.parametrize(("token", "feature"), [(1, 2), (3, 11), (0, 0)])
def test_experiments_show_what_moved(token: int, feature: int) -> None:
    def cells(operation: str, which: int = 0) -> np.ndarray:
        place = mixed_operations(0).index(operation)
        found = judge("mixing", {"prove": place, "token": token, "feature": feature})
        assert not found.done and found.more["about"] == place
        return np.array(found.more["proofs"][which]["cells"])

    for operation in ("projections", "ffn", "rms"):
        moved = cells(operation)
        assert moved[token].sum() == moved.sum() >= 10, operation  # a feature that is 0 stays so under a factor
    blend = cells("blend")
    assert [list(row) for row in blend] == [[int(j == feature and i >= token) for j in range(12)] for i in range(4)]
    assert cells("residual").sum() == 1 == cells("residual")[token, feature]
    pair = np.flatnonzero(cells("rope")[token])
    assert set(pair) <= {feature, feature + 2, feature - 2}, "a pair lies half a head of four features apart"
    assert cells("mask").sum() == 1


# ------------------------------------------------------------------------------------------------------- aloud


def test_inputs_and_outputs_come_after_the_telling() -> None:
    told = judge("aloud", {"seconds": 100})
    assert not told.done and len(told.more["lines"]) == 8 and told.more["warning"]
    assert "lines" not in BY_NAME["aloud"].ask(0, "en").get("more", {}) and "in" not in BY_NAME["aloud"].ask(0, "en")
    assert "X" in told.more["lines"][0]["in"] and "next" in told.more["lines"][7]["out"]
    some = judge("aloud", {"seconds": 130, "named": [True] * 7})
    assert some.done and some.marks == (*[True] * 7, False) and "more than the 120" in some.verdict
    assert STAGES[7].title in some.verdict
    assert judge("aloud", {"seconds": 3, "named": [True] * 8}).marks == (True,) * 8


def test_two_seconds_and_nothing_told_are_no_telling() -> None:
    for named in ([False] * 8, [], [True] * 7 + [False]):
        short = judge("aloud", {"seconds": 2, "named": named})
        assert not short.done and short.verdict.startswith("2 seconds are too short for eight stages.")
        assert len(short.more["lines"]) == 8, "the self-check stays"
        assert judge("aloud", {"seconds": 20, "named": named}).done
    assert "2 秒讲不完八步" in judge("aloud", {"seconds": 2, "named": []}, lang="zh").verdict


def test_what_mixing_means_is_said_where_it_is_asked_and_where_it_misleads() -> None:
    for lang, word in (("en", "in the course"), ("zh", "课程都不算混合")):
        assert word in BY_NAME["mixing"].ask(0, lang)["lead"]
    for stage in (STAGES[0], STAGES[2]):
        assert "the course does not count as mixing" in stage.mixes and "课程不把这算作混合" in stage.text("zh").mixes


# ------------------------------------------------------------------------------------------------------- code


def test_the_last_axes_and_the_decode_step() -> None:
    axes = [0, 2, 1, 2, 2, 4]  # T, D, d_h, D, D, V
    decode = ["1", "5", "1x3x1x5", "1x3x5x4"]
    assert judge("reading_code", {"axes": axes, "decode": decode}).done
    task = BY_NAME["reading_code"].ask(0, "en")
    assert "#" not in task["code"] and "[B" not in task["code"] and "lm_head(hidden_states)" in task["code"]
    for place in range(6):
        for letter in range(5):
            chosen = [letter if n == place else None for n in range(6)]
            found = judge("reading_code", {"axes": chosen})
            assert found.marks[place] is (letter == axes[place])
            assert bool(found.hints[place]) is (letter != axes[place])
    wrong = judge("reading_code", {"decode": ["5", "4", "1x3x5x5", "1x3x4x4"]})
    assert wrong.marks[6:] == (False,) * 4
    parts = ("Only they ask", "at itself", "asked for earlier", "sees itself")
    assert all(part in hint for part, hint in zip(parts, wrong.hints[6:], strict=True))


# ----------------------------------------------------------------------------------------------- reading, garbage


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


KEYS = ["choice", "numbers", "kinds", "prove", "token", "feature", "seconds", "named", "axes", "decode", "x"]
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=70)
    | st.sampled_from(["2x3x5x4", "1/2", "√2", "1" * 61, "x" * 3000, "٣×٣", "[", "1/0", 10**400, -0.0]),
    lambda part: st.lists(part, max_size=10)
    | st.dictionaries(
        st.sampled_from(KEYS),
        part, max_size=5,
    ),
    max_leaves=20,
)  # fmt: skip


@settings(max_examples=150, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(sorted(BY_NAME)), JUNK, st.sampled_from(LANGUAGES))
def test_nothing_that_arrives_raises(name: str, junk: Any, lang: str) -> None:
    found = judge(name, junk, 0, lang)
    assert len(found.marks) == len(found.hints)
    assert found.verdict or found.more


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.dictionaries(st.sampled_from(["exercise", "seed", "answer"]), JUNK) | JUNK)
def test_the_page_answers_every_request_with_a_sentence(given_: Any) -> None:
    reply = page_answer({"want": ["studio"], "studio": given_})
    assert reply["ok"] or all(reply["errors"].values())
    assert "internal" not in str(reply.get("errors", "")).lower()


def test_the_page_s_part() -> None:
    task = studio({"exercise": "order", "seed": 4}, "en")
    assert task["seed"] == 4 and [one["name"] for one in task["exercises"]] == list(BY_NAME)
    assert studio({"exercise": "order", "seed": LARGEST_SEED + 1}, "en")["seed"] == 0
    assert studio(None, "en")["exercise"] == "where"
    wrong = page_answer({"want": ["studio"], "studio": {"exercise": "cooking"}, "lang": "zh"})
    assert not wrong["ok"] and "没有练习" in wrong["errors"]["studio"]
    marked = page_answer({"want": ["studio"], "studio": {"exercise": "shapes", "answer": ["2x3x5x4"]}})["studio"]
    assert marked["marks"] == (True, None, None, None, None, None) and marked["done"] is False


@pytest.mark.parametrize("lang", LANGUAGES)
def test_tasks_hold_no_answers(lang: str) -> None:
    for exercise in EXERCISES:
        task = json.dumps(exercise.ask(0, lang))
        assert not {"right", "marks", "more"} & json.loads(task).keys(), exercise.name
    asked = json.dumps(BY_NAME["shapes"].ask(0, lang))
    assert not any(
        written(shape, how) in asked for shape in reckoned(shapes_module.case(0))[:1] for how in ("×", "x", ", ")
    )
    assert len(OPERATIONS) == 8
