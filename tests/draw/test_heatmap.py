"""Heatmaps of scores and probabilities: z values, masked cells, labels, hover, ranges, and what is said in words."""

from __future__ import annotations

import json

import numpy as np
import pytest

from explorer.draw.attention import Attention, masked_scores_figure, probs_figure, shown_heads
from explorer.draw.positions import Positions
from explorer.draw.scales import FUTURE, INFINITY, MINUS_INFINITY, NOT_A_NUMBER, PADDED, PALETTE

INF = np.inf


def attention(
    values: np.ndarray, past: int = 0, padding: int = 0, head: int = 0, heads: list[int] | None = None
) -> Attention:
    queries, keys = values.shape[1:]
    future = np.arange(keys)[None] > past + np.arange(queries)[:, None]
    padded = (np.arange(keys)[None] < padding) & ~future
    return Attention(heads or list(range(len(values))), values, future, padded, Positions(past), head)


def written(figure: dict) -> list[str]:
    """What stands on the cells, row by row, whichever of the two text traces writes it."""
    weak, strong = (t["text"] for t in figure["data"] if t.get("mode") == "text")
    assert not any(a and b for a, b in zip(weak, strong, strict=True))
    return [a or b for a, b in zip(weak, strong, strict=True)]


TOY = np.array([[[2**0.5, -INF], [2**0.5, 2**0.5]]], dtype=np.float32)


def test_toy_scores() -> None:
    figure = masked_scores_figure(attention(TOY))
    numbers, marks = figure["data"][:2]
    assert figure["id"] == "masked_scores"
    assert np.array(numbers["z"], dtype=float) == pytest.approx(
        np.array([[2**0.5, np.nan], [2**0.5, 2**0.5]]), nan_ok=True
    )
    assert numbers["z"][0][1] is None
    assert (numbers["zmin"], numbers["zmax"]) == (-1.5, 1.5)
    assert numbers["colorscale"] == PALETTE["light"]["cell_signed"]
    assert numbers["meta"]["paint"] == {"colorscale": "cell_signed"}
    assert marks["z"] == [[None, FUTURE], [None, None]]
    assert written(figure) == ["1.41", "−∞", "1.41", "1.41"]
    assert marks["customdata"] == [[None, "later key, hidden by the mask"], [None, None]]
    assert (numbers["x"], numbers["y"]) == ([0, 1], [0, 1])
    assert "query 0: (1.414, −∞); query 1: (1.414, 1.414)" in figure["text"]


def test_queries_run_down_and_keys_across() -> None:
    figure = masked_scores_figure(attention(TOY))
    x, y = figure["layout"]["xaxis"], figure["layout"]["yaxis"]
    assert x["range"] == [-0.5, 1.5]
    assert y["range"] == [1.5, -0.5]
    assert (x["title"]["text"], y["title"]["text"]) == ("key", "query")
    hover = figure["data"][0]["hovertemplate"]
    assert hover == "query %{y} against key %{x}: score %{z:.7~g}<extra>head 0</extra>"


def test_toy_probabilities() -> None:
    figure = probs_figure(attention(np.array([[[1, 0], [0.5, 0.5]]])))
    numbers, marks = figure["data"][:2]
    assert numbers["z"] == [[1, None], [0.5, 0.5]]
    assert (numbers["zmin"], numbers["zmax"]) == (0, 1)
    assert marks["z"] == [[None, FUTURE], [None, None]]
    assert written(figure) == ["1", "0", "0.5", "0.5"]
    assert "query 1: (0.5, 0.5)" in figure["text"]


def test_a_low_probability_is_a_value_and_a_masked_one_is_not() -> None:
    values = np.array([[[1.0, 0.0], [1.0, 0.0]]])
    numbers, marks = probs_figure(attention(values))["data"][:2]
    assert numbers["z"] == [[1, None], [1, 0]]
    assert marks["z"] == [[None, FUTURE], [None, None]]


def test_an_opened_mask_shows_its_numbers() -> None:
    numbers, marks = probs_figure(attention(np.array([[[0.7, 0.3], [0.5, 0.5]]])))["data"][:2]
    assert numbers["z"][0] == [0.7, 0.3]
    assert marks["z"] == [[None, None], [None, None]]


def test_every_state_has_its_mark_and_its_legend() -> None:
    values = np.array([[[-INF, -INF, -INF, -INF], [-INF, np.nan, INF, -INF], [-INF, -INF, 1, -INF], [-INF, 1, 1, 1]]])
    figure = masked_scores_figure(attention(values, padding=1))
    marks = figure["data"][1]
    assert marks["z"] == [
        [PADDED, FUTURE, FUTURE, FUTURE],
        [PADDED, NOT_A_NUMBER, INFINITY, FUTURE],
        [PADDED, MINUS_INFINITY, None, FUTURE],
        [PADDED, None, None, None],
    ]
    assert (marks["zmin"], marks["zmax"]) == (0.5, 5.5)
    entries = figure["data"][-5:]
    assert [e["showlegend"] for e in entries] == [True] * 5
    assert [e["name"] for e in entries][:2] == ["later key, hidden by the mask", "padding, hidden by the mask"]
    bands = dict(PALETTE["light"]["state"][::2])
    for code, entry in enumerate(entries, start=1):
        assert entry["marker"]["color"] == bands[round((code - 1) / 5, 4)]


