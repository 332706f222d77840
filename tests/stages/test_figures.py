"""Figures of a run show that run's numbers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from explorer import Edit, RunSpec, run
from explorer.draw.scales import FUTURE, PADDED
from explorer.stages import STAGES
from explorer.stages.figures import FIGURES, build, figure
from tests.stages.cases import SPECS


def cells(trace: dict) -> np.ndarray:
    return np.array(trace["z"], dtype=float)


def panes(figure: dict) -> list[np.ndarray]:
    """The plain numbers of each pane."""
    return [cells(t) for t in figure["data"] if t["type"] == "heatmap"][::2]


@pytest.mark.parametrize("name", SPECS)
def test_every_run_can_be_drawn(name: str) -> None:
    trace = run(SPECS[name])
    for stage in STAGES:
        for drawn in stage.figures(trace, b=1, h=1):
            assert set(drawn) == {"id", "title", "text", "data", "layout"}
            assert drawn["text"] and "<" not in drawn["text"], "the text is not HTML"
            assert {t["type"] for t in drawn["data"]} <= {"heatmap", "scatter"}
            assert not any("stackgroup" in t for t in drawn["data"])
            json.dumps(drawn, allow_nan=False)
            go.Figure({"data": drawn["data"], "layout": drawn["layout"]})


def test_which_figure_belongs_to_which_stage() -> None:
    dense, moe = ([[f["id"] for f in s.figures(run(SPECS[n]))] for s in STAGES] for n in ("capstone", "experts"))
    first = [["norm"], ["projections"], ["rope"], ["masked_scores"], ["probs"], ["attn_out"], ["residual"]]
    assert dense == [*first, ["residual", "swiglu"]]
    assert moe == [*first, ["residual", "router"]]


@pytest.mark.parametrize("name", ["masked_scores", "probs"])
def test_heads_of_a_run_with_cache_and_padding(name: str) -> None:
    trace = run(SPECS["cache and padding"])
    drawn = FIGURES[name](trace, b=0, h=2)
    heats = [t for t in drawn["data"] if t["type"] == "heatmap"]
    assert len(heats) == 8
    key, query = np.arange(7)[None], 3 + np.arange(4)[:, None]
    future, padded = key > query, (key < 2) & (key <= query)
    for h in range(4):
        shown, marks = cells(heats[2 * h]), cells(heats[2 * h + 1])
        assert (np.isnan(shown) == (future | padded)).all()
        assert shown[~(future | padded)] == pytest.approx(trace[name][0, h][~(future | padded)], rel=1e-6)
        assert (marks[future] == FUTURE).all() and (marks[padded] == PADDED).all()
    assert "head 2" in drawn["text"]


def test_flash_run_shows_the_same_heads() -> None:
    spec = SPECS["flash"]
    explicit = run(RunSpec(T=9, d_model=8, h=2, weights="random", attention="explicit"))
    one, two = FIGURES["probs"](run(spec)), FIGURES["probs"](explicit)
    assert run(spec).recomputed
    for a, b in zip(one["data"][:4], two["data"][:4], strict=True):
        assert cells(a) == pytest.approx(cells(b), abs=1e-6, nan_ok=True)


def test_rope_of_a_grouped_head_with_a_cache() -> None:
    trace = run(SPECS["cache and padding"])
    drawn = FIGURES["rope"](trace, b=1, h=3)
    q, k = trace["q_rot"][1, 3].astype(float), trace["k_rot"][1, 1].astype(float)
    pairs = np.concatenate([x[:, [i, i + 2]] for x in (q, k) for i in range(2)])
    longest = np.hypot(*pairs.T).max()
    x = [np.array(drawn["data"][i]["x"], dtype=float) for i in (2, 4)]
    found = np.concatenate([a[1::3] - a[0::3] for a in x]) * longest
    assert found == pytest.approx(pairs[:, 0], abs=1e-5)
    degrees = [t.rstrip("°") for t in drawn["data"][-1]["text"][:4]]
    assert degrees == [f"{np.degrees(m):.4g}" for m in (3, 4, 5, 6)]
    assert drawn["layout"]["xaxis"]["ticktext"][0] == "position 3"


def test_rope_of_the_toy_turns_a_quarter() -> None:
    assert FIGURES["rope"](run(RunSpec()))["data"][-1]["text"] == ["0°", "90°", "0°", "90°"]


def test_rope_takes_a_pair() -> None:
    drawn = FIGURES["rope"](run(SPECS["capstone"]), pair=1)
    assert drawn["layout"]["yaxis"]["ticktext"] == ["Q pair 1", "K pair 1"]


def test_yarn_angles_agree_with_the_tables() -> None:
    trace = run(SPECS["yarn"])
    drawn = FIGURES["rope"](trace, pair=5)
    table = np.degrees(np.arctan2(trace["rope_sin"][:, 5], trace["rope_cos"][:, 5]))
    shown = [float(t.rstrip("°").replace("e−", "e-")) for t in drawn["data"][-1]["text"][:5]]
    assert shown == pytest.approx(table, rel=1e-3, abs=1e-6)


def test_residual_of_the_capstone() -> None:
    trace = run(SPECS["capstone"])
    drawn = FIGURES["residual"](trace, b=1)
    names = ["resid_pre", "attn_out", "resid_mid", "ffn_out", "resid_post"]
    for t, name in zip(drawn["data"][:5], names, strict=True):
        assert t["y"][1::3] == pytest.approx(np.linalg.norm(trace[name][1].astype(float), axis=1), rel=1e-5)
    for t, (update, stream) in zip(
        drawn["data"][5:7], [("attn_out", "resid_pre"), ("ffn_out", "resid_mid")], strict=True
    ):
        u, s = trace[update][1].astype(float), trace[stream][1].astype(float)
        angle = [a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in zip(u, s, strict=True)]
        assert t["y"][1::3] == pytest.approx(angle, abs=1e-6)
    assert cells(drawn["data"][7]) == pytest.approx(trace["attn_out"][1], rel=1e-6)
    assert cells(drawn["data"][9]) == pytest.approx(trace["ffn_out"][1], rel=1e-6)


def test_norm_projections_update_and_swiglu_of_the_capstone() -> None:
    trace = run(SPECS["capstone"])
    normed = FIGURES["norm"](trace)["data"][2]["y"][1::3]
    assert normed == pytest.approx(np.sqrt((trace["attn_norm"][0].astype(float) ** 2).mean(1)), rel=1e-6)
    for found, name in zip(panes(FIGURES["projections"](trace)), "qkv", strict=True):
        assert found == pytest.approx(np.linalg.norm(trace[name][0].astype(float), axis=-1), rel=1e-5)
    update, by_head = panes(FIGURES["attn_out"](trace))
    assert update == pytest.approx(trace["attn_out"][0], rel=1e-6)
    w = trace.weights["self_attn.o_proj.weight"].astype(float)
    share = [np.linalg.norm(trace["heads"][0, h].astype(float) @ w[:, 4 * h : 4 * h + 4].T, axis=1) for h in range(3)]
    assert by_head == pytest.approx(np.array(share).T, rel=1e-5)
    for found, name in zip(panes(FIGURES["swiglu"](trace)), ("gate", "up", "hidden"), strict=True):
        assert found == pytest.approx(trace[name][0], rel=1e-6)


def test_router_of_experts() -> None:
    trace = run(SPECS["experts"])
    drawn = FIGURES["router"](trace, b=1)
    assert cells(drawn["data"][0]) == pytest.approx(trace["router_probs"][1], rel=1e-6)
    assert [c[0] for c in drawn["data"][-2]["customdata"]] == trace["expert_index"][1].ravel().tolist()
    assert sum(drawn["data"][-1]["y"][1::3]) == trace["expert_index"][1].size


def test_names_that_do_not_exist_or_do_not_fit() -> None:
    with pytest.raises(LookupError, match=r"no figure 'rop'. Did you mean 'rope'\? Figures: norm"):
        build(run(RunSpec()), "rop")
    with pytest.raises(ValueError, match="dense, so there is no router"):
        build(run(RunSpec()), "router")
    with pytest.raises(ValueError, match="no single gate"):
        build(run(SPECS["experts"]), "swiglu")


def test_trace_figure_is_a_plotly_figure() -> None:
    trace = run(SPECS["capstone"])
    drawn = trace.figure("attention", b=1, h=2)
    assert isinstance(drawn, go.Figure)
    assert drawn.layout.title.text == "Attention probabilities: queries down, keys across"
    assert np.array(drawn.data[4].z[4], dtype=float) == pytest.approx(trace["probs"][1, 2, 4], rel=1e-6)
    assert figure(trace, "rope").to_json()


def test_a_small_edit_changes_arrays_and_nothing_else() -> None:
    """What the page's fast redraw relies on."""

    def bones(trace: dict[str, Any]) -> dict[str, Any]:
        arrays = ("x", "y", "z", "text", "customdata")
        found = {k: np.shape(v) if k in arrays else v for k, v in trace.items()}
        marker = {k: len(v) if isinstance(v, list) else v for k, v in trace.get("marker", {}).items()}
        return {**found, "marker": marker}

    def skeleton(spec: RunSpec) -> object:
        figures = [f for stage in STAGES for f in stage.figures(run(spec))]
        return [([bones(trace) for trace in f["data"]], f["layout"], f["title"]) for f in figures]

    def edited(value: float) -> RunSpec:
        return RunSpec(B=2, T=5, d_model=12, h=3, weights="random", edits=[Edit("resid_pre", (0, 2, 1), value)])

    assert skeleton(edited(0.5)) == skeleton(edited(0.52))


def test_a_choice_that_a_figure_does_not_have_is_named_with_those_it_has() -> None:
    trace = run(RunSpec())
    with pytest.raises(ValueError, match="'norm' takes no 'pair'. It takes b, h"):
        build(trace, "norm", pair=1)
    with pytest.raises(ValueError, match=r"'rope' takes no 'token'. It takes b, h, .*pair"):
        build(trace, "rope", token=1)
    assert build(trace, "rope", pair=0) == build(trace, "rope")
