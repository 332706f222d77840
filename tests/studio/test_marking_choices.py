"""Right and wrong choices, orders and tellings, against calculations of the tests' own."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from explorer import RunSpec
from explorer.capture import record
from explorer.run import prepare, run
from explorer.stages import STAGES
from explorer.studio.mixing import KINDS
from explorer.studio.mixing import _mixed as mixed_operations
from tests.studio.judging import BY_NAME, LANGUAGES, judge

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


def test_places_are_counted_in_words() -> None:
    def said(operation: str, lang: str = "en") -> str:
        task = {"prove": mixed_operations(0).index(operation), "token": 1, "feature": 2}
        return " ".join(re.sub(r"<[^>]+>", "", one["said"]) for one in judge("mixing", task, lang=lang).more["proofs"])

    assert "12 of 48 numbers moved: token 1, features 0–11." in said("ffn")
    assert "3 of 48 numbers moved: tokens 1–3, feature 2." in said("blend")
    assert "1 of 16 numbers moved: query 1, key 0." in said("mask")
    assert "queries 0–3, key 1." in said("scores")
    assert "词元 1，特征 0–11。" in said("ffn", "zh") and "查询 0–3，键 1。" in said("scores", "zh")


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
    for lang, word in (("en", "The course does not count"), ("zh", "课程都不算混合")):
        lead = BY_NAME["mixing"].ask(0, lang)["lead"]
        assert word in lead and "P" in lead, "no weight of P·V is learned"
        assert "that come of training" not in lead and "由训练得来" not in lead
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
