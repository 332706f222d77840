"""What the recorder refuses: faulty blocks, values changed in place, edits and shapes that do not fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from explorer import Edit, Trace, run
from explorer.capture import CaptureError, StaleValue, record
from explorer.capture.recorder import hooks_on
from explorer.quantities import UnknownName
from explorer.run import Prepared, prepare
from tests.capture.recording import SOME, capture
from tests.core.cases import CASES

# ------------------------------------------------------------------------------------------------ faults of blocks


class TwoTaps(nn.Module):
    """Like the toy's block as far as the recorder looks, with a fault of choice."""

    def __init__(self, fault: str = "") -> None:
        super().__init__()
        self.fault = fault
        names = ("resid_pre", "q", "k", "scores", "resid_post") + (("nonsense",) if fault == "undeclared" else ())
        self.taps = nn.ModuleDict({name: nn.Identity() for name in names})
        if fault == "double name":
            self.inner = nn.Module()
            self.inner.taps = nn.ModuleDict({"q": nn.Identity()})

    def forward(self, hidden_states: Tensor, position_embeddings: Any) -> Tensor:
        x = self.taps["resid_pre"](hidden_states)
        heads = x[:, None].clone()
        q = self.taps["q"](
            heads[..., :1] if self.fault == "wrong shape" else heads[0] if self.fault == "axes" else heads
        )
        if self.fault == "no k":
            return x
        k = self.taps["k"](heads.clone())
        if self.fault == "fires twice":
            self.taps["q"](q)
        scores = self.taps["scores"](heads @ heads.mT)
        if self.fault == "in place":
            k += 1
        if self.fault == "undeclared":
            self.taps["nonsense"](x)
        if self.fault == "wrong scores":
            scores = self.taps["resid_post"](scores)
        return self.taps["resid_post"](x) if self.fault != "wrong scores" else scores


def faulty(fault: str, *edits: Edit) -> Trace:
    tables = torch.ones(3, 4), torch.zeros(3, 4)
    return record(TwoTaps(fault), torch.arange(12.0).reshape(1, 3, 4), tables, edits=edits)


def test_a_sound_small_block_is_recorded() -> None:
    trace = faulty("")
    assert trace["q"].shape == (1, 1, 3, 4)
    assert trace.sizes["T"] == 3


def test_a_second_firing_is_an_error() -> None:
    with pytest.raises(CaptureError, match="'q' fired twice in one run; a record holds one value"):
        faulty("fires twice")


def test_two_taps_of_one_name_are_an_error() -> None:
    with pytest.raises(CaptureError, match="Two taps are named 'q'"):
        faulty("double name")


def test_a_module_without_taps_is_an_error() -> None:
    how = r'Linear has no taps.*self\.taps = nn\.ModuleDict\(\{"resid_pre": nn\.Identity\(\).*self\.taps\["q"\]\(q\)'
    with pytest.raises(CaptureError, match=how):
        record(nn.Linear(2, 2), torch.ones(1, 1, 2), (torch.ones(1, 2), torch.ones(1, 2)))


def test_a_value_changed_in_place_inside_the_block_is_refused() -> None:
    trace = faulty("in place")
    assert trace["q"].shape == (1, 1, 3, 4)
    with pytest.raises(StaleValue, match=r"k was changed in place after it was captured \(version 0, now 1\)"):
        trace["k"]


def test_a_value_changed_in_place_afterwards_is_refused(ready: Prepared) -> None:
    trace = capture(ready)
    ready.hidden_states[0, 0, 0] = 5
    with pytest.raises(StaleValue, match="Record again"):
        trace["resid_pre"]
    with torch.no_grad():
        ready.block.self_attn.q_proj.weight.mul_(2)
    with pytest.raises(StaleValue, match=r"self_attn\.q_proj\.weight was changed"):
        trace.weights["self_attn.q_proj.weight"]
    assert trace["attn_norm"].shape == (2, 5, 12)


def test_what_was_read_before_the_change_stays(ready: Prepared) -> None:
    trace = capture(ready)
    kept = trace["resid_pre"].copy()
    ready.hidden_states.zero_()
    np.testing.assert_array_equal(trace["resid_pre"], kept)


@pytest.mark.parametrize("case", SOME)
def test_the_model_changes_nothing_in_place_that_a_tap_shows(case: str) -> None:
    trace = run(CASES[case])
    for name in trace.names:
        trace[name]  # would raise StaleValue


