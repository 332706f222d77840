"""Generated questions: four different answers of which the marked one is right by another calculation."""

from __future__ import annotations

import math
import re
from functools import cache
from html import unescape

import numpy as np
import pytest

from explorer import Edit, RunSpec, Trace, run
from explorer.stages import STAGES
from explorer.stages.quiz import KINDS, Question
from tests.stages.cases import SPECS

SEEDS = range(4)
# Which stage computes what, and which axis its sum runs along, written down a second time.
STAGE_OF = {
    1: "attn_norm", 2: "q k v q_norm k_norm", 3: "q_rot k_rot present_k present_v", 4: "scores masked_scores",
    5: "probs heads", 6: "concat attn_out", 7: "resid_mid",
    8: "ffn_norm gate up hidden router_logits router_probs expert_index expert_weight expert_gate expert_up "
       "expert_hidden expert_out ffn_out resid_post",
}  # fmt: skip
SUMMED = {
    "d_model": "attn_norm q k v ffn_norm gate up router_logits expert_gate expert_up",
    "d_h": "q_norm k_norm scores", "T_k": "probs heads", "h·d_h": "attn_out", "d_ff": "ffn_out expert_out",
    "E": "router_probs", "k": "expert_weight",
    "": "q_rot k_rot present_k present_v masked_scores concat resid_mid resid_post hidden expert_hidden",
}  # fmt: skip


def plain(html: str) -> str:
    return unescape(re.sub(r"<[^>]+>", "", re.sub(r"<sub>(.*?)</sub>", r"_\1", html)))


def asked(trace: Trace, lang: str = "en", seed: int = 0, **at: int) -> list[Question]:
    return [q for stage in STAGES for q in stage.questions(trace, lang=lang, seed=seed, **at)]


@cache
def every() -> list[tuple[str, Trace, Question]]:
    found = []
    for name, spec in SPECS.items():
        trace = run(spec)
        found += [(name, trace, q) for seed in SEEDS for q in asked(trace, seed=seed, b=seed % 2, h=seed % 3)]
    return found


def of(kind: str) -> list[tuple[str, Trace, Question]]:
    return [item for item in every() if item[2].kind == kind]


def right(question: Question) -> str:
    return plain(question.options[question.answer])


def number(text: str) -> float:
    return float(text.replace("−", "-").replace("∞", "inf"))


def test_every_question_has_four_different_answers_and_a_reason() -> None:
    for name, _, q in every():
        assert len(q.options) == len(set(map(plain, q.options))) == 4, (name, q)
        assert 0 <= q.answer < 4
        assert plain(q.text).endswith("?") and plain(q.why)
        assert not re.search(r"[{}]|None|\bnan\b|\binf\b", plain(q.text + q.why + " ".join(q.options))), q


def test_every_kind_is_asked_about_every_run_and_stage() -> None:
    for kind in ("shape", "stage"):
        assert {(name, q.stage) for name, _, q in of(kind)} == {(name, n) for name in SPECS for n in range(1, 9)}
    assert {q.stage for _, _, q in of("axis")} == set(range(1, 9))
    assert {q.stage for _, _, q in of("value")} == set(range(1, 9))
    assert {q.stage for _, _, q in of("seen")} == {4}
    assert {q.kind for _, _, q in every()} == set(KINDS)


def test_right_answers_do_not_always_stand_at_one_place() -> None:
    places = np.bincount([q.answer for _, _, q in every()], minlength=4)
    assert places.min() > 0.15 * places.sum()


def test_shapes_are_those_of_the_arrays() -> None:
    for name, trace, q in of("shape"):
        assert right(q) == "×".join(map(str, trace[q.about].shape)), (name, q.about)


def test_stages() -> None:
    for name, _, q in of("stage"):
        assert q.about in STAGE_OF[q.stage].split(), (name, q.about)
        assert right(q) == f"{q.stage}. {STAGES[q.stage - 1].title}"


def test_axes_that_are_summed() -> None:
    for name, trace, q in of("axis"):
        letter = right(q).partition(":")[0] if ":" in right(q) else ""
        if q.about in ("q_norm", "k_norm") and not trace.qk_norm:
            assert letter == "", (name, q)
        elif q.about == "ffn_out" and trace.moe:
            assert letter == "k", (name, q)
        else:
            assert q.about in SUMMED[letter].split(), (name, q.about, letter)


def test_terms_are_counted() -> None:
    q = next(
        q for seed in range(50) for q in asked(run(SPECS["capstone"]), seed=seed) if (q.kind, q.about) == ("axis", "q")
    )
    assert "has 12 terms" in plain(q.why)


def test_values_are_those_the_block_computed() -> None:
    for name, trace, q in of("value"):
        value = float(trace[q.about][q.index])
        tolerance = 5e-3 if trace.spec and trace.spec.dtype == "bfloat16" else 6e-4
        assert number(right(q)) == pytest.approx(value, rel=tolerance, abs=1e-6), (name, q)
        others = [number(plain(o)) for n, o in enumerate(q.options) if n != q.answer]
        for other in others:
            assert math.isfinite(other)
            assert abs(other - value) > 0.015 * max(abs(value), abs(other), 1e-3), (name, q)


