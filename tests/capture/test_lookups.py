"""Names and indexes: one way to look up quantities and weights, and a sentence for what is not there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from explorer import Edit, RunSpec, SpecError, Trace, answers, run
from explorer.capture import CaptureError, NotRecorded, record
from explorer.quantities import QUANTITIES, WEIGHTS, UnknownName, near_names, weight_of
from explorer.run import Prepared, prepare
from explorer.switches import SwitchError
from tests.capture.recording import capture
from tests.core.cases import CASES

WQ = "self_attn.q_proj.weight"

# ---------------------------------------------------------------------------------------------------- by a name


@pytest.mark.parametrize("case", ["capstone", "grouped", "moe_two"])
def test_a_weight_is_looked_up_as_a_quantity_is(case: str) -> None:
    trace, state = run(CASES[case]), prepare(CASES[case]).block.state_dict()
    assert set(trace.weights) == set(state)
    for name, stored in state.items():
        for found in (trace[name], trace.before(name), trace.weights[name], trace.tensor(name).numpy()):
            np.testing.assert_array_equal(found, stored.numpy())
        assert trace.shape(name) == tuple(stored.shape) and trace.dtype(name) == "float32"
        assert trace.axes(name) == weight_of(name).axes
        last = tuple(n - 1 for n in stored.shape)
        assert trace.value(name, last) == trace.computed(name, last) == float(stored[last])
        assert name not in trace and name not in trace.names


LOOKUPS: dict[str, Callable[[Trace, str], Any]] = {
    "[]": lambda t, n: t[n],
    "tensor": lambda t, n: t.tensor(n),
    "before": lambda t, n: t.before(n),
    "axes": lambda t, n: t.axes(n),
    "shape": lambda t, n: t.shape(n),
    "dtype": lambda t, n: t.dtype(n),
    "value": lambda t, n: t.value(n, (0, 0)),
    "computed": lambda t, n: t.computed(n, (0, 0)),
    "explain": lambda t, n: t.explain(n, (0, 0)),
}


@pytest.mark.parametrize("which", LOOKUPS)
@pytest.mark.parametrize(
    ("wrong", "near"), [("prob", "'probs'"), ("q_proj.weight", f"'{WQ}'"), ("q_proj", f"'{WQ}'"), ("q_prj.weight", WQ)]
)
def test_a_wrong_name_is_refused_everywhere_and_says_which_is_near(which: str, wrong: str, near: str) -> None:
    with pytest.raises(UnknownName, match=f"is named '{wrong}'. Did you mean '?{near}") as caught:
        LOOKUPS[which](run(CASES["capstone"]), wrong)
    assert not isinstance(caught.value, NotRecorded) and "router" not in str(caught.value)


def test_what_is_no_name_is_refused() -> None:
    with pytest.raises(UnknownName, match="No quantity or weight is named '0'"):
        run(CASES["toy"])[0]  # type: ignore[index]


def test_a_weight_that_this_block_lacks_is_told_from_a_wrong_name() -> None:
    trace = run(CASES["capstone"])
    for look_up in (lambda n: trace.weights[n], lambda n: trace[n]):
        with pytest.raises(NotRecorded, match=r"This block has no weight mlp\.gate\.weight\. It has input_layernorm"):
            look_up("mlp.gate.weight")
        with pytest.raises(UnknownName, match=f"Did you mean '{WQ}'"):
            look_up("q_proj")


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("o_proj", ["self_attn.o_proj.weight"]),
        ("o_proj.weight", ["self_attn.o_proj.weight"]),
        ("o_prj.weight", ["self_attn.o_proj.weight"]),
        ("mlp.up_proj", ["mlp.up_proj.weight"]),
        ("self_attn.v_proj", ["self_attn.v_proj.weight"]),
        ("resid_pr", ["resid_pre"]),
    ],
)
def test_near_names_are_found_by_their_parts(asked: str, near: list[str]) -> None:
    found = near_names(asked, [*QUANTITIES, *WEIGHTS])
    assert found[: len(near)] == near and len(found) <= 3
    assert near_names("xyz", [*QUANTITIES, *WEIGHTS]) == []


@pytest.mark.parametrize(
    ("target", "experts", "there", "absent"),
    [
        ("q_proj.weight", 0, [WQ], ["router", "experts"]),
        ("router_prob", 0, [], ["router"]),
        ("router_prob", 2, ["'router_probs'"], []),
        ("past_key", 0, [], ["past_k"]),
        ("experts.1.up_proj", 2, ["mlp.experts.1.up_proj.weight"], ["mlp.up_proj.weight"]),
        ("q_norm.weight", 0, ["self_attn.q_norm.weight"], []),
    ],
)
def test_an_edit_of_a_wrong_name_is_told_what_this_run_has(
    target: str, experts: int, there: list[str], absent: list[str]
) -> None:
    with pytest.raises(SpecError) as caught:
        RunSpec(weights="random", d_model=8, h=2, T=3, experts=experts, edits=(Edit(target, (), 1.0),))
    message = caught.value.errors["edits.0"]
    first = f"No quantity or weight is named '{target}'."
    hint = message.removeprefix(first)
    assert hint != message and all(name in hint for name in there) and not any(name in hint for name in absent)


def test_the_recorder_suggests_weights_by_their_parts(ready: Prepared) -> None:
    with pytest.raises(UnknownName, match=f"Did you mean '{WQ}'"):
        capture(ready, Edit("q_proj.weight", (0, 0), 3.0))


# ---------------------------------------------------------------------------------------------------- by an index


@pytest.mark.parametrize("path", ["explicit", "flash"])
@pytest.mark.parametrize("index", [(0, 0, 0), (0,) * 5, (0, 0, 9, 0), (0, 0, -1, 0), (0, 0, 0.5, 0), (0, 0, "x", 0), 3])
def test_an_index_outside_is_said_in_words(path: str, index: Any) -> None:
    trace = run(replace(CASES["capstone"], attention=path))
    for look_up in (trace.value, trace.computed, trace.explain):
        with pytest.raises(IndexError, match=r"probs has shape 2×3×5×5; index .* is outside of it\. Give 4 numbers"):
            look_up("probs", index)


def test_an_index_of_a_weight_and_of_the_mask_are_checked_too() -> None:
    trace = run(CASES["capstone"])
    with pytest.raises(IndexError, match=r"self_attn\.q_proj\.weight has shape 12×12; index \[12, 0\] is outside"):
        trace.value(WQ, (12, 0))
    with pytest.raises(IndexError, match="masked has shape 2×1×5×5; index"):
        trace.value("masked", (0, 0))
    for index in ((np.int64(1), 0, 0, 0), [1, 0, 0, 0]):
        assert trace.value("q", index) == float(trace["q"][1, 0, 0, 0])  # type: ignore[arg-type]


# -------------------------------------------------------------------------------------------- arguments of record


WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "text for an edit": (
        {"edits": ["probs[0,0,1,0]=.5"]}, TypeError,
        r"edits holds 'probs\[0,0,1,0\]=.5', a str; it takes a list of Edit, for example Edit\('probs'",
    ),
    "text for edits": ({"edits": "probs"}, TypeError, "edits is 'probs', a str; it takes a list of Edit"),
    "a mapping": ({"edits": {"probs": 1}}, TypeError, "a dict; it takes a list of Edit"),
    "a number": ({"switches": [5]}, TypeError, "switches holds '5', an int; it takes a list of names, for example"),
    "a name alone": ({"switches": "no_mask"}, TypeError, "switches is 'no_mask', a str; it takes a list of names"),
    "no such head": ({"switches": ["only_head:8"]}, SwitchError, "only_head: there is no head 8. Heads go from 0 to 2"),
    "a negative head": ({"switches": ["without_head:-1"]}, SwitchError, "without_head: there is no head -1"),
    "no temperature": ({"switches": ["temperature:0"]}, SwitchError, "temperature = 0 is out of range"),
    "no expert": ({"switches": ["expert:0"]}, CaptureError, "which the switch expert replaces"),
    "numpy": ({"hidden_states": np.ones((1, 2, 12))}, TypeError,
              r"hidden_states is a ndarray; record takes a torch.Tensor \[B, T, D\]. Make one with torch.as_tensor"),
    "numpy tables": ({"position_embeddings": (np.ones(2), np.ones(2))}, TypeError,
                     r"position_embeddings is a tuple of a ndarray, a ndarray; record takes the pair \(cos, sin\)"),
    "no pair": ({"position_embeddings": (torch.ones(2),)}, TypeError, "position_embeddings is a tuple of a Tensor;"),
    "no tables": ({"position_embeddings": None}, TypeError, "position_embeddings is a NoneType; record takes the pair"),
    "numpy cache": ({"past_key_value": np.ones((2, 2))}, TypeError, r"record takes the pair \(K, V\) of torch.Tensor"),
    "a listed mask": ({"attention_mask": [[1, 1]]}, TypeError, r"attention_mask is a list; .* \[B, P \+ T\]"),
    "a function": ({"block": print}, TypeError, "block is a builtin_function_or_method; record takes an nn.Module"),
}  # fmt: skip


@pytest.mark.parametrize("which", WRONG)
def test_an_argument_of_another_kind_is_refused_in_a_sentence(which: str, ready: Prepared) -> None:
    more, kind, message = WRONG[which]
    arguments = {
        "block": ready.block, "hidden_states": ready.hidden_states, "position_embeddings": ready.position_embeddings,
    } | more  # fmt: skip
    with pytest.raises(kind, match=message) as caught:
        record(**arguments)
    assert str(caught.value).endswith(".")


def test_a_single_edit_is_a_list_of_one(ready: Prepared) -> None:
    edit = Edit("q", (0, 0, 0, 0), 2.5)
    trace = record(ready.block, ready.hidden_states, ready.position_embeddings, edits=edit)
    assert trace["q"][0, 0, 0, 0] == 2.5 and trace.edited == ("q",)


def test_run_asks_for_a_spec() -> None:
    with pytest.raises(TypeError, match=r"run takes a RunSpec, not \"\{'T': 3\}\". Make one, for example run\(RunSpec"):
        run({"T": 3})  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------ edited, and in one line


def test_edited_weights_are_among_what_was_edited() -> None:
    spec = replace(CASES["capstone"], edits=(Edit(WQ, (0, 0), 3.0), Edit("v", (0, 0, 0, 0), 1.0)))
    trace, plain = run(spec), run(CASES["capstone"])
    assert trace.edited == ("v", WQ) and not np.array_equal(trace["q"], plain["q"])
    assert answers.trace(spec)["edited"] == ["v", WQ] and answers.trace(CASES["capstone"])["edited"] == []
    assert f"Edited: v, {WQ}." in trace._repr_html_()


def test_a_trace_tells_of_itself_in_one_line() -> None:
    assert (
        repr(run(RunSpec())) == "<Trace of a block with B=1, T=2, d_model=2, h=1, h_kv=1, d_h=2, d_ff=2: 26 quantities>"
    )
    edits = (Edit(WQ, (0, 0), 3.0), *(Edit(n, (0, 0, 0), 1.0) for n in ("attn_out", "ffn_out", "concat", "resid_mid")))
    text = repr(run(replace(CASES["cache"], edits=edits)))
    assert "P=" in text and text.endswith("quantities, edited: concat, attn_out, resid_mid, ffn_out and 1 more>")
