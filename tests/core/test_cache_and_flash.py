"""A run with a cache equals the end of the full run, and the flash path equals the explicit one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from explorer import Edit, RunSpec, run
from explorer.limits import LIMITS
from explorer.run import finished
from tests.core.cases import CASES, assert_agree, assert_close, reference

# ------------------------------------------------------------------------------------------------ cached = full run


@pytest.mark.parametrize("past", [1, 3, 5])
@pytest.mark.parametrize("case", ["capstone", "grouped", "moe_two"])
def test_cached_run_equals_the_end_of_the_full_run(case: str, past: int) -> None:
    full_spec = replace(CASES[case], T=6)
    full, cached = run(full_spec), run(replace(full_spec, T=6 - past, past=past))
    for name in cached.names:
        axes = cached.axes(name)
        if "P" in axes:
            expected = full["k_rot" if name == "past_k" else "present_v"][:, :, :past]
        elif "Tk" in axes and "Tq" not in axes:
            expected = full[name]
        else:
            token_axis = next(n for n, letter in enumerate(axes) if letter in ("T", "Tq"))
            expected = np.moveaxis(np.moveaxis(full[name], token_axis, 0)[past:], 0, token_axis)
        assert_close(cached[name], expected.astype(np.float64), 1e-5, name)


@pytest.mark.parametrize(
    "change",
    [
        {"edits": [Edit("self_attn.k_proj.weight", (0, 1), 2.0), Edit("self_attn.v_proj.weight", (), 0.5)]},
        {"edits": [Edit("input_layernorm.weight", (None,), 3.0), Edit("self_attn.k_norm.weight", (2,), -1.0)]},
        {"switches": ["no_rope"]},
        {"switches": ["no_qk_norm", "no_rope"]},
    ],
    ids=["projections", "norms", "no_rope", "no_norm"],
)
def test_cached_run_equals_the_end_of_the_full_run_when_the_model_is_changed(change: dict[str, Any]) -> None:
    spec = replace(CASES["grouped"], T=6, **change)
    full, cached = run(spec), run(replace(spec, T=2, past=4))
    assert_close(cached["present_k"], full["present_k"].astype(np.float64), 1e-5)
    assert_close(cached["resid_post"], full["resid_post"][:, 4:].astype(np.float64), 1e-5)


def test_cached_run_with_padding_equals_the_end_of_the_full_run() -> None:
    full_spec = replace(CASES["padding"], T=6)
    full, cached = run(full_spec), run(replace(full_spec, T=2, past=4))
    assert_close(cached["resid_post"], full["resid_post"][:, 4:].astype(np.float64), 1e-5)


def test_a_longer_run_leaves_earlier_tokens_as_they_were() -> None:
    short, long = run(replace(CASES["capstone"], T=3)), run(replace(CASES["capstone"], T=5))
    assert_close(long["resid_post"][:, :3], short["resid_post"].astype(np.float64), 1e-6)


def test_the_cache_needs_no_scores_of_its_own() -> None:
    """A padded cache would otherwise cost past² scores that no bound on T has counted."""
    spec = RunSpec(B=8, T=1, past=1000, d_model=64, h=32, d_h=2, weights="random", padding=(1,) * 8)
    before = torch.zeros(1)  # the largest tensor made on the way, seen through the matmuls' results
    largest = [0]
    real = torch.Tensor.__matmul__

    def noted(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        result = real(left, right)
        largest[0] = max(largest[0], result.nbytes)
        return result

    torch.Tensor.__matmul__ = noted  # type: ignore[method-assign, assignment]
    try:
        trace = run(spec)
    finally:
        torch.Tensor.__matmul__ = real  # type: ignore[method-assign]
    assert before.numel() and 0 < largest[0] <= 4 * 8 * 32 * 1001
    assert trace["probs"].shape == (8, 32, 1, 1001)


# ------------------------------------------------------------------------------------------------ the flash path


@pytest.mark.parametrize("case", ["toy", "capstone", "grouped", "moe"])
def test_flash_equals_explicit(case: str) -> None:
    explicit, flash = (run(replace(CASES[case], attention=path)) for path in ("explicit", "flash"))
    assert explicit.recomputed == set() and flash.recomputed == {"scores", "masked_scores", "probs"}
    assert flash.names == explicit.names
    for name in explicit.names:
        assert_close(flash[name], explicit[name].astype(np.float64), 5e-6, name)


def test_a_tile_of_the_flash_path_equals_the_explicit_path() -> None:
    spec = RunSpec(T=200, d_model=64, h=4, h_kv=2, weights="random")
    explicit, flash = (run(replace(spec, attention=path)) for path in ("explicit", "flash"))
    for name in ("scores", "masked_scores", "probs"):
        for head in range(4):
            tile = flash.rows(name, 0, head, 64, 128)
            assert tile.shape == (64, 200) and tile.dtype == np.float32 and not tile.flags.writeable
            np.testing.assert_allclose(tile, explicit[name][0, head, 64:128], rtol=1e-5, atol=1e-6)
            np.testing.assert_array_equal(explicit.rows(name, 0, head, 64, 128), explicit[name][0, head, 64:128])
            cell = (0, head, 70, 3)
            assert flash.value(name, cell) == pytest.approx(explicit.value(name, cell), rel=1e-5, abs=1e-7)
    assert {row.note for row in flash.ledger() if row.stage in (4, 5)} >= {"computed on demand"}


def test_flash_is_taken_where_the_budget_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = RunSpec(B=2, T=16, d_model=8, h=2, weights="random")
    assert spec.explicit and not run(spec).recomputed
    monkeypatch.setattr(LIMITS, "score_bytes", spec.score_bytes - 1)
    finished.clear()
    assert not spec.explicit and run(spec).recomputed


def test_edits_of_scores_force_the_explicit_path() -> None:
    spec = replace(CASES["capstone"], attention="flash")
    for target in ("scores", "masked_scores", "probs"):
        edited = replace(spec, edits=[Edit(target, (0, 0, 3, 1), 0.25)])
        trace = run(edited)
        assert edited.explicit and not trace.recomputed and trace[target][0, 0, 3, 1] == 0.25
        assert_agree(trace, reference(spec, put={target: {(0, 0, 3, 1): 0.25}}))
        assert not replace(spec, edits=[Edit(target, (0, 0, 3, 1), 0.25, on=False)]).explicit
    for switch in ("no_mask", "no_scale", "uniform_attention", "temperature:2"):
        assert not run(replace(spec, switches=[switch])).recomputed
    assert run(replace(spec, switches=["no_rope"])).recomputed