# ------------------------------------------------------------------------------------------- edits that do not fit


REFUSED = {
    "outside": (Edit("q", (0, 0, 9, 0), 1.0), r"q has shape \[2, 3, 5, 4\]; index '\[0, 0, 9, 0\]' is outside"),
    "negative": (Edit("q", (0, 0, -1, 0), 1.0), "is outside of it. Give 4 numbers, each below its length, or None"),
    "too few": (Edit("attn_out", (0, 0), 1.0), r"attn_out has shape \[2, 5, 12\]; index '\[0, 0\]' is outside"),
    "no position": (Edit("attn_out", (0, 0, "x"), 1.0), "is outside of it"),
    "weight outside": (Edit("self_attn.q_proj.weight", (12, 0), 1.0), r"has shape \[12, 12\]; index"),
    "wrong shape": (Edit("attn_norm", (), ((1.0, 2.0),)), r"has shape \[2, 5, 12\]; the values given have \[1, 2\]"),
    "many for one": (Edit("attn_norm", (0, 0, 0), (1.0, 2.0)), "the values given have .2.. Give one number"),
    "ragged": (Edit("attn_norm", (), ((1.0, 2.0), (3.0,))), "is neither a number nor numbers of one shape"),
    "text": (Edit("attn_norm", (0, 0, 0), "much"), "attn_norm: 'much' is neither a number"),
    "nothing": (Edit("attn_norm", (0, 0, 0), None), "attn_norm: 'None' is neither a number"),
    "too large": (Edit("attn_norm", (0, 0, 0), 1e39), r"float32, which holds numbers up to 3.40282e\+38\. Set"),
    "cache": (Edit("past_k", (), 0.0), "Nothing in this block computes 'past_k' in this run"),
    "router": (Edit("router_probs", (), 0.0), "Nothing in this block computes 'router_probs'"),
}  # fmt: skip


@pytest.mark.parametrize("which", REFUSED)
def test_an_edit_that_does_not_fit_is_refused_and_leaves_no_hook(which: str, ready: Prepared) -> None:
    edit, message = REFUSED[which]
    with pytest.raises(CaptureError, match=message):
        capture(ready, edit)
    assert not any(hooks_on(ready.block).values())


def test_numbers_that_the_dtype_does_not_hold_are_refused() -> None:
    ready = prepare(replace(CASES["capstone"], dtype="float16"))
    with pytest.raises(CaptureError, match="attn_out is float16, which holds numbers up to 65504"):
        capture(ready, Edit("attn_out", (0, 0, 0), 70000.0))
    moe = prepare(CASES["moe"])
    with pytest.raises(CaptureError, match=r"expert_index holds whole numbers; '0\.5' is none"):
        capture(moe, Edit("expert_index", (0, 0, 0), 0.5))
    for expert in (7.0, -1.0):
        with pytest.raises(CaptureError, match=f"expert_index: there is no expert {expert:g}; they are 0 to 3"):
            capture(moe, Edit("expert_index", (0, 0, 0), expert))
    assert not any(hooks_on(moe.block).values())


@pytest.mark.parametrize(
    ("wrong", "near"),
    [("prob", "probs"), ("mask_scores", "masked_scores"), ("self_attn.q_prj.weight", "self_attn.q_proj.weight")],
)
def test_an_unknown_name_says_which_are_near_and_which_exist(wrong: str, near: str, ready: Prepared) -> None:
    with pytest.raises(UnknownName) as caught:
        capture(ready, Edit(wrong, (), 0.0))
    message = str(caught.value)
    assert f"named {wrong!r}. Did you mean '{near}'" in message
    assert "Known:" in message and "resid_post" in message and "mlp.down_proj.weight" in message


def test_a_mask_of_the_wrong_shape_is_refused() -> None:
    ready = prepare(CASES["cache_and_padding"])
    with pytest.raises(CaptureError, match=r"attention_mask has shape \(2, 4\); it takes \[B, P \+ T\] = \[2, 7\]"):
        capture(replace(ready, attention_mask=torch.ones(2, 4)))
    with pytest.raises(CaptureError, match=r"hidden_states has shape \(4, 8\); it takes \[B, T, D\]"):
        capture(replace(ready, hidden_states=ready.hidden_states[0]))
