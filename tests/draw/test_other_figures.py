"""Norms, projections, updates, SwiGLU and the router."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import pytest

from explorer.draw.figure import to_plotly
from explorer.draw.norms import norm_comparison_figure, norm_figure, projections_figure
from explorer.draw.positions import Positions
from explorer.draw.residual import norms
from explorer.draw.router import expert_load, router_figure
from explorer.draw.scales import PALETTE
from explorer.draw.updates import attn_out_figure, head_contributions, swiglu_figure


def heatmaps(figure: dict) -> list[np.ndarray]:
    """The plain numbers of each pane."""
    return [np.array(t["z"]) for t in figure["data"] if t["type"] == "heatmap"][::2]


RANDOM = np.random.default_rng(5)


def test_norm_figure() -> None:
    x = RANDOM.normal(size=(3, 8)) * [[1], [2], [5]]
    normed = x / np.sqrt((x**2).mean(1, keepdims=True))
    figure = norm_figure(("X", x), ("X̄", normed), tokens=Positions(4))
    line, before, after = figure["data"]
    assert before["y"][1::3] == pytest.approx([np.linalg.norm(r) / 8**0.5 for r in x], rel=1e-6)
    assert after["y"][1::3] == pytest.approx([1, 1, 1], rel=1e-6)
    assert before["customdata"][::3] == [4, 5, 6]
    assert line["y"] == [1, 1]
    assert figure["layout"]["xaxis"]["range"] == [3.5, 6.5]
    assert figure["layout"]["yaxis"]["range"][1] > max(before["y"][1::3])
    assert "token 4: " in figure["text"]


def test_projections_figure() -> None:
    q, k = RANDOM.normal(size=(4, 3, 6)), RANDOM.normal(size=(2, 3, 6))
    figure = projections_figure([("Q", q), ("K", k)])
    z = heatmaps(figure)
    assert z[0] == pytest.approx(np.linalg.norm(q, axis=-1), rel=1e-6)
    assert z[1] == pytest.approx(np.linalg.norm(k, axis=-1), rel=1e-6)
    assert figure["data"][0]["zmin"] == 0
    assert [a["text"] for a in figure["layout"]["annotations"]] == ["length of Q", "length of K"]
    assert "Q (number of heads: 4): lengths from" in figure["text"]


def test_head_contributions_sum_to_the_update() -> None:
    concat, w_o = RANDOM.normal(size=(5, 12)), RANDOM.normal(size=(7, 12))
    parts = head_contributions(concat, w_o, heads=3)
    assert parts.sum(0) == pytest.approx(concat @ w_o.T)
    assert parts[1] == pytest.approx(concat[:, 4:8] @ w_o[:, 4:8].T)


def test_attn_out_figure() -> None:
    update = RANDOM.normal(size=(5, 7))
    shares = np.abs(RANDOM.normal(size=(3, 5)))
    figure = attn_out_figure(update, shares)
    assert heatmaps(figure)[0] == pytest.approx(update, rel=1e-6)
    assert heatmaps(figure)[1] == pytest.approx(shares.T, rel=1e-6)
    assert "token 4" in figure["text"]


def test_swiglu_figure() -> None:
    parts = [(name, RANDOM.normal(size=(2, 4))) for name in ("G", "U", "H")]
    figure = swiglu_figure(parts)
    for z, (_, values) in zip(heatmaps(figure), parts, strict=True):
        assert z == pytest.approx(values, rel=1e-6)
    assert figure["text"].startswith("Token 1: G (")


def test_router_figure() -> None:
    probs = np.array([[0.1, 0.6, 0.3], [0.5, 0.2, 0.3]])
    index, weight = np.array([[1, 2], [0, 2]]), np.array([[2 / 3, 1 / 3], [0.625, 0.375]])
    figure = router_figure(probs, index, weight, tokens=Positions(1))
    heat, (chosen, load) = figure["data"][0], figure["data"][-2:]
    assert np.array(heat["z"]) == pytest.approx(probs)
    assert (heat["zmin"], heat["zmax"]) == (0, 1)
    assert [c[0] for c in chosen["customdata"]] == [1, 2, 0, 2]
    assert chosen["x"] == pytest.approx([0.6, 1.6, -0.4, 1.6])
    assert chosen["y"] == [1, 1, 2, 2]
    assert load["y"][1::3] == [1, 1, 2]
    assert "token 1 to expert 1 (probability 0.6, share 0.6667)" in figure["text"]
    assert "expert 2: 2." in figure["text"]


def test_an_idle_expert_is_counted_as_zero() -> None:
    assert expert_load(np.array([[1], [1]]), 4).tolist() == [0, 2, 0, 0]


def test_norm_comparison_figure() -> None:
    rows = RANDOM.normal(size=(3, 4))
    figure = norm_comparison_figure(*rows)
    for trace, values in zip(figure["data"], rows, strict=True):
        assert trace["y"][1::3] == pytest.approx(values, rel=1e-6)
    assert [t["name"] for t in figure["data"]] == ["as given", "RMSNorm", "LayerNorm"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_to_plotly(theme: str) -> None:
    figure = swiglu_figure([("G", RANDOM.normal(size=(2, 4)))])
    drawn = to_plotly(figure, theme)
    assert isinstance(drawn, go.Figure)
    assert drawn.layout.title.text == figure["title"]
    assert drawn.data[0].colorscale[0][1] == PALETTE[theme]["cell_signed"][0][1]
    assert "template" not in figure["layout"]


def test_lengths_survive_large_half_precision_numbers() -> None:
    assert norms(np.full((1, 4), 60000, dtype=np.float16))[0] == pytest.approx(119936, rel=1e-3)