def test_given_numbers_and_calculation_give_the_value() -> None:
    """The calculation in the explanation, evaluated by Python, and the numbers it uses are those that were given."""
    for name, _, q in of("value"):
        calculation, _, result = plain(q.why).rpartition(" = ")
        assert result == right(q)
        source = calculation.replace("−", "-").replace("·", "*").replace("√", "math.sqrt").replace("exp", "math.exp")
        source = re.sub(r"e-(\d)", r"e-\1", source)
        assert eval(source, {"math": math}) == pytest.approx(number(result), rel=2e-2, abs=2e-3), (name, q)  # noqa: S307
        given = plain(q.text).split("what is")[0]
        assert 2 <= len(re.findall(r"(?<![\w−.])−?\d[\d.]*(?:e−?\d+)?", given.split("=", 1)[1])) <= 16


def test_seen_keys_are_counted_one_by_one() -> None:
    for name, trace, q in of("seen"):
        spec = SPECS[name]
        t, b = map(int, re.findall(r"query (\d+).* row (\d+)", plain(q.text))[0])
        pads = spec.padding[b] if spec.padding else 0
        assert int(right(q)) == len([j for j in range(trace.sizes["Tk"]) if pads <= j <= t]), (name, q)


def test_a_hint_for_who_is_wrong() -> None:
    for name, _, q in every():
        assert plain(q.hint).endswith(("?", ".")) and plain(q.hint) != plain(q.why), (name, q)
        assert not re.search(r"[{}]|None", plain(q.hint)), q
        if q.kind in ("value", "seen"):
            assert right(q) not in re.findall(r"−?[\d.]+", plain(q.hint)), "a hint is no answer"
    found = [q for seed in range(40) for q in asked(run(RunSpec()), seed=seed) if q.kind == "axis"]
    masked = next(q for q in found if q.about == "masked_scores")
    assert re.match(r"The sum over d_h belongs to S\b", plain(masked.hint))


def test_the_toy_by_hand() -> None:
    found = {(q.kind, q.about, q.index): right(q) for seed in range(40) for q in asked(run(RunSpec()), seed=seed)}
    by_hand = {
        ("shape", "scores", ()): "1×1×2×2", ("shape", "concat", ()): "1×2×2",
        ("value", "scores", (0, 0, 1, 0)): "1.414", ("value", "probs", (0, 0, 1, 0)): "0.5",
        ("value", "heads", (0, 0, 1, 0)): "1", ("value", "heads", (0, 0, 1, 1)): "0",
        ("value", "resid_mid", (0, 1, 1)): "−1", ("value", "resid_post", (0, 1, 0)): "2.3",
        ("value", "q_rot", (0, 0, 1, 1)): "1",
    }  # fmt: skip
    for key, answer in by_hand.items():
        assert found[key] == answer, key


def test_likely_mistakes_are_among_the_answers() -> None:
    for seed in range(40):
        for q in asked(run(RunSpec()), seed=seed):
            if (q.kind, q.about) == ("value", "scores"):
                assert {"2", "1"} <= set(q.options), "forgot to divide, divided by d_h"


def test_the_same_seed_asks_the_same_and_another_seed_something_else() -> None:
    trace = run(SPECS["capstone"])
    assert asked(trace, seed=1) == asked(trace, seed=1)
    assert len({tuple(q.about for q in asked(trace, seed=seed)) for seed in range(10)}) > 5


@pytest.mark.parametrize("name", ["capstone", "experts", "cache and padding"])
def test_languages_ask_the_same(name: str) -> None:
    trace = run(SPECS[name])
    for seed in SEEDS:
        for en, zh in zip(asked(trace, seed=seed), asked(trace, "zh", seed), strict=True):
            assert (en.kind, en.stage, en.about, en.index, en.answer) == (
                zh.kind,
                zh.stage,
                zh.about,
                zh.index,
                zh.answer,
            )
            assert (zh.text != en.text and zh.why != en.why) or en.kind == "value"
            assert zh.hint != en.hint and re.search(r"[一-鿿]", zh.hint)
            if en.kind in ("shape", "value", "seen"):
                assert en.options == zh.options
            assert re.search(r"[一-鿿]", zh.text)


def test_an_edited_cell_is_not_asked_about() -> None:
    trace = run(RunSpec(edits=[Edit("resid_mid", (None, None, None), 5.0)]))
    for seed in range(10):
        assert not [q for q in STAGES[6].questions(trace, seed=seed) if q.kind == "value"]


def test_no_count_of_keys_while_the_mask_is_open() -> None:
    assert not [q for q in STAGES[3].questions(run(SPECS["no mask"])) if q.kind == "seen"]


def test_wide_runs_ask_only_about_small_cells() -> None:
    trace = run(RunSpec(T=40, d_model=256, h=4, h_kv=2, weights="random"))
    found = [q for seed in range(5) for q in asked(trace, seed=seed)]
    assert {q.about for q in found if q.kind == "value"} >= {"q_rot", "resid_mid", "resid_post"}
    assert all(len(plain(q.text)) < 300 for q in found)
