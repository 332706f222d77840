"""What is typed is read as a field's type, nonsense is named, and nothing typed can break RunSpec."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from explorer import Edit, RunSpec, SpecError, run
from explorer.quantities import QUANTITIES, WEIGHTS
from tests.core.cases import many


def test_typed_text_is_read_as_the_fields_type() -> None:
    spec = RunSpec.parse(
        {
            "B": " 2 ", "T": "5.0", "d_model": "12", "h": 3, "weights": "random", "seed": "1e3", "qk_norm": "off",
            "angle_step": "−0.5", "norm_eps": "1e-5", "padding": "0, 2", "h_kv": "", "d_ff": None, "yarn": "TRUE",
            "switches": "no_mask, no_rope", "dtype": " bfloat16 ", "text": " two words − ", "past": 0.0, "norm_topk": 1,
        }
    )  # fmt: skip
    assert spec == RunSpec(
        B=2, T=5, d_model=12, h=3, weights="random", seed=1000, qk_norm=False, angle_step=-0.5, norm_eps=1e-5,
        padding=(0, 2), yarn=True, switches=("no_mask", "no_rope"), dtype="bfloat16", text=" two words − ",
    )  # fmt: skip
    wide = RunSpec.parse({"T": "１２", "B": "２", "angle_step": "－０．５", "padding": "0，1", "weights": "random"})
    assert wide == RunSpec(B=2, T=12, angle_step=-0.5, padding=(0, 1), weights="random"), "from a Chinese keyboard"
    edit = Edit("q", (0, 0, 0, 0), 1.0)
    assert RunSpec.parse({"T": "3"}, edits=(edit,)) == RunSpec(T=3, edits=(edit,))
    assert RunSpec.parse({"edits": [edit], "padding": 1}) == RunSpec(edits=(edit,), padding=(1,))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("T", "abc", "T = 'abc' is not a number that can be used. Type a whole number."),
        ("T", "1e400", "T = '1e400' is not a number that can be used."),
        ("T", "NaN", "T = 'NaN' is not a number"),
        ("T", 10**400, "is not a number that can be used"),
        ("T", True, "T = 'True' is not a number"),
        ("T", [[1]], "T = '[[1]]' is not a number"),
        ("T", "1,000", "T = '1,000' is not a number that can be used. Type a whole number."),
        ("T", "2.5", "T = '2.5' is not a whole number. Type a whole number."),
        ("angle_step", "pi", "angle_step = 'pi' is not a number that can be used. Type a number."),
        ("yarn", "maybe", "yarn = 'maybe' is neither on nor off. Use on or off."),
        ("yarn", 2, "yarn = '2' is neither on nor off."),
        ("padding", "1 x", "padding = '1 x' is not a list of whole numbers. Type one count a row: 0 2."),
        ("padding", [1.5], "padding = '[1.5]' is not a list of whole numbers."),
        ("switches", 5, "switches = '5' is not a list of names. Type them with commas: no_mask, no_rope."),
        ("edits", "q=1", "edits takes a list of Edit"),
        ("width", "3", "There is no setting 'width'. Settings: B, T, d_model"),
        ("z" * 500, "3", "There is no setting 'zzz"),
        ("dtype", ["float32"], "dtype = \"['float32']\" has the wrong type. It takes a text."),
        ("T", "9" * 500, "is not a number that can be used"),
    ],
)
def test_typed_nonsense_is_named(name: str, text: object, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        RunSpec.parse({name: text})
    assert set(caught.value.errors) == {name}
    assert message in caught.value.errors[name] and len(caught.value.errors[name]) < 600


NAMES = [f.name for f in fields(RunSpec)]
TYPED = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["", "1", "2", "4", "1e400", "-0", "nan", "∞", "½", "٣", "1_0", "no_mask", "random", "\x00", "0 1"]
    ),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.none(),
    st.recursive(
        st.one_of(st.integers(), st.text(max_size=3)), lambda inner: st.lists(inner, max_size=3), max_leaves=6
    ),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
)


@many(400)
@given(st.dictionaries(st.one_of(st.sampled_from(NAMES), st.text(max_size=5)), TYPED, max_size=6))
def test_whatever_is_typed_only_a_spec_error_comes_out(typed: dict[str, object]) -> None:
    try:
        spec = RunSpec.parse(typed)
    except SpecError as error:
        assert error.errors and all(isinstance(m, str) and m for m in error.errors.values())
    else:
        assert hash(spec) == hash(RunSpec(**spec.given()))


@many(300)
@given(st.dictionaries(st.sampled_from(NAMES), TYPED, max_size=4))
def test_whatever_is_given_in_python_only_a_spec_error_comes_out(values: dict[str, Any]) -> None:
    try:
        RunSpec(**values)
    except SpecError as error:
        assert error.errors


@many(300)
@given(
    st.one_of(st.sampled_from([*QUANTITIES, *WEIGHTS]), TYPED),
    st.one_of(st.lists(st.one_of(st.none(), st.integers(-1, 2), TYPED), max_size=5), TYPED),
    st.one_of(st.floats(width=32), TYPED),
)
def test_whatever_is_edited_only_a_spec_error_comes_out(target: Any, index: Any, value: Any) -> None:
    try:
        spec = RunSpec(edits=[Edit(target, index, value)])
    except SpecError as error:
        assert set(error.errors) == {"edits.0"}
    else:
        trace = run(spec)
        assert np.isfinite(trace["resid_pre"]).all()


@many(60)
@given(
    st.integers(1, 2), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.integers(0, 2), st.integers(0, 3),
    st.sampled_from(["auto", "explicit", "flash"]), st.sampled_from(["float32", "bfloat16", "float16"]), st.data(),
)  # fmt: skip
def test_every_valid_spec_runs_and_its_output_is_finite(
    batch: int, tokens: int, kv: int, group: int, past: int, experts: int, attention: str, dtype: str, data: Any
) -> None:
    pads = data.draw(st.one_of(st.just(()), st.tuples(*[st.integers(0, past + tokens)] * batch)))
    spec = RunSpec(
        B=batch, T=tokens, d_model=6, h=kv * group, h_kv=kv, d_h=4, d_ff=3, weights="random", past=past, padding=pads,
        experts=experts, experts_per_token=data.draw(st.integers(1, max(1, experts))), attention=attention, dtype=dtype,
    )  # fmt: skip
    trace = run(spec)
    assert np.isfinite(trace["resid_post"]).all()
    assert all(row.agrees for row in trace.ledger())
    visible = ~np.broadcast_to(trace.masked, trace["probs"].shape).all(-1)
    np.testing.assert_allclose(trace["probs"].sum(-1), visible, atol=5e-3)


def test_numbers_are_read_as_the_pages_cells_read_them() -> None:
    assert RunSpec.parse({"angle_step": "1,5"}).angle_step == 1.5
    with pytest.raises(SpecError, match="1_0"):
        RunSpec.parse({"seed": "1_0"})


@pytest.mark.parametrize("whole", [np.int64, np.uint8, np.int32, torch.tensor])
def test_whole_numbers_of_other_libraries_are_whole_numbers(whole: Any) -> None:
    spec = RunSpec(T=whole(5), B=whole(2), padding=(whole(1), 0), weights="random", h_kv=whole(1), seed=whole(7))
    assert spec == RunSpec(T=5, B=2, padding=(1, 0), weights="random", h_kv=1, seed=7)
    assert all(type(value) is int for value in (spec.T, spec.B, spec.h_kv, *spec.padding))
    assert RunSpec.parse({"T": whole(5), "angle_step": whole(2)}) == RunSpec(T=5, angle_step=2.0)
