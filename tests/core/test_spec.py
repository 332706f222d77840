"""RunSpec: what follows from its fields, and how it keeps and names its edits."""

from __future__ import annotations

import math
import re
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from explorer import PRESETS, Edit, RunSpec, run, sources
from explorer.spec import default_d_ff
from tests.core.cases import CASES
from tests.small_checkpoint import write_checkpoint


def test_the_default_is_the_toy() -> None:
    spec = RunSpec()
    assert (spec.B, spec.T, spec.d_model, spec.h, spec.ffn_width, spec.weights) == (1, 2, 2, 1, 2, "toy")
    assert spec.step == math.pi / 2 and not spec.normalizes_heads
    assert spec == PRESETS["toy"] and spec.given() == {}


def test_presets_are_the_sizes_of_the_lesson() -> None:
    assert list(PRESETS) == ["toy", "capstone", "gqa", "minimind3"]
    capstone, minimind3 = PRESETS["capstone"], PRESETS["minimind3"]
    assert (capstone.B, capstone.T, capstone.d_model, capstone.h, capstone.head_dim) == (2, 5, 12, 3, 4)
    assert capstone.shape("q") == (2, 3, 5, 4) and capstone.shape("scores")[2:] == (5, 5)
    assert PRESETS["gqa"].kv_heads < PRESETS["gqa"].h
    assert minimind3.shape("q") == (1, 8, 64, 96) and minimind3.shape("k") == (1, 4, 64, 96)
    assert minimind3.shape("gate") == (1, 64, 2432) and minimind3.normalizes_heads
    for spec in PRESETS.values():
        assert spec.explicit


def test_widths_that_follow_from_others() -> None:
    assert default_d_ff(768, "random") == 2432 == math.ceil(768 * math.pi / 64) * 64
    assert default_d_ff(12, "random") == 24 and default_d_ff(2, "toy") == 2
    spec = RunSpec(d_model=12, h=3, weights="random")
    assert (spec.kv_heads, spec.head_dim, spec.ffn_width, spec.step) == (3, 4, 24, 1.0)
    assert RunSpec(d_model=12, h=5, d_h=6, weights="random").sizes["C"] == 30


def test_frozen_and_hashable() -> None:
    spec = RunSpec(edits=[Edit("resid_post", (), np.ones((1, 2, 2)))], switches=["no_mask"], padding=[1])
    with pytest.raises(FrozenInstanceError):
        spec.T = 3  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        spec.edits[0].value = 3  # type: ignore[misc]
    assert hash(spec) == hash(replace(spec)) and len({spec, replace(spec), RunSpec()}) == 2
    assert spec.edits[0].value == (((1.0, 1.0), (1.0, 1.0)),)
    assert isinstance(spec.padding, tuple) and isinstance(spec.switches, tuple)


def test_given_and_back() -> None:
    for spec in [*PRESETS.values(), *CASES.values()]:
        assert RunSpec(**spec.given()) == spec


@pytest.mark.parametrize("case", CASES)
def test_declared_shapes_are_the_real_ones(case: str) -> None:
    spec, trace = CASES[case], run(CASES[case])
    for name in trace.names:
        assert spec.shape(name) == trace[name].shape == trace.shape(name), name
    for name, weight in trace.weights.items():
        assert spec.shape(name) == weight.shape, name


def test_with_edit_replaces_an_edit_of_the_same_cells() -> None:
    first, second, other = (
        Edit("q", (0, 0, 0, 0), 1.0), Edit("q", (0, 0, 0, 0), 2.0), Edit("q", (0, 0, 0, 1), 3.0),
    )  # fmt: skip
    spec = RunSpec().with_edit(first).with_edit(other)
    assert spec.edits == (first, other)
    assert spec.with_edit(second).edits == (other, second)
    assert spec.with_edit(second).unedited() == RunSpec()


def test_edits_read_arrays_and_label_themselves() -> None:
    index = tuple(np.argwhere(np.eye(2))[1])
    assert Edit("self_attn.q_proj.weight", index, np.float32(0.5)) == Edit("self_attn.q_proj.weight", (1, 1), 0.5)
    assert all(type(i) is int for i in Edit("q", np.array([0, 0, 1, 1])).index)
    assert Edit("ffn_out", (), torch.ones(1, 2, 2)).value == (((1.0, 1.0), (1.0, 1.0)),)
    assert Edit("resid_pre", (0, 0, 1), 2).label() == "resid_pre[0, 0, 1] = 2"
    assert Edit("attn_out", (0, None, 1), 0.125).label() == "attn_out[0, :, 1] = 0.125"
    assert Edit("attn_out", (), [[[1, 2], [3, 4]]]).label() == "attn_out = given values"


def test_what_a_checkpoint_takes_over_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sources, "OFFERS", {})
    dictated = sources.offer("small", write_checkpoint(tmp_path / "small")).fields
    told = re.search(r"A checkpoint has its own (.*?):", RunSpec.__doc__ or "", re.DOTALL)
    assert told and re.findall(r"\w+", told[1].replace(" and ", " ")) == list(dictated)
