"""The toy of the course: its numbers, and that F is computed and not set."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from explorer import Edit, RunSpec, run, toy
from tests import toy_reference

ROOT2 = 2**0.5
LESSON = {
    "resid_pre": [[1, 1], [1, -1]],
    "attn_norm": [[1, 1], [1, -1]],
    "q": [[1, 1], [1, -1]],
    "k_norm": [[1, 1], [1, -1]],
    "v": [[1, 1], [1, -1]],
    "q_rot": [[1, 1], [1, 1]],
    "k_rot": [[1, 1], [1, 1]],
    "scores": [[ROOT2, ROOT2], [ROOT2, ROOT2]],
    "masked_scores": [[ROOT2, -np.inf], [ROOT2, ROOT2]],
    "probs": [[1, 0], [0.5, 0.5]],
    "heads": [[1, 1], [1, 0]],
    "attn_out": [[1, 1], [1, 0]],
    "resid_mid": [[2, 2], [2, -1]],
    "ffn_out": [[0.1, -0.2], [0.3, 0.1]],
    "resid_post": [[2.1, 1.8], [2.3, -0.9]],
}


@pytest.mark.parametrize("name", LESSON)
def test_the_lessons_numbers(name: str) -> None:
    trace = run(RunSpec())
    np.testing.assert_allclose(trace[name].reshape(2, 2), LESSON[name], rtol=2e-6, atol=2e-6)
    assert trace.edited == ()


def test_the_numbers_hold_with_per_head_norms_too() -> None:
    """Rows of the toy have root mean square 1, so a norm with scale 1 leaves them as they are."""
    trace = run(RunSpec(qk_norm=True))
    assert trace.qk_norm and trace.weights["self_attn.q_norm.weight"].tolist() == [1, 1]
    np.testing.assert_allclose(trace["resid_post"][0], LESSON["resid_post"], atol=1e-5)


def test_weights_are_the_identity_but_for_the_one_that_is_solved() -> None:
    weights = run(RunSpec()).weights
    for name, weight in weights.items():
        if name != "mlp.down_proj.weight":
            np.testing.assert_array_equal(weight, np.eye(2) if weight.ndim == 2 else np.ones(2))
    np.testing.assert_allclose(weights["mlp.down_proj.weight"].T, toy_reference.w_down(), rtol=1e-6)


def test_f_is_computed_by_the_weights() -> None:
    """In float64 from the run's own weights and its own Y; another X gives the F of a real SwiGLU."""
    for edit in ((0, 0, 1), (0, 1, 0), (0, 1, 1)):
        trace = run(RunSpec(edits=[Edit("resid_pre", edit, 2.0)]))
        y = trace["resid_mid"][0].astype(np.float64)
        w = {n: trace.weights[f"mlp.{n}_proj.weight"].astype(np.float64) for n in ("gate", "up", "down")}
        normed = y / np.sqrt((y**2).mean(-1, keepdims=True) + 1e-6)
        gate = normed @ w["gate"].T
        f = (gate / (1 + np.exp(-gate)) * (normed @ w["up"].T)) @ w["down"].T
        np.testing.assert_allclose(trace["ffn_out"][0], f, rtol=1e-5, atol=1e-6)
        assert np.abs(trace["ffn_out"][0] - toy_reference.SUPPOSED_F).max() > 1e-3
        assert trace.edited == ("resid_pre",)


def test_the_supposed_f_can_be_pinned() -> None:
    pinned = Edit("ffn_out", (), toy_reference.SUPPOSED_F[None])
    trace = run(RunSpec(edits=[Edit("resid_pre", (0, 0, 1), 2.0), pinned]))
    np.testing.assert_allclose(trace["ffn_out"][0], toy_reference.SUPPOSED_F, rtol=1e-6)
    assert np.abs(trace.before("ffn_out")[0] - toy_reference.SUPPOSED_F).max() > 1e-3


@pytest.mark.parametrize("value", [2.0, -0.5, 0.0, 100.0])
@pytest.mark.parametrize("index", [(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1)])
def test_any_x_gives_what_the_independent_calculation_gives(index: tuple[int, int, int], value: float) -> None:
    trace, expected = run(RunSpec(edits=[Edit("resid_pre", index, value)])), toy_reference.X.copy()
    expected[index[1:]] = value
    for name, right in toy_reference.toy(expected).items():
        finite = np.isfinite(right)
        np.testing.assert_array_equal(trace[name][~finite], right[~finite])
        np.testing.assert_allclose(trace[name][finite], right[finite], rtol=1e-5, atol=2e-5, err_msg=name)


@pytest.mark.parametrize("name", ["attn_norm", "q", "k", "v", "q_rot", "k_rot", "scores", "probs", "heads", "attn_out"])
def test_any_edited_cell_gives_what_the_independent_calculation_gives(name: str) -> None:
    shape = run(RunSpec())[name].shape
    for index in np.ndindex(*shape):
        trace = run(RunSpec(edits=[Edit(name, index, 0.75)]))
        for other, right in toy_reference.toy(put={name: {index: 0.75}}).items():
            if other not in ("q_norm", "k_norm"):
                np.testing.assert_allclose(trace[other], right, rtol=1e-5, atol=1e-5, err_msg=f"{other} of {index}")


@pytest.mark.parametrize("eps", [1e-12, 1e-6, 1e-3, 1.0])
def test_f_is_hit_for_every_epsilon(eps: float) -> None:
    trace = run(RunSpec(norm_eps=eps))
    np.testing.assert_allclose(trace["ffn_out"][0], toy_reference.SUPPOSED_F, rtol=1e-5, atol=1e-6)
    w = toy.weights(eps)["mlp.down_proj.weight"]
    assert w.shape == (2, 2) and w.dtype == np.float64 and np.isfinite(w).all()


def test_more_tokens_and_rows_repeat_the_two() -> None:
    trace = run(RunSpec(B=3, T=5))
    assert trace["resid_pre"].shape == (3, 5, 2)
    for row in range(3):
        np.testing.assert_array_equal(trace["resid_pre"][row], toy_reference.X[[0, 1, 0, 1, 0]])
    np.testing.assert_allclose(trace["resid_post"][2, :2], LESSON["resid_post"], rtol=2e-6, atol=2e-6)


def test_the_toy_can_be_decoded_with_a_cache() -> None:
    trace = run(RunSpec(T=1, past=1))
    np.testing.assert_allclose(trace["resid_post"][0, 0], LESSON["resid_post"][1], rtol=2e-6, atol=2e-6)
    np.testing.assert_allclose(trace["past_k"][0, 0], [[1, 1]], atol=1e-6)


def test_another_angle_changes_the_weight_of_the_first_token() -> None:
    straight = run(replace(RunSpec(), angle_step=0.0))["probs"][0, 0, 1]
    expected = np.exp([0, ROOT2]) / np.exp([0, ROOT2]).sum()
    np.testing.assert_allclose(straight, expected, rtol=1e-5)
