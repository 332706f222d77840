"""The residual figure: lengths, cosines, cells."""

from __future__ import annotations

import json

import numpy as np
import pytest

from explorer.draw.figure import CROWD
from explorer.draw.positions import Positions
from explorer.draw.residual import Stream, Update, chosen_tokens, cosines, norms, residual_figure

X = np.array([[1.0, 1], [1, -1]])
O = np.array([[1.0, 1], [1, 0]])  # noqa: E741
F = np.array([[0.1, -0.2], [0.3, 0.1]])


def toy(x: np.ndarray = X, o: np.ndarray = O, f: np.ndarray = F, past: int = 0) -> dict:
    return residual_figure(
        [Stream("X", x), Stream("Y", x + o), Stream("Z", x + o + f)],
        [Update("O", "attn", o), Update("F", "ffn", f)],
        Positions(past),
    )


def test_lengths_of_the_toy() -> None:
    traces = toy()["data"][:5]
    expected = {"X": [2**0.5, 2**0.5], "O": [2**0.5, 1], "Y": [8**0.5, 5**0.5], "F": [0.05**0.5, 0.1**0.5]}
    for trace in traces[:4]:
        assert trace["y"][1::3] == pytest.approx(expected[trace["name"]], rel=1e-6)
        assert trace["y"][0::3] == [0, 0]
        assert trace["y"][2::3] == [None, None]
    assert [t["name"] for t in traces] == ["X", "O", "Y", "F", "Z"]
    assert [t["meta"]["paint"]["line.color"] for t in traces] == ["resid", "attn", "resid", "ffn", "resid"]
    assert traces[0]["customdata"] == [0, 0, 0, 1, 1, 1]
    assert traces[0]["marker"]["size"] == [0, 9, 0] * 2


def test_lollipops_stand_side_by_side_around_their_token() -> None:
    traces = toy()["data"][:5]
    places = np.array([t["x"][1::3] for t in traces])
    assert (np.diff(places, axis=0) > 0.1).all()
    assert places.mean(0) == pytest.approx([0, 1])
    assert np.abs(places - [0, 1]).max() < 0.5


def test_cosines_of_the_toy() -> None:
    traces = toy()["data"][5:7]
    by_hand = {"O": [1.0, 1 / 2**0.5], "F": [-0.2 / (8**0.5 * 0.05**0.5), 0.5 / (5**0.5 * 0.1**0.5)]}
    for trace in traces:
        assert trace["y"][1::3] == pytest.approx(by_hand[trace["name"]], rel=1e-5)
        assert (trace["xaxis"], trace["yaxis"]) == ("x2", "y2")
    assert toy()["layout"]["yaxis2"]["range"] == [-1.08, 1.08]


def test_cells_of_the_updates() -> None:
    heats = [t for t in toy()["data"] if t["type"] == "heatmap"]
    assert heats[0]["z"] == O.tolist()
    assert heats[2]["z"] == F.tolist()
    assert (heats[0]["zmin"], heats[0]["zmax"]) == (heats[2]["zmin"], heats[2]["zmax"]) == (-1, 1)
    assert heats[0]["hovertemplate"].startswith("token %{y}, feature %{x}: %{z")


def test_words() -> None:
    text = toy()["text"]
    assert "O leads from X to Y." in text
    assert "Token 0: stream length 2.828, update length 0.2236 at cosine −0.3162, stream length after 2.766" in text


def test_an_update_of_zero_has_no_cosine() -> None:
    figure = toy(o=np.zeros((2, 2)))
    assert figure["data"][5]["y"][1::3] == [None, None]
    assert figure["data"][5]["y"][0::3] == [None, None]
    assert "without a cosine" in figure["text"]


def test_many_tokens_become_lines_and_stay_few() -> None:
    source = np.random.default_rng(0)
    figure = toy(*source.normal(size=(3, 700, 16)), past=2)
    line = figure["data"][0]
    assert line["mode"] == "lines"
    assert CROWD < len(line["x"]) == len(line["y"]) == 128
    assert (line["x"][0], line["x"][-1]) == (2, 701)
    heat = figure["data"][7]
    assert len(heat["z"]) == 64
    assert len(json.dumps(figure, allow_nan=False)) < 60_000


def test_wide_streams_are_pooled() -> None:
    heat = toy(*np.random.default_rng(0).normal(size=(3, 4, 768)))["data"][7]
    assert np.shape(heat["z"]) == (4, 96)


def test_norms_and_cosines_by_another_formula() -> None:
    a, b = np.random.default_rng(1).normal(size=(2, 6, 9)).astype(np.float32)
    assert norms(a) == pytest.approx([np.linalg.norm(r.astype(float)) for r in a])
    angle = [
        np.dot(x / np.linalg.norm(x), y / np.linalg.norm(y))
        for x, y in zip(a.astype(float), b.astype(float), strict=True)
    ]
    assert cosines(a, b) == pytest.approx(angle)
    assert np.isnan(cosines(np.zeros((1, 3)), np.ones((1, 3)))).all()


def test_chosen_tokens_keep_both_ends() -> None:
    assert chosen_tokens(5).tolist() == [0, 1, 2, 3, 4]
    assert len(chosen_tokens(1000)) == 128
    assert chosen_tokens(1000)[[0, -1]].tolist() == [0, 999]
