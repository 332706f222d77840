"""The RoPE figure: arrows, arcs and angles against complex numbers."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.draw.positions import Positions
from explorer.draw.rope import ARC, PITCH, Turn, measured_turn, rope_figure, shown_cells


def turned(x: np.ndarray, angles: np.ndarray) -> np.ndarray:
    half = x.shape[1] // 2
    z = (x[:, :half] + 1j * x[:, half:]) * np.exp(1j * angles)
    return np.concatenate([z.real, z.imag], axis=1)


def tips(trace: dict, circles: int) -> np.ndarray:
    """Arrow vectors in units of the longest, [circles] complex, read back from the drawing."""
    x, y = np.array(trace["x"], dtype=float), np.array(trace["y"], dtype=float)
    assert len(x) == 3 * circles
    assert np.isnan(x[2::3]).all()
    return (x[1::3] - x[0::3]) + 1j * (y[1::3] - y[0::3])


X = np.array([[1.0, 1.0], [1.0, -1.0]])
QUARTER = np.array([[0.0], [np.pi / 2]])


def toy() -> dict:
    return rope_figure([Turn(n.upper(), n, X, turned(X, QUARTER)) for n in "qk"], QUARTER)


def test_toy_arrows() -> None:
    figure = toy()
    rings, q_before, q_after, k_before, k_after, arcs, labels = figure["data"]
    unit = np.sqrt(2)
    assert tips(q_before, 2) * unit == pytest.approx([1 + 1j, 1 - 1j])
    assert tips(q_after, 2) * unit == pytest.approx([1 + 1j, 1 + 1j])
    assert tips(k_after, 2) == pytest.approx(tips(q_after, 2))
    assert labels["text"] == ["0°", "90°", "0°", "90°"]
    assert [t["name"] for t in (q_before, q_after, k_before, k_after)] == ["Q before", "Q after", "K before", "K after"]
    assert "Q at position 1, pair 0: (1, −1) turns by 90° to (1, 1)." in figure["text"]
    assert q_after["meta"]["paint"]["line.color"] == "q"
    assert k_after["meta"]["paint"]["marker.color"] == "k"
    assert rings["hoverinfo"] == arcs["hoverinfo"] == "skip"


def test_toy_hover() -> None:
    after = toy()["data"][2]
    assert after["customdata"][4] == [1, 0, 1, "(1, 1)", "1.414", "90"]
    assert after["hovertemplate"].startswith("Q at position %{customdata[0]}, features %{customdata[1]} and")


def test_arcs_run_counter_clockwise_from_the_first_arrow() -> None:
    arcs = toy()["data"][5]
    x, y = (np.array(arcs[a], dtype=float).reshape(4, 26)[:, :25] for a in "xy")
    middle = np.array([0, PITCH, 0, PITCH]) - 1j * np.array([0, 0, PITCH, PITCH])
    bend = (x + 1j * y) - middle[:, None]
    assert np.abs(bend) == pytest.approx(np.full((4, 25), ARC), abs=1e-6)
    assert np.angle(bend[1, 0]) == pytest.approx(-np.pi / 4)
    assert np.angle(bend[1, -1]) == pytest.approx(np.pi / 4)
    assert (np.diff(np.angle(bend[1])) > 0).all()


def test_rings_have_the_arrows_length() -> None:
    before = np.array([[3.0, 0.0, 4.0, 1.0]])
    figure = rope_figure([Turn("Q", "q", before, before)], np.zeros((1, 2)))
    x = np.array(figure["data"][0]["x"], dtype=float).reshape(2, 50)[:, 0]
    assert x == pytest.approx([5 / 5, 1 / 5])


def test_random_heads_against_complex_numbers() -> None:
    source = np.random.default_rng(3)
    q, k = source.normal(size=(2, 5, 4))
    angles = np.arange(5)[:, None] * np.array([1.0, 0.3])
    turns = [Turn("Q", "q", q, turned(q, angles)), Turn("K", "k", k, turned(k, angles))]
    figure = rope_figure(turns, angles, tokens=Positions(7))
    pairs = [(x[:, i] + 1j * x[:, i + 2]) for x in (q, k) for i in range(2)]
    longest = max(np.abs(p).max() for p in pairs)
    expected = np.concatenate([p * np.exp(1j * angles[:, i % 2]) for i, p in enumerate(pairs)]) / longest
    found = np.concatenate([tips(figure["data"][2], 10), tips(figure["data"][4], 10)])
    assert found == pytest.approx(expected, abs=1e-5)
    assert figure["data"][-1]["text"][4] == "229.2°"
    assert figure["layout"]["xaxis"]["ticktext"] == [f"position {p}" for p in range(7, 12)]
    assert figure["layout"]["yaxis"]["ticktext"] == ["Q pair 0", "Q pair 1", "K pair 0", "K pair 1"]


def test_an_edited_arrow_shows_its_own_angle() -> None:
    after = turned(X, QUARTER)
    after[1] = [-1, 1]
    figure = rope_figure([Turn("Q", "q", X, after)], QUARTER)
    assert figure["data"][-1]["text"] == ["0°", "180° (edited)"]
    assert "which is not RoPE's angle" in figure["text"]
    rounded = rope_figure([Turn("Q", "q", X, after, edited=False)], QUARTER)
    assert rounded["data"][-1]["text"] == ["0°", "90°"]


def test_zero_and_nan_arrows_do_not_break() -> None:
    before = np.array([[0.0, 0.0], [np.nan, 1.0]])
    figure = rope_figure([Turn("Q", "q", before, before)], QUARTER)
    assert figure["data"][-1]["text"] == ["0°", "90°"]
    assert figure["data"][1]["x"][4] is None


def test_measured_turn() -> None:
    assert measured_turn(np.array([1.0, 0]), np.array([0.0, 2])) == pytest.approx(np.pi / 2)
    assert measured_turn(np.array([1.0, 0]), np.array([0.0, -2])) == pytest.approx(3 * np.pi / 2)
    assert np.isnan(measured_turn(np.zeros(2), np.ones(2)))


@pytest.mark.parametrize(
    ("sizes", "pair", "tokens", "pairs"),
    [
        ((2, 1), None, [0, 1], [0]),
        ((5, 2), None, [0, 1, 2, 3, 4], [0, 1]),
        ((64, 48), None, [0, 13, 25, 38, 50, 63], [0, 12]),
        ((64, 48), 5, [0, 6, 11, 17, 23, 29, 34, 40, 46, 52, 57, 63], [5]),
        ((64, 48), 99, None, [47]),
        ((1, 4), None, [0], [0, 3]),
    ],
)
def test_what_is_shown(sizes: tuple[int, int], pair: int | None, tokens: list[int] | None, pairs: list[int]) -> None:
    found = shown_cells(*sizes, pair)
    assert found[1] == pairs
    assert tokens is None or found[0] == tokens
    assert len(found[0]) * len(found[1]) <= 12


def test_a_change_of_labels_changes_the_layout() -> None:
    turns = [Turn("Q", "q", X, turned(X, QUARTER))]
    one, two = (rope_figure(turns, QUARTER, tokens=Positions(p))["layout"] for p in (0, 1))
    assert one["meta"] != two["meta"]
