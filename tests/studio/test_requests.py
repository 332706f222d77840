"""Whatever is sent to the studio is answered in words, and no task gives its answer away."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from explorer.studio import EXERCISES
from explorer.studio import shapes as shapes_module
from explorer.studio.mixing import OPERATIONS
from explorer.ui.page import answer as page_answer
from explorer.ui.studio import LARGEST_SEED, studio
from tests.studio.judging import BY_NAME, LANGUAGES, judge, reckoned, written

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