def test_cache_numbers_queries_from_the_past() -> None:
    figure = masked_scores_figure(attention(np.zeros((1, 2, 5)), past=3))
    assert figure["data"][0]["y"] == [3, 4]
    assert figure["data"][0]["x"] == [0, 1, 2, 3, 4]
    assert figure["layout"]["yaxis"]["range"] == [4.5, 2.5]


def test_one_pane_a_head_on_one_range() -> None:
    values = np.random.default_rng(0).normal(size=(3, 5, 5))
    figure = masked_scores_figure(attention(values, head=2))
    heats = [t for t in figure["data"] if t["type"] == "heatmap"]
    assert len(heats) == 6
    assert {t["zmax"] for t in heats[::2]} == {3.0}
    assert [t["xaxis"] for t in heats[::2]] == ["x", "x2", "x3"]
    assert [a["text"] for a in figure["layout"]["annotations"]] == ["head 0", "head 1", "head 2"]
    assert [t["showscale"] for t in heats[::2]] == [True, False, False]
    lower = np.tril(np.ones((5, 5), bool))
    for h in range(3):
        z = np.array(heats[2 * h]["z"], dtype=float)
        assert z[lower] == pytest.approx(values[h][lower], rel=1e-6)
    assert "head 2" in figure["text"]


def test_large_heatmaps_are_pooled_and_say_so() -> None:
    values = np.random.default_rng(1).normal(size=(4, 200, 200)).astype(np.float32)
    values[:, np.triu(np.ones((200, 200), bool), 1)] = -INF
    figure = masked_scores_figure(attention(values))
    numbers, marks = figure["data"][:2]
    assert np.array(numbers["z"]).shape == (50, 50)
    assert "the strongest of 4×4 cells" in numbers["hovertemplate"]
    tile = values[0, 100:104, 60:64]
    assert numbers["z"][25][15] == pytest.approx(tile.flat[np.abs(tile).argmax()], rel=1e-3)
    assert numbers["x"][:2] == [1.5, 5.5]
    assert marks["z"][0][1] == FUTURE
    assert not any(t.get("mode") == "text" for t in figure["data"])
    json.dumps(figure, allow_nan=False)


def test_words_name_the_largest_keys_of_a_long_row() -> None:
    values = np.full((1, 8, 8), -INF)
    values[0][np.tril_indices(8)] = 0.0
    values[0, 7] = [0, 5, 0, 0, 4, 3, 0, 0]
    text = masked_scores_figure(attention(values))["text"]
    assert "query 7: 5 on key 1, 4 on key 4, 3 on key 5." in text
    assert "query 0: 0 on key 0;" in text


def test_heads_around_the_chosen_one() -> None:
    assert list(shown_heads(8, 3)) == list(range(8))
    assert list(shown_heads(32, 0)) == list(range(16))
    assert list(shown_heads(32, 20)) == list(range(12, 28))
    assert list(shown_heads(32, 31)) == list(range(16, 32))


def test_numbers_change_and_nothing_else() -> None:
    """An edit within the same range leaves everything but arrays as it was, which the fast redraw relies on."""

    def skeleton(figure):  # type: ignore[no-untyped-def]
        arrays = ("z", "x", "y", "text", "customdata")
        shapes = [{k: np.shape(v) if k in arrays else v for k, v in t.items()} for t in figure["data"]]
        return shapes, figure["layout"], figure["title"]

    one, two = TOY.copy(), TOY.copy()
    two[0, 1, 0] = -1.1
    assert skeleton(masked_scores_figure(attention(one))) == skeleton(masked_scores_figure(attention(two)))


def test_text_is_dark_on_pale_numbers_and_light_on_strong_marks() -> None:
    figure = probs_figure(attention(np.array([[[1.0, 0.0], [np.nan, 0.3]]])))
    weak, strong = (t for t in figure["data"] if t.get("mode") == "text")
    assert strong["text"] == ["", "", "NaN", ""]
    assert weak["text"] == ["1", "0", "", "0.3"]
    assert (weak["x"], weak["y"]) == ([0, 1, 0, 1], [0, 0, 1, 1])
    assert weak["meta"]["paint"] == {"textfont.color": "on_weak"}
    assert strong["textfont"]["color"] == PALETTE["light"]["on_strong"]


@pytest.mark.parametrize(("keys", "scale"), [(16, "cell_unit"), (17, "unit")])
def test_what_is_read_as_numbers_has_the_pale_colours_of_the_number_grids(keys: int, scale: str) -> None:
    heat = probs_figure(attention(np.full((1, keys, keys), 0.5)))["data"][0]
    assert heat["colorscale"] == PALETTE["light"][scale]
    assert heat["meta"]["paint"] == {"colorscale": scale}
