"""The chosen cell, from a request to what the inspector is given."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from explorer.run import run
from explorer.spec import Edit, RunSpec
from explorer.stages import STAGES
from explorer.ui import inspect, matrix
from explorer.ui.live_figure import dumps
from explorer.ui.page import answer

GQA = {"weights": "random", "B": 2, "T": 5, "d_model": 16, "h": 4, "h_kv": 2}
MOE = {"weights": "random", "T": 4, "d_model": 8, "h": 2, "experts": 3, "experts_per_token": 2}


def ask(**request: Any) -> dict[str, Any]:
    """The answer as the browser sees it: through JSON."""
    reply: dict[str, Any] = json.loads(dumps(answer(request)))
    assert reply["ok"], reply
    return reply


def test_a_chosen_cell_is_opened_and_kept_in_the_query() -> None:
    reply = ask(stage=4, select={"q": "scores", "i": [0, 0, 1, 0]})
    found = reply["inspect"]
    assert reply["select"] == {"q": "scores", "i": [0, 0, 1, 0]}
    assert "cell=scores@0.0.1.0" in reply["query"]
    assert found["value"] == pytest.approx(math.sqrt(2), rel=1e-5) and found["rounding"]
    assert {name for name, _ in found["cells"]} >= {"q_rot", "k_rot"}
    again = ask(query="?" + reply["query"])
    assert again["inspect"] == found and again["stage"] == 4


@pytest.mark.parametrize(
    "select",
    [None, "scores", {}, {"q": "scores"}, {"q": "scores", "i": [0, 0, 9, 0]}, {"q": "scores", "i": [0, 0]},
     {"q": "nothing", "i": [0]}, {"q": "router_logits", "i": [0, 0, 0]}, {"q": "scores", "i": [0, 0, "1", 0]},
     {"q": "scores", "i": [0, 0, True, 0]}, {"q": "past_k", "i": [0, 0, 0, 0]}, {"q": 7, "i": None}],
)  # fmt: skip
def test_a_cell_that_does_not_exist_is_no_choice(select: Any) -> None:
    reply = ask(stage=4, select=select)
    assert reply["select"] is None and reply["inspect"] is None and "cell=" not in reply["query"]


def test_no_number_is_lost_on_the_way() -> None:
    tree = ask(stage=4, select={"q": "masked_scores", "i": [0, 0, 0, 1]})["inspect"]
    assert tree["value"] == "-Inf" and tree["masked"]
    assert "null" not in json.dumps(tree["tree"]).replace('"rest": null', "")


@pytest.mark.parametrize("stage", range(1, 9))
@pytest.mark.parametrize("fields", [{}, GQA, GQA | {"past": 2}, MOE], ids=["toy", "gqa", "cache", "moe"])
def test_a_followed_term_is_brought_into_view(fields: dict[str, Any], stage: int) -> None:
    spec = RunSpec(**fields)
    trace = run(spec)
    for name in [*trace.names, *trace.weights]:
        index = [n - 1 for n in spec.shape(name)]
        reply = ask(spec=fields, stage=stage, select={"q": name, "i": index, "show": True})
        assert reply["inspect"]["i"] == index
        shown = {p["q"]: p for p in reply["panels"]}
        if name not in shown:  # the tables of RoPE, and what a run without a cache has under another name
            assert name.startswith(("rope_", "past", "present")), name
            continue
        assert any(part["prefix"] == index[:-2] for part in shown[name]["slices"]) or len(index) == 1, name


def test_a_pixel_stands_for_the_cell_that_it_shows() -> None:
    trace = run(RunSpec(weights="random", T=40, d_model=200, h=2))
    values = trace["resid_pre"][0]
    cell = inspect.within_tile([1, 4], trace, ("resid_pre", (0, 7, 12)))
    assert cell[1][:2] == (0, 7) and abs(values[7, cell[1][2]]) == np.abs(values[7, 12:16]).max()
    assert inspect.within_tile("x", trace, ("resid_pre", (0, 7, 12)))[1] == (0, 7, 12)
    vector = inspect.within_tile([1, 4], trace, ("input_layernorm.weight", (8,)))
    assert len(vector[1]) == 1 and 8 <= vector[1][0] < 12


def test_who_set_a_cell() -> None:
    edits = [{"t": "scores", "i": [0, 0, 1, 0], "x": 2, "on": True}]
    hand = ask(stage=4, edits=edits, select={"q": "scores", "i": [0, 0, 1, 0]})["inspect"]
    assert hand["set_by"] == "hand" and hand["value"] == 2 and hand["computed"] == pytest.approx(math.sqrt(2), rel=1e-5)
    switch = ask(stage=4, switches=["no_scale"], select={"q": "scores", "i": [0, 0, 1, 0]})["inspect"]
    assert switch["set_by"] in ("switch", "")
    weight = [{"t": "self_attn.q_proj.weight", "i": [0, 1], "x": 3, "on": True}]
    given = ask(stage=2, edits=weight, select={"q": "self_attn.q_proj.weight", "i": [0, 1]})["inspect"]
    assert given["given_as"] == "weight" and given["set_by"] == "hand" and (given["value"], given["computed"]) == (3, 0)


def test_a_pooled_pixel_carries_the_mark_of_any_cell_in_it() -> None:
    spec = RunSpec(weights="random", T=40, d_model=200, h=2)
    trace = run(spec.with_edit(Edit("resid_pre", (0, 7, 13), 5.0)))
    shown = matrix.Shown(trace, run(spec), trace.spec.edits, "value", {"b": 0, "h": 0, "t": 0})  # type: ignore[union-attr]
    part = matrix.panel(shown, "resid_pre", "input", {"lang": "en", "pooled": ""})["slices"][0]
    marks = np.array([ord(c) - 48 for c in part["state"]]).reshape(part["rows"], part["cols"])
    down, right = part["pooled"]
    assert (down, right) != (1, 1)
    assert marks[7 // down, 13 // right] == matrix.EDITED | matrix.CHANGED and np.count_nonzero(marks) == 1


def test_thumbnails_say_what_moved() -> None:
    edits = [{"t": "gate", "i": [0, 0, 0], "x": 9, "on": True}]
    plain, value, change = (ask(edits=e, compare=c)["map"]["thumbs"] for e, c in
                            [([], "value"), (edits, "value"), (edits, "change")])  # fmt: skip
    assert not any(thumb.get("moved") for thumb in plain.values())
    assert {name for name, thumb in value.items() if thumb["moved"]} == {"ffn_out", "resid_post"}
    assert change["ffn_out"]["change"] and change["ffn_out"]["v"] != value["ffn_out"]["v"]


@pytest.mark.parametrize(
    ("stage", "name", "index", "token"),
    [(1, "resid_pre", [0, 0, 1], 0), (1, "attn_norm", [0, 2, 0], 2), (2, "k", [0, 1, 1, 0], 1),
     (3, "q_rot", [0, 3, 0, 2], 0), (3, "rope_cos", [1, 0], 1), (4, "scores", [0, 0, 3, 0], 3),
     (4, "masked_scores", [0, 0, 0, 4], 0), (5, "probs", [0, 1, 2, 1], 2), (5, "heads", [0, 1, 0, 3], 0),
     (6, "concat", [0, 1, 9], 1), (8, "hidden", [0, 0, 5], 0), (2, "self_attn.q_proj.weight", [0, 1], 4),
     (1, "input_layernorm.weight", [0], 4), (8, "mlp.down_proj.weight", [0, 0], 4)],
)  # fmt: skip
def test_the_sentences_are_about_the_chosen_cells_token(stage: int, name: str, index: list[int], token: int) -> None:
    head = index[1] if len(index) == 4 else 0
    asked = {"stage": stage, "spec": GQA, "slice": {"b": 0, "h": head, "t": 0}}
    said = ask(**asked, select={"q": name, "i": index})["facts"]
    trace, told = run(RunSpec(**GQA)), STAGES[stage - 1].facts  # type: ignore[arg-type]
    assert said == told(trace, 0, head, token) and said != told(trace, 0, head, (token + 1) % 5)
    assert ask(**asked)["facts"] == told(trace, 0, head), "without a cell they are about the last token"


def test_the_sentences_about_keys_that_a_cache_holds() -> None:
    spec = GQA | {"past": 2}
    trace = run(RunSpec(**spec))  # type: ignore[arg-type]
    for key, token in ((0, 4), (2, 0), (3, 1)):
        said = ask(stage=3, spec=spec, select={"q": "present_k", "i": [0, 0, key, 0]})["facts"]
        assert said == STAGES[2].facts(trace, 0, 0, token)


def test_editing_a_cell_explains_its_token() -> None:
    edit = {"t": "resid_pre", "i": [0, 0, 1], "x": 2, "on": True}
    said = ask(stage=1, edits=[edit], select={"q": "resid_pre", "i": [0, 0, 1]})["facts"]
    assert said[0].startswith("Token 0 comes in as")
