"""Where a checkpoint read a text, figures and sentences show its tokens, and no token can do harm."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from explorer import RunSpec, Trace, run, sources
from explorer.draw.positions import shortened
from explorer.offers import OFFERS
from explorer.stages import STAGES
from tests.small_checkpoint import write_checkpoint

HOSTILE = ("<b>bold", "</script><script>", "&amp;", "$x$", "%{z}", "{t}", "{", "<a href='x'>", "\u202e", "javascript:x")
CACHED = RunSpec(B=2, T=3, d_model=16, h=4, h_kv=2, past=2, padding=(1, 0), weights="random")
EXPERTS = RunSpec(T=5, d_model=16, h=4, experts=3, weights="random")
LONG = RunSpec(T=200, d_model=16, h=4, weights="random")


def reading(spec: RunSpec, texts: tuple[str, ...]) -> Trace:
    """The run as if a checkpoint had read `texts`, over and over, another shift in each batch row."""
    trace = copy.copy(run(spec))
    length = trace.sizes["Tk"]
    trace.tokens = tuple(tuple((texts * length)[b : b + length]) for b in range(trace.sizes["B"]))
    return trace


@pytest.fixture
def cached() -> Trace:
    return reading(CACHED, ("the", " ball", "rolls", "far", "away"))


def figures(trace: Trace, **at: int) -> dict[str, dict]:
    return {f["id"]: f for stage in STAGES for f in stage.figures(trace, **at)}


def test_axes_name_queries_and_keys_cached_ones_too(cached: Trace) -> None:
    for name in ("masked_scores", "probs"):
        layout = figures(cached)[name]["layout"]
        keys = {"0": "0 the", "1": "1 ball", "2": "2 rolls", "3": "3 far", "4": "4 away"}
        assert layout["xaxis"]["labelalias"] == keys
        assert layout["yaxis"]["labelalias"] == {k: keys[k] for k in "234"}
        assert layout["xaxis"]["showticklabels"] and layout["yaxis"]["showticklabels"]
        assert not layout["yaxis2"]["showticklabels"], "inner panes share the labels at the left"
        assert layout["yaxis2"]["labelalias"] == layout["yaxis"]["labelalias"], "but hover texts need them"


def test_every_token_axis_has_names(cached: Trace) -> None:
    drawn = figures(cached) | figures(reading(EXPERTS, ("a", "b")))
    axes = {
        "norm": ["xaxis"], "projections": ["xaxis", "xaxis2", "xaxis3"], "attn_out": ["yaxis", "yaxis2"],
        "residual": ["xaxis", "xaxis2", "yaxis3", "yaxis4"], "swiglu": ["yaxis", "yaxis2", "yaxis3"],
        "router": ["yaxis"],
    }  # fmt: skip
    for name, wanted in axes.items():
        layout = drawn[name]["layout"]
        assert [axis for axis in layout if "axis" in axis and "labelalias" in layout[axis]] == wanted, name


def test_hover_of_lollipops_names_the_token(cached: Trace) -> None:
    for name, trace in (("norm", 1), ("residual", 0), ("residual", 5)):
        assert figures(cached)[name]["data"][trace]["customdata"][::3] == ["2 rolls", "3 far", "4 away"]


def test_rope_columns_and_hover_name_the_token(cached: Trace) -> None:
    drawn = figures(cached)["rope"]
    assert drawn["layout"]["xaxis"]["ticktext"] == ["2 rolls", "3 far", "4 away"]
    assert [c[0] for c in drawn["data"][1]["customdata"][:9:3]] == ["2 rolls", "3 far", "4 away"]


def test_words_and_facts_name_the_token(cached: Trace) -> None:
    drawn = figures(cached)
    assert "query 4 “away”: (" in drawn["probs"]["text"]
    assert "token 2 “rolls”: " in drawn["norm"]["text"]
    assert "Token 3 “far”: stream length" in drawn["residual"]["text"]
    assert "Q at position 4 “away”, pair 0" in drawn["rope"]["text"]
    said = " ".join(fact for stage in STAGES for fact in stage.facts(cached))
    assert "Token 4 “away” comes in as" in said
    assert re.search(r"query 4 “away” meets key \d “\w+”", said)
    assert re.search(r"No key gets more than key \d “\w+”", said)


def test_other_batch_rows_have_their_own_tokens(cached: Trace) -> None:
    assert figures(cached, b=1)["rope"]["layout"]["xaxis"]["ticktext"] == ["2 far", "3 away", "4 the"]


def test_a_long_text_names_its_ticks_and_stays_small() -> None:
    trace = reading(LONG, ("one", "two", "three"))
    layout = figures(trace)["probs"]["layout"]
    named = layout["xaxis"]["labelalias"]
    assert {"0", "50", "100", "150"} <= named.keys()
    assert len(named) < 70
    assert len(json.dumps(layout)) < 30_000


@pytest.mark.parametrize("spec", [CACHED, EXPERTS, LONG], ids=["cached", "experts", "long"])
def test_hostile_tokens_are_harmless(spec: RunSpec) -> None:
    trace = reading(spec, HOSTILE)
    bad = [shortened(t) for t in HOSTILE]
    for drawn in figures(trace).values():
        plain = json.dumps({"data": drawn["data"], "layout": drawn["layout"]}, ensure_ascii=False)
        assert not re.search(r"<(?!/?(?:sub|br|extra)\b)", plain), "Plotly would read this as markup"
        assert "$" not in plain, "and this as TeX"
        assert "<" not in drawn["text"]
        labels = [a for k, v in drawn["layout"].items() if "axis" in k for a in v.get("labelalias", {}).values()]
        assert all(unescape(label).split(" ", 1)[1] in bad for label in labels)
    for stage in STAGES:
        for fact in stage.facts(trace):
            assert set(re.findall(r"<(\w+)", fact)) <= {"b", "span", "sub", "code"}


def test_nothing_but_names_differs_from_a_run_without_a_text() -> None:
    def numbers(trace: Trace) -> list[object]:
        return [t.get(part) for f in figures(trace).values() for t in f["data"] for part in ("x", "y", "z", "zmax")]

    assert numbers(reading(CACHED, ("a", "b"))) == numbers(run(CACHED))


@pytest.fixture
def checkpoint(tmp_path: Path) -> Iterator[str]:
    sources.offer("named", write_checkpoint(tmp_path / "small"))
    yield "named"
    del OFFERS["named"]


def test_a_text_read_by_a_checkpoint(checkpoint: str) -> None:
    text = "the cat sees\n猫 看 a dog"
    spec = RunSpec(weights=f"checkpoint:{checkpoint}", text=text, **sources.fit_to_text(checkpoint, text))
    trace = run(spec)
    assert figures(trace, b=1)["rope"]["layout"]["xaxis"]["ticktext"] == ["0 猫", "1 看", "2 a", "3 dog"]
    named = figures(trace, b=0)["probs"]["layout"]["xaxis"]["labelalias"]
    assert named == {"1": "1 the", "2": "2 cat", "3": "3 sees"}, "padding has no text"
    assert "Token 3 “sees” comes in as" in " ".join(STAGES[0].facts(trace))
