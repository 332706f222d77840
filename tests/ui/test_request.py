"""Untrusted requests become specs, or messages by field; nothing else comes out."""

from __future__ import annotations

from typing import Any

import pytest

from explorer.spec import PRESETS, Edit, RunSpec, SpecError
from explorer.ui.request import Asked, read
from explorer.ui.words import words

TEXTS = words("en")


def asked(**request: Any) -> Asked:
    return read(request, TEXTS)


def errors(**request: Any) -> dict[str, str]:
    with pytest.raises(SpecError) as caught:
        asked(**request)
    return caught.value.errors


def test_empty_request_is_the_toy_at_stage_1() -> None:
    result = asked()
    assert result.spec == RunSpec()
    assert (result.view.stage, result.view.compare, result.notes) == (1, "value", ())


@pytest.mark.parametrize("name", PRESETS)
def test_preset(name: str) -> None:
    assert asked(preset=name).spec == PRESETS[name]


def test_fields_lie_above_the_preset_and_an_emptied_optional_field_follows_the_others() -> None:
    result = asked(preset="gqa", spec={"T": "3", "h_kv": ""})
    assert (result.spec.T, result.spec.d_model, result.spec.kv_heads) == (3, 16, 4)


def test_sizes_away_from_the_toy_take_random_weights_and_say_so() -> None:
    result = asked(spec={"B": "2", "T": 5, "d_model": "12", "h": "3", "weights": "toy"})
    assert result.spec == PRESETS["capstone"]
    assert result.notes == (TEXTS["note_random"],)


def test_toy_keeps_its_weights_for_other_token_counts() -> None:
    result = asked(spec={"B": "2", "T": "5"})
    assert result.spec.weights == "toy" and not result.notes


@pytest.mark.parametrize("name", ["B", "T", "d_model", "h", "seed", "weights"])
def test_required_field_left_empty(name: str) -> None:
    assert list(errors(spec={name: " "})) == [name]


def test_all_wrong_fields_are_told_at_once() -> None:
    assert set(errors(spec={"h": "5", "T": "nine", "seed": ""})) == {"h", "T", "seed"}


def test_fields_that_depend_on_a_wrong_one_are_not_judged() -> None:
    assert set(errors(spec={"d_model": "twelve", "h": "3"})) == {"d_model"}


def test_h_is_wrong_until_d_model_fits() -> None:
    assert "does not divide" in errors(spec={"h": "3", "d_model": "2"})["h"]
    assert asked(spec={"h": "3", "d_model": "12"}).spec.head_dim == 4


def test_edits_are_read_with_their_numbers_and_infinities() -> None:
    given = [
        {"t": "resid_pre", "i": [0, 0, 1], "x": 2, "on": True},
        {"t": "masked_scores", "i": [0, None, 1, 0], "x": "-Infinity", "on": False},
    ]
    assert asked(edits=given).spec.edits == (
        Edit("resid_pre", (0, 0, 1), 2.0),
        Edit("masked_scores", (0, None, 1, 0), float("-inf"), on=False),
    )


def test_edit_outside_the_new_sizes_is_put_aside_and_named() -> None:
    given = [{"t": "resid_pre", "i": [0, 1, 1], "x": 2}, {"t": "resid_pre", "i": [0, 0, 0], "x": 3}]
    result = asked(spec={"T": "1"}, edits=given)
    assert [edit.index for edit in result.spec.edits] == [(0, 0, 0)]
    assert "resid_pre[0, 1, 1]" in result.notes[0]


BAD_EDITS: list[Any] = [
    "x",
    None,
    {},
    {"t": "resid_pre", "i": [0, 0, 0]},
    {"t": "resid_pre", "i": [0, 0, 0], "x": "nan"},
    {"t": "resid_pre", "i": [0, 0, 0], "x": True},
    {"t": "resid_pre", "i": [0, 0, 0], "x": 1e39},
    {"t": "resid_pre", "i": [0, 0, 0], "x": {"a": 1}},
    {"t": "resid_pre", "i": 3, "x": 1},
    {"t": "resid_pre", "i": [0, "a", 0], "x": 1},
    {"t": "resid_pre", "i": [0, 0], "x": 1},
    {"t": "no_such", "i": [0], "x": 1},
    {"t": "resid_pre", "i": [], "x": [[1, 2], [3]]},
]


@pytest.mark.parametrize("bad", BAD_EDITS, ids=str)
def test_bad_edit_is_named_by_its_place(bad: Any) -> None:
    good = {"t": "resid_pre", "i": [0, 0, 0], "x": 1}
    assert list(errors(edits=[good, bad])) == ["edits.1"]


def test_unknown_preset_and_field() -> None:
    assert "toy" in errors(preset="nonsense")[""]
    assert "nonsense" in errors(spec={"nonsense": 1})["nonsense"]


@pytest.mark.parametrize("stage", [0, -1, 9, "x", None, True, 2.5])
def test_stage_is_brought_into_range(stage: Any) -> None:
    assert 1 <= asked(stage=stage).view.stage <= 8


def test_slots_are_brought_into_range() -> None:
    result = asked(preset="capstone", slice={"b": 9, "h": -4, "t": "x"})
    assert result.slots == {"b": 1, "h": 0, "t": 0}


def test_link_is_the_truth_on_load() -> None:
    result = asked(query="?v=1&B=2&T=3&w=random&stage=5&row=1&e=resid_pre@0.0.1~2&__theme=dark", stage=2)
    assert (result.spec.B, result.spec.T, result.view.stage, result.slots["b"]) == (2, 3, 5, 1)
    assert result.spec.edits == (Edit("resid_pre", (0, 0, 1), 2.0),)


def test_bad_link_opens_what_can_be_read_and_says_what_not() -> None:
    result = asked(query="?v=1&B=two&T=3&nonsense=1")
    assert result.spec.T == 3 and result.spec.B == 1
    assert len(result.notes) == 2
