"""A checkpoint on the page: its text decides the sizes, its sizes cannot be typed, its texts can be tried."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from explorer import sources
from explorer.limits import LIMITS
from explorer.offers import OFFERS
from explorer.ui import controls, reading
from explorer.ui.page import answer
from explorer.ui.words import words
from tests.ui.reading_checkpoint import EXAMPLES, LAYERS, write_reader

WEIGHTS = "checkpoint:reader"
TWO_LINES = "once upon a time\nthe cat"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_reader(tmp_path_factory.mktemp("reading") / "reader")


@pytest.fixture(autouse=True)
def offered(folder: Path) -> Iterator[None]:
    sources.offer("reader", folder)
    yield
    del OFFERS["reader"]


def ask(*, stage: int = 1, fit: bool = True, **spec: Any) -> dict[str, Any]:
    return dict(answer({"spec": {"weights": WEIGHTS, "text": TWO_LINES, **spec}, "fit": fit, "stage": stage}))


def test_text_decides_rows_tokens_and_padding() -> None:
    reply = ask(B="7", T="nonsense", padding="1 2 3")
    assert {k: reply["spec"][k] for k in ("B", "T", "padding", "past")} == {"B": 2, "T": 4, "padding": "0 2", "past": 0}
    assert list(reply["tokens"]) == ["once", "upon", "a", "time"]


def test_without_fit_the_fields_count() -> None:
    reply = ask(fit=False, B="1", T="3")
    assert (reply["spec"]["T"], list(reply["tokens"])) == (3, ["once", "upon", "a"])


@pytest.mark.parametrize(
    ("past", "expected"), [("2", (2, 2)), ("99", (3, 1)), ("-1", (0, 4)), ("x", (0, 4)), ("", (0, 4))]
)
def test_cache_leaves_at_least_one_token(past: str, expected: tuple[int, int]) -> None:
    reply = ask(past=past)
    assert (reply["spec"]["past"], reply["spec"]["T"]) == expected


def test_dictated_fields_are_shown_as_such() -> None:
    reply = ask()
    assert reply["spec"]["d_model"] == 16 and reply["spec"]["h_kv"] == 2
    assert {name for name, state in reply["fields"].items() if state == "dictated"} >= {"d_model", "h", "d_ff", "yarn"}
    assert reply["fields"]["seed"] == "absent" and "layer" not in reply["fields"]
    assert answer({})["fields"]["text"] == "absent"


def test_errors_stand_beside_text_and_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "empty" in ask(text=" \n ")["errors"]["text"]
    assert f"0 to {LAYERS - 1}" in ask(layer=str(LAYERS))["errors"]["layer"]
    assert "lines" in ask(text="\n".join(["cat"] * (LIMITS.B + 1)))["errors"]["text"]
    monkeypatch.setattr(LIMITS, "T", 5)
    assert "5" in ask(text="cat " * 6)["errors"]["text"]
    monkeypatch.setattr(LIMITS, "text", 10)
    assert "characters" in ask()["errors"]["text"]


def test_link_brings_the_reading_back() -> None:
    first = ask(layer="1", stage=5)
    again = answer({"query": "?" + first["query"]})
    assert again["spec"] == first["spec"] and again["figures"] == first["figures"]


def test_text_and_layer_mean_nothing_elsewhere() -> None:
    reply = answer({"spec": {"weights": "random", "text": "once", "layer": "2", "T": "3"}, "fit": True})
    assert (reply["spec"]["text"], reply["spec"]["layer"], reply["spec"]["T"]) == ("", 0, 3)


def test_choices_name_the_checkpoint() -> None:
    groups = controls.declarations(words("en"))
    fields = {about["name"]: about for group in groups for about in group["fields"]}
    assert (WEIGHTS, f"reader: a trained model of {LAYERS} blocks") in fields["weights"]["options"]
    assert [value for value, _ in fields["device"]["options"]][:2] == ["auto", "cpu"]
    assert [value for value, _ in fields["yarn"]["options"]] == ["true", "false"], "always on or off"
    assert [value for value, _ in fields["qk_norm"]["options"]] == ["", "true", "false"]


def test_texts_to_try() -> None:
    assert reading.examples()[WEIGHTS] == EXAMPLES


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("{", []),
        ("[]", []),
        ('["cat", {"text": " "}, 3, {"text": "dog", "notice": "x"}]', [("cat", ""), ("dog", "x")]),
        ('{"examples": [{"text": "ran"}]}', [("ran", "")]),
    ],
)
def test_texts_to_try_are_read_with_care(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, expected: list[tuple[str, str]]
) -> None:
    (tmp_path / "examples.json").write_text(content, encoding="utf-8")
    found = reading._examples(tmp_path)
    assert [(item["text"], item["look"]) for item in found] == expected


@pytest.mark.parametrize("experts", ["0", "", "0.0"])
def test_experts_a_token_does_not_matter_without_experts(experts: str) -> None:
    spec = {"experts": experts or "0", "experts_per_token": "3"}
    assert answer({"spec": spec})["ok"]


def test_experts_take_the_toys_weights_away_and_say_so() -> None:
    reply = answer({"spec": {"experts": "4"}})
    assert reply["spec"]["weights"] == "random" and reply["notes"] == [words("en")["note_random_experts"]]


def test_only_one_experts_weights_are_shown() -> None:
    spec = {"experts": "4", "experts_per_token": "2", "weights": "random"}
    for expert in (0, 3, 9):
        reply = answer({"spec": spec, "stage": 8, "slice": {"e": expert}})
        shown = {panel["q"].split(".")[2] for panel in reply["panels"] if panel["q"].startswith("mlp.experts.")}
        assert shown == {str(min(expert, 3))} and reply["slice_counts"]["e"] == 4
