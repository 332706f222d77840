"""Runs that between them take every branch of a block, and the reference's answer to each of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings

from explorer import RunSpec, Trace, run
from tests.core.reference import Block, Settings


def many(examples: int) -> settings:
    """So many examples, the same ones every time, however slow the machine."""
    return settings(
        max_examples=examples, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
    )


_WIDE = RunSpec(B=2, T=5, d_model=12, h=3, weights="random")
_GROUPED = RunSpec(B=2, T=4, d_model=8, h=4, h_kv=2, d_h=6, d_ff=10, weights="random", seed=3)
_MOE = RunSpec(B=2, T=4, d_model=8, h=2, d_ff=6, weights="random", seed=5, experts=4)

CASES: dict[str, RunSpec] = {
    "toy": RunSpec(),
    "capstone": _WIDE,
    "grouped": _GROUPED,
    "one_kv_head": replace(_GROUPED, h_kv=1, qk_norm=False),
    "other_angles": replace(_GROUPED, rope_theta=100.0, angle_step=0.3, norm_eps=1e-2),
    "cache": replace(_GROUPED, past=3),
    "decode": replace(_GROUPED, T=1, past=5),
    "padding": replace(_WIDE, padding=(0, 2)),
    "blind_row": replace(_WIDE, padding=(5, 1)),
    "cache_and_padding": replace(_GROUPED, past=3, padding=(4, 1)),
    "moe": _MOE,
    "moe_two": replace(_MOE, experts_per_token=2),
    "moe_two_raw": replace(_MOE, experts_per_token=2, norm_topk=False, past=2, padding=(1, 0)),
    "toy_cache": RunSpec(T=1, past=1),
}


def settings_of(spec: RunSpec, **changes: Any) -> Settings:
    """The reference's settings for the sizes of `spec`; its edits and switches are for the caller to say."""
    settings = Settings(
        heads=spec.h,
        kv_heads=spec.kv_heads,
        past=spec.past,
        left_pads=spec.padding,
        theta=spec.rope_theta,
        step=spec.step,
        eps=spec.norm_eps,
        head_norms=spec.normalizes_heads,
        experts=spec.experts,
        per_token=spec.experts_per_token,
        renormalise=spec.norm_topk,
    )
    return replace(settings, **changes)


def reference(spec: RunSpec, **changes: Any) -> Block:
    """The reference's run of `spec` without its edits and switches, with `changes` to the settings.

    The weights and the stream of all tokens are read off a run that keeps nothing in a cache.
    """
    plain = run(replace(spec.unedited(), past=0, T=spec.past + spec.T))
    return Block(plain["resid_pre"], plain.weights, settings_of(spec, **changes))


def assert_agree(trace: Trace, expected: Block, rtol: float = 2e-5) -> None:
    """Every quantity that the reference computes: same shape, largest difference `rtol` of the largest magnitude."""
    missing = set(trace.names) - set(expected.values) - {"rope_cos", "rope_sin"}
    assert not missing, missing
    for name, right in expected.values.items():
        assert_close(trace[name], right, rtol, name)


def assert_close(left: np.ndarray, right: np.ndarray, rtol: float = 2e-5, name: str = "") -> None:
    assert left.shape == right.shape, f"{name}: {left.shape} is not {right.shape}"
    finite = np.isfinite(right)
    np.testing.assert_array_equal(left[~finite], right[~finite], err_msg=name)
    scale = max(1.0, float(np.abs(right[finite]).max(initial=0)))
    np.testing.assert_allclose(left[finite], right[finite], rtol=0, atol=rtol * scale, err_msg=name)
