"""What-ifs, the table of effects and the two trials as the page gets them."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from explorer.effects import effects
from explorer.limits import LIMITS
from explorer.run import run
from explorer.spec import PRESETS, RunSpec
from explorer.switches import KINDS
from explorer.ui import whatif
from explorer.ui.live_figure import dumps
from explorer.ui.page import answer, fixed
from explorer.ui.words import words

TEXTS = words("en")


def ask(**request: Any) -> dict[str, Any]:
    reply: dict[str, Any] = json.loads(dumps(answer(request)))
    return reply


def part(name: str, **request: Any) -> Any:
    reply = ask(want=[name], **request)
    assert reply["ok"], reply
    assert set(reply) == {"ok", "seq", name}, "nothing but what was asked for is computed"
    return reply[name]


def wrong(**request: Any) -> dict[str, str]:
    reply = ask(**request)
    assert not reply["ok"]
    errors: dict[str, str] = reply["errors"]
    return errors


# ------------------------------------------------------------------------------------------------------- switches


def test_every_switch_is_declared_with_its_words() -> None:
    declared = fixed()["switches"]
    assert {about["name"] for about in declared} == set(KINDS)
    for about in declared:
        assert about["label"] and about["hint"] and about["argument"] == KINDS[about["name"]].argument
        if about["argument"]:
            assert "7" in whatif.label(f"{about['name']}:7", TEXTS)


def test_switch_is_in_force_and_compared_with_the_run_without_it() -> None:
    reply = ask(preset="capstone", switches=["no_mask"], stage=5, compare="change")
    assert reply["switches"] == ["no_mask"] and "s=no_mask" in reply["query"]
    plain, without = (run(RunSpec(**PRESETS["capstone"].given(), switches=s)) for s in ((), ("no_mask",)))
    panel = next(p for p in reply["panels"] if p["q"] == "probs")
    expected = (without["probs"] - plain["probs"])[0]
    np.testing.assert_allclose([s["delta"] for s in panel["slices"]], expected.reshape(3, -1), atol=1e-6)
    assert not {"1", "2"} & set("".join(s["state"] for s in panel["slices"])), "nothing is masked any more"


def test_heads_and_experts_that_are_gone_are_named() -> None:
    reply = ask(preset="capstone", switches=["without_head:1", "only_head:5", "expert:0", "no_rope"])
    assert reply["switches"] == ["without_head:1", "no_rope"]
    (note,) = reply["notes"]
    assert "only head 5" in note and "expert 0" in note


@pytest.mark.parametrize(
    "bad", ["no_such", "temperature", "temperature:0", "only_head:x", "no_mask:1", "", "expert:1.5"]
)
def test_wrong_switch_is_refused(bad: str) -> None:
    assert list(wrong(switches=[bad])) == ["switches"]


def test_what_changes_nothing_here_is_said() -> None:
    assert ask()["choices"] == {"head": 1, "expert": 0, "idle": ["no_qk_norm"]}
    assert ask(preset="capstone", spec={"experts": "4"})["choices"] == {"head": 3, "expert": 4, "idle": []}


@pytest.mark.parametrize(
    ("request_", "idle"),
    [
        ({"switches": ["uniform_attention"]}, ["uniform attention"]),
        ({"switches": ["temperature:1", "no_mask"]}, ["temperature 1"]),
        ({"switches": ["only_head:0", "no_qk_norm"]}, ["only head 0", "no q/k norm"]),
        ({"spec": {"T": "1"}, "switches": ["no_rope", "no_mask"]}, ["no RoPE", "no mask"]),
        ({"switches": ["no_rope", "temperature:2", "no_first_residual"]}, []),
        ({"preset": "capstone", "switches": ["uniform_attention", "only_head:0", "no_qk_norm"]}, []),
        ({"switches": ["uniform_attention"], "edits": [{"t": "masked_scores", "i": [0, 0, 1, 0], "x": 9, "on": True}]},
         []),
    ],
)  # fmt: skip
def test_a_what_if_in_force_that_changes_nothing_says_so(request_: dict[str, Any], idle: list[str]) -> None:
    reply = ask(**request_)
    assert [n.partition("” changes nothing")[0][1:] for n in reply["notes"] if "changes nothing" in n] == idle
    chinese = ask(**request_, lang="zh")["notes"]
    assert sum("什么也没有改变" in note for note in chinese) == len(idle)
    if "edits" not in request_:
        spec = PRESETS["capstone"] if "preset" in request_ else RunSpec.parse(request_.get("spec", {}))
        for switch in request_["switches"]:
            changed, plain = run(replace(spec, switches=(switch,))), run(spec)
            same = all(np.allclose(changed[name], plain[name], atol=1e-6) for name in plain.names)
            assert (whatif.label(switch, TEXTS) in idle) == same, switch


def test_of_a_large_run_nothing_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"spec": {"weights": "random", "T": "64", "d_model": "64", "h": "32"}, "switches": ["temperature:1"]}
    assert not [note for note in ask(**asked)["notes"] if "changes nothing" in note], "131,072 scores"
    monkeypatch.setattr(whatif, "MOST_COMPARED", 32 * 64 * 64)
    assert [note for note in ask(**asked)["notes"] if "changes nothing" in note]


def test_switch_alone_does_not_announce_a_path_that_is_taken_anyway() -> None:
    assert ask(switches=["no_mask"])["notes"] == []
    assert ask(preset="capstone", spec={"attention": "flash"}, switches=["no_mask"])["notes"] == [
        TEXTS["note_explicit"]
    ]


# -------------------------------------------------------------------------------------------------------- effects


def test_table_is_the_ranking() -> None:
    rows, expected = part("effects", preset="capstone")["rows"], effects(PRESETS["capstone"])
    assert [row["switch"] for row in rows] == [e.switch for e in expected]
    for row, e in zip(rows, expected, strict=True):
        assert row["moved"] == pytest.approx(e.moved) and row["stage"] == e.stage
        np.testing.assert_allclose(row["tokens"], e.tokens, rtol=1e-3, atol=1e-9)


def test_long_rows_are_shortened_and_too_large_runs_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    (strip,) = part("effects", preset="gqa", spec={"T": "600"})["rows"][0]["tokens"]
    assert 200 <= len(strip) <= whatif.LONGEST_STRIP
    monkeypatch.setattr(LIMITS, "flops", 2e9)
    assert "smaller" in wrong(want=["effects"], preset="minimind3")["effects"]


def test_table_whose_runs_would_keep_too_many_scores_says_so_beside_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = {"weights": "random", "T": 40, "d_model": 8, "h": 2, "attention": "flash"}
    monkeypatch.setattr(LIMITS, "score_bytes", 3 * 4 * 2 * 40 * 40 - 1)
    assert ask(spec=spec)["ok"]
    errors = wrong(want=["effects"], spec=spec)
    assert list(errors) == ["effects"] and errors["effects"].startswith("Scores for B·h·T·T_k = 1·2·40·40 take")
    assert "分数" in wrong(want=["effects"], spec=spec, lang="zh")["effects"]


def test_table_stands_on_top_of_what_is_in_force() -> None:
    rows = part("effects", switches=["no_mask"])["rows"]
    assert "no_mask" not in {row["switch"] for row in rows}
    assert rows[0]["moved"] == pytest.approx(effects(RunSpec(switches=("no_mask",)))[0].moved)


# --------------------------------------------------------------------------------------------------------- trials


def test_softmax_of_the_courses_row_by_default() -> None:
    found = part("softmax")
    assert found["rounded"] == ["0.323", "0.481", "0.196", "0.000"] and found["rounded_total"] == "1.000"
    assert found["scores"][3] == "-inf" and "0.482" in found["sentences"][-1]
    assert part("softmax", softmax={"row": fixed()["course_row"]}) == found


def test_softmax_of_a_row_that_was_typed() -> None:
    shares = part("softmax", softmax={"row": "1; 2 −inf"})["shares"]
    e = math.exp(-1)
    np.testing.assert_allclose(shares, [e / (1 + e), 1 / (1 + e), 0], rtol=1e-5)


@pytest.mark.parametrize("row", ["1, two", "inf", "nan", "1," * 65, "9" * 3000])
def test_bad_row_is_told_beside_its_field(row: str) -> None:
    assert list(wrong(want=["softmax"], softmax={"row": row})) == ["softmax.row"]


def test_trial_needs_no_valid_run_of_its_own() -> None:
    assert part("softmax", softmax="nonsense") and part("norms", norms=[1])


def test_norms_on_the_same_row() -> None:
    found = part("norms", preset="capstone", slice={"b": 1}, norms={"t": 3})
    x = run(PRESETS["capstone"])["resid_pre"][1, 3].astype(float)
    given, by_rms, by_layer = found["rows"]
    np.testing.assert_allclose(given, x, rtol=1e-5)
    np.testing.assert_allclose(by_rms, x / np.sqrt((x**2).mean() + 1e-6), rtol=1e-4)
    np.testing.assert_allclose(by_layer, (x - x.mean()) / np.sqrt(x.var() + 1e-6), rtol=1e-4)
    assert found["token"] == 3 and found["figure"]["data"]


def test_norms_take_gamma_and_beta() -> None:
    block = run(PRESETS["capstone"])
    by_block = part("norms", preset="capstone", norms={"t": 0, "gamma": "block"})["rows"][1]
    np.testing.assert_allclose(by_block, block["attn_norm"][0, 0], rtol=1e-4)
    rows = part("norms", norms={"t": 1, "gamma": "2", "beta": "1, 2"})["rows"]
    np.testing.assert_allclose(rows[1:], [[2, -2], [3, 0]], atol=1e-5)
    assert list(wrong(want=["norms"], norms={"gamma": "1, 2, 3"})) == ["norms.gamma"]
    assert list(wrong(want=["norms"], norms={"beta": "inf"})) == ["norms.beta"]


def test_wide_row_is_cut_and_says_so() -> None:
    found = part("norms", preset="minimind3", norms={"t": 63, "gamma": "block"})
    assert len(found["rows"][0]) == 64 and "768" in found["note"]


def test_course_file_is_the_file_itself() -> None:
    given = part("course")
    assert given["name"] == "transformer_model.py" and "class TransformerModel" in given["text"]
    compile(given["text"], given["name"], "exec")
