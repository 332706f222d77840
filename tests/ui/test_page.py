"""`answer`: what the browser is given to paint."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import numpy as np
import pytest

from explorer.limits import LIMITS
from explorer.quantities import QUANTITIES
from explorer.run import run
from explorer.spec import PRESETS, RunSpec
from explorer.ui import page
from explorer.ui.live_figure import dumps
from explorer.ui.page import answer, fixed
from tests import toy_reference

STAGES = range(1, 9)
EDIT_X = {"t": "resid_pre", "i": [0, 0, 1], "x": 2, "on": True}


def ask(**request: Any) -> dict[str, Any]:
    """The answer as the browser sees it: through JSON."""
    return json.loads(dumps(answer(request)))


def panels(**request: Any) -> dict[str, dict[str, Any]]:
    return {panel["q"]: panel for panel in ask(**request)["panels"]}


def values(panel: dict[str, Any]) -> np.ndarray:
    """All slices of a grid as one array; non-finite cells from the sparse list."""
    flat: list[float] = []
    for part in panel["slices"]:
        own = [math.nan if x is None else x for x in part["values"]]
        for n, name in part.get("special", {}).items():
            own[int(n)] = float(name)
        flat += own
    return np.array(flat).reshape(panel["shape"])


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_of_every_preset_answers(preset: str, stage: int) -> None:
    reply = ask(preset=preset, stage=stage, seq=7)
    assert reply["ok"] and reply["seq"] == 7 and reply["preset"] == preset
    assert reply["panels"] and reply["facts"] and reply["figures"]
    names = [panel["q"] for panel in reply["panels"]]
    assert len(names) == len(set(names)), "a quantity is shown twice"


def test_toy_cells_are_the_toys() -> None:
    expected, seen = toy_reference.toy(), set()
    for stage in STAGES:
        for name, panel in panels(stage=stage).items():
            if name in expected:
                np.testing.assert_allclose(values(panel), expected[name], rtol=1e-6, atol=1e-6, err_msg=name)
                seen.add(name)
    assert seen == set(expected)


def test_numbers_are_the_shortest_that_float32_tells_apart() -> None:
    text = dumps(answer({"stage": 5, "edits": [EDIT_X | {"x": 0.1}]}))
    assert "0.10000000149" not in text


def test_masked_and_non_finite_cells_are_told_apart() -> None:
    cells = panels(stage=4)["masked_scores"]["slices"][0]
    assert cells["values"][1] is None
    assert cells["special"] == {"1": "-inf"}
    assert [ord(c) - 48 for c in cells["state"]] == [0, 1, 0, 0]
    broken = panels(stage=1, edits=[{"t": "attn_norm", "i": [0, 0, 0], "x": 3e38}])
    assert broken["attn_norm"]["slices"][0]["values"][0] == pytest.approx(3e38)


def test_padding_differs_from_the_future() -> None:
    cells = panels(spec={"T": 3, "padding": "1"}, stage=4)["masked_scores"]["slices"][0]
    codes = np.array([ord(c) - 48 for c in cells["state"]]).reshape(3, 3)
    assert (codes[:, 0] & 2).tolist() == [2, 2, 2]
    assert (codes[1] & 1).tolist() == [0, 0, 1]


def test_edited_and_moved_cells_are_marked_and_others_not() -> None:
    shown = panels(edits=[EDIT_X])
    assert [ord(c) - 48 for c in shown["resid_pre"]["slices"][0]["state"]] == [0, 4 | 8, 0, 0]
    assert [ord(c) - 48 for c in shown["attn_norm"]["slices"][0]["state"]] == [8, 8, 0, 0]
    assert set(panels()["attn_norm"]["slices"][0]["state"]) == {"0"}


def test_edit_switched_off_moves_nothing() -> None:
    off = ask(edits=[EDIT_X | {"on": False}])
    assert off["panels"] == ask()["panels"]
    assert off["edits"] == [EDIT_X | {"x": 2.0, "on": False}]


@pytest.mark.parametrize("compare", ["change", "both"])
def test_change_is_the_difference_from_the_unedited_run(compare: str) -> None:
    plain, edited = toy_reference.toy(), toy_reference.toy(np.array([[1.0, 2.0], [1.0, -1.0]]))
    part = panels(stage=5, edits=[EDIT_X], compare=compare)["probs"]["slices"][0]
    np.testing.assert_allclose(part["delta"], (edited["probs"] - plain["probs"]).ravel(), atol=1e-6)


def test_weight_is_shown_as_stored_and_can_be_edited() -> None:
    edit = {"t": "self_attn.q_proj.weight", "i": [0, 1], "x": 0.5}
    panel = panels(stage=2, edits=[edit])["self_attn.q_proj.weight"]
    assert values(panel).tolist() == [[1, 0.5], [0, 1]]


def test_batch_row_and_head_are_chosen() -> None:
    reply = ask(preset="capstone", stage=5, slice={"b": 1, "h": 2})
    assert reply["slice_counts"] == {"b": 2}
    probs = next(p for p in reply["panels"] if p["q"] == "probs")
    assert [part["prefix"] for part in probs["slices"]] == [[1, 0], [1, 1], [1, 2]]
    expected = run(PRESETS["capstone"])["probs"][1, 2]
    np.testing.assert_allclose(probs["slices"][2]["values"], expected.ravel(), rtol=1e-6)


def test_grouped_keys_follow_the_query_head() -> None:
    reply = ask(preset="minimind3", stage=4, slice={"h": 5})
    keys = next(p for p in reply["panels"] if p["q"] == "k_rot")
    assert keys["slices"][0]["prefix"] == [0, 2]
    assert reply["slice_counts"] == {"h": 8}


def test_large_matrix_is_pooled() -> None:
    panel = panels(preset="minimind3", stage=2)["self_attn.q_proj.weight"]
    assert panel["kind"] == "heat"
    part = panel["slices"][0]
    assert (part["rows"], part["cols"]) == (64, 64) and part["pooled"] == [12, 12]
    weights = run(PRESETS["minimind3"]).weights["self_attn.q_proj.weight"].reshape(64, 12, 64, 12).swapaxes(1, 2)
    tiles = weights.reshape(64, 64, 144)
    strongest = np.take_along_axis(tiles, np.abs(tiles).argmax(-1)[..., None], -1)[..., 0]
    drawn = np.frombuffer(base64.b64decode(part["values_b64"]), np.float32).reshape(64, 64)
    np.testing.assert_array_equal(drawn, strongest)
    assert (drawn < 0).any() and panel["note"] == "each pixel is the one of 12×12 numbers that is largest in magnitude"
    chinese = panels(preset="minimind3", stage=2, lang="zh")["self_attn.q_proj.weight"]
    assert chinese["note"] == "每个像素是 12×12 个数中幅度最大的一个"


@pytest.mark.parametrize("stage", [4, 5])
def test_of_scores_that_were_not_kept_only_what_is_shown_is_computed(
    stage: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = {"weights": "random", "B": 2, "T": 20, "d_model": 8, "h": 2, "attention": "flash"}
    trace = run(RunSpec.parse(spec))
    monkeypatch.setattr(LIMITS, "score_bytes", 4 * 2 * 2 * 20 * 20 - 1)  # less than all of one quantity takes
    shown = panels(spec=spec, stage=stage, slice={"b": 1, "h": 1})
    for name in trace.recomputed & shown.keys():
        assert shown[name]["shape"] == [2, 2, 20, 20] and shown[name]["slices"][0]["prefix"] == [1, 1]
        drawn = np.frombuffer(base64.b64decode(shown[name]["slices"][0]["values_b64"]), np.float32)
        np.testing.assert_array_equal(drawn, trace.rows(name, 1, 1).ravel())
        masked = [ord(c) - 48 for c in shown[name]["slices"][0]["state"]]
        assert masked == [int(name != "scores" and key > query) for query in range(20) for key in range(20)]


def test_ledger_and_map_have_every_quantity_of_the_run() -> None:
    reply = ask(preset="capstone")
    rows = {row["name"]: row for row in reply["ledger"]}
    assert set(rows) == set(run(PRESETS["capstone"]).names)
    assert rows["q"]["shape"] == [2, 3, 5, 4] and rows["resid_post"]["shape"] == [2, 5, 12]
    assert reply["map"]["thumbs"]["probs"]["shape"] == [2, 3, 5, 5]
    own = sum(row["bytes"] for row in reply["ledger"] if not row["shares"])
    assert own == run(PRESETS["capstone"]).ledger().bytes and rows["present_k"]["shares"] == "k_rot"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_ledger_and_panels_call_a_quantity_alike(lang: str) -> None:
    for request in ({}, {"preset": "capstone"}, {"preset": "capstone", "switches": ["no_qk_norm"]}):
        titles = {row["name"]: row["title"] for row in ask(**request, lang=lang)["ledger"]}
        for stage in STAGES:
            shown = {name: panel["title"] for name, panel in panels(**request, stage=stage, lang=lang).items()}
            assert {name: titles[name] for name in shown if name in titles} == {
                name: words for name, words in shown.items() if name in QUANTITIES
            }
    toy = {row["name"]: row["title"] for row in ask(lang=lang)["ledger"]}
    for name in ("q_norm", "k_norm"):
        assert {"en": "passed on unchanged", "zh": "原样交出"}[lang] in toy[name]


def test_query_reproduces_the_picture() -> None:
    first = ask(preset="capstone", stage=5, edits=[EDIT_X], compare="both", slice={"b": 1})
    again = ask(query="?" + first["query"])
    for volatile in ("preset", "seq"):
        first.pop(volatile), again.pop(volatile)
    assert again == first


def test_explicit_path_is_announced() -> None:
    edit = {"t": "probs", "i": [0, 0, 1, 0], "x": 0.9}
    assert page.words("en")["note_explicit"] in ask(edits=[edit])["notes"]


def test_failure_inside_is_not_raised_to_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(spec: RunSpec) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(page, "run", broken)
    reply = ask()
    assert not reply["ok"] and "secret" not in json.dumps(reply)


def test_fixed_texts_cover_every_quantity_and_stage() -> None:
    texts = fixed()
    assert set(QUANTITIES) <= set(texts["quantities"])
    assert [stage["number"] for stage in texts["stages"]] == list(STAGES)
    assert all(stage["equation"].startswith("<math") for stage in texts["stages"])
    json.loads(dumps(texts))


def test_only_the_lines_that_ran_are_shown() -> None:
    def shown(spec: dict[str, object], stage: int) -> list[str]:
        code = fixed("en")["stages"][stage - 1]["code"]
        return [code[n]["name"] for n in answer({"spec": spec, "stage": stage})["ran"]]

    sizes = {"T": 3, "d_model": 8, "h": 2, "weights": "random"}
    dense, experts = shown(sizes, 8), shown({**sizes, "experts": 2}, 8)
    assert any("FeedForward.forward" in name and "MOE" not in name for name in dense)
    assert not any("MOE" in name for name in dense) and any("MOE" in name for name in experts)
