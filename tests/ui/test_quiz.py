"""What the page is asked for its questions."""

from __future__ import annotations

from typing import Any

import pytest

from explorer.ui.page import answer
from explorer.ui.quiz import LARGEST_SEED

RUN = {"spec": {"weights": "random", "d_model": "8", "h": "2", "T": "3"}, "want": ["quiz"]}


def asked(stage: int = 5, **more: Any) -> dict[str, Any]:
    reply = answer({**RUN, "stage": stage, **more})
    assert reply["ok"], reply
    found: dict[str, Any] = reply["quiz"]
    return found


@pytest.mark.parametrize("stage", range(1, 9))
def test_every_stage_asks_about_itself(stage: int) -> None:
    found = asked(stage)
    assert found["stage"] == stage
    assert {q["stage"] for q in found["questions"]} == {stage}
    assert "stage" not in {q["kind"] for q in found["questions"]}
    assert all(0 <= q["answer"] < len(q["options"]) == 4 for q in found["questions"])


def test_the_seed_chooses_and_both_languages_ask_the_same() -> None:
    english, chinese = asked(quiz={"seed": 3}), asked(quiz={"seed": 3}, lang="zh")
    for a, b in zip(english["questions"], chinese["questions"], strict=True):
        assert (a["kind"], a["about"], a["index"], a["answer"]) == (b["kind"], b["about"], b["index"], b["answer"])
        assert a["text"] != b["text"]
    assert asked(quiz={"seed": 4}) != english


@pytest.mark.parametrize("given", [None, 3, {"seed": -1}, {"seed": LARGEST_SEED + 1}, {"seed": "x"}, {"seed": None}])
def test_a_seed_that_cannot_be_used_is_the_first_one(given: object) -> None:
    assert asked(quiz=given) == asked(quiz={"seed": 0})
