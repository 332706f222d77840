"""The shape ledger: a row a quantity, and an error in words where a shape is not the declared one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from explorer import Edit, RunSpec, Trace, run
from explorer.capture import ShapeMismatch, record
from explorer.capture.ledger import check_shapes
from explorer.capture.recorder import Recorder
from explorer.quantities import QUANTITIES
from explorer.run import prepare
from tests.core.cases import CASES


@pytest.mark.parametrize("case", CASES)
def test_a_row_a_quantity_in_the_blocks_order(case: str) -> None:
    trace = run(CASES[case])
    rows = trace.ledger()
    assert [row.name for row in rows] == list(trace.names)
    passed_on = () if trace.qk_norm else ("q_norm", "k_norm")
    for row in rows:
        quantity = QUANTITIES[row.name]
        assert (row.stage, row.axes, row.symbol, row.title) == (
            quantity.stage, quantity.axes, quantity.latex, quantity.title,
        )  # fmt: skip
        assert row.agrees and row.shape == trace[row.name].shape
        assert row.bytes == trace.tensor(row.name).nbytes and row.flops == (
            0 if row.name in passed_on else quantity.flops(trace.sizes)
        )


def test_the_capstones_ledger_is_the_lessons() -> None:
    rows = {row.name: row for row in run(CASES["capstone"]).ledger()}
    assert (rows["q"].symbolic, rows["q"].shape) == ("B×h×T×d_h", (2, 3, 5, 4))
    assert (rows["scores"].symbolic, rows["scores"].shape) == ("B×h×T_q×T_k", (2, 3, 5, 5))
    assert (rows["concat"].symbolic, rows["concat"].shape) == ("B×T×h·d_h", (2, 5, 12))
    assert (rows["resid_post"].symbolic, rows["resid_post"].shape) == ("B×T×d_model", (2, 5, 12))
    assert rows["scores"].flops == 2 * 2 * 3 * 5 * 5 * 4 and rows["scores"].bytes == 4 * 2 * 3 * 5 * 5
    assert rows["scores"].dtype == "float32"


def test_only_the_key_and_value_axis_grows_with_a_cache() -> None:
    short, long = (
        {row.name: row.shape for row in run(replace(CASES["grouped"], past=p)).ledger()} for p in (1, 6)
    )  # fmt: skip
    grown = {name for name in short if short[name] != long[name]}
    assert grown == {"past_k", "past_v", "present_k", "present_v", "scores", "masked_scores", "probs"}


def test_notes_say_what_is_special() -> None:
    spec = replace(CASES["capstone"], attention="flash", edits=[Edit("v", (0, 0, 0, 0), 1.0)])
    notes = {row.name: row.note for row in run(spec).ledger()}
    assert notes["v"] == "edited" and notes["probs"] == "computed on demand"
    assert notes["present_k"] == "same memory as k_rot" and notes["q"] == ""
    notes = {row.name: row.note for row in run(CASES["cache"]).ledger()}
    assert notes["present_k"] == ""


def test_bytes_follow_the_dtype() -> None:
    full, half = run(RunSpec()).ledger(), run(RunSpec(dtype="float16")).ledger()
    for wide, narrow in zip(full, half, strict=True):
        table = wide.name.startswith("rope_")  # tables stay in float32
        assert narrow.bytes * (1 if table else 2) == wide.bytes
        assert narrow.dtype == ("float32" if table else "float16")
    index = {row.name: row for row in run(CASES["moe"]).ledger()}["expert_index"]
    assert (index.dtype, index.bytes) == ("int64", 8 * 2 * 4)


# --------------------------------------------------------------------------------------------- a wrong shape


def test_a_wrong_shape_names_both_shapes_in_words() -> None:
    sizes = CASES["capstone"].sizes
    check_shapes({"probs": (2, 3, 5, 5)}, sizes)
    with pytest.raises(ShapeMismatch) as caught:
        check_shapes({"probs": (2, 3, 5, 4)}, sizes)
    assert str(caught.value) == "probs is declared B×h×T_q×T_k = 2×3×5×5, but 2×3×5×4 was observed."
    with pytest.raises(ShapeMismatch, match=r"A tap is named 'prob', which explorer/quantities\.py does not declare"):
        check_shapes({"prob": (1,)}, sizes)


def recorded_with(tap: str, crop: tuple[slice | int, ...]) -> Trace:
    """The grouped block's values, as if `tap` had shown a cropped tensor."""
    ready = prepare(CASES["grouped"])

    class Cropping(Recorder):
        def _hook(self, name: str):  # type: ignore[no-untyped-def]
            real = super()._hook(name)
            if name != tap:
                return real

            def hook(module: nn.Module, args: object, output: torch.Tensor) -> None:
                real(module, args, output[crop])

            return hook

    return Cropping(ready.block, (), (), True).run(
        ready.hidden_states, ready.position_embeddings, ready.past_key_value, ready.attention_mask
    )


@pytest.mark.parametrize(
    ("tap", "crop", "message"),
    [
        ("probs", (..., slice(0, 2)), "probs is declared B×h×T_q×T_k = 2×4×4×4, but 2×4×4×2 was observed."),
        ("v", (slice(None), slice(0, 1)), "v is declared B×h_kv×T×d_h = 2×2×4×6, but 2×1×4×6 was observed."),
        ("resid_post", (0,), "resid_post is declared B×T×d_model = 2×4×8, but 4×8 was observed."),
        ("gate", (..., slice(0, 3)), "up is declared B×T×d_ff = 2×4×3, but 2×4×10 was observed."),
        ("q", (0,), "q is declared B×h×T×d_h, which is 4 axes, but 4×4×6 was observed."),
    ],
)
def test_a_wrong_shape_in_a_block_is_an_error_of_the_record(tap: str, crop: tuple[slice, ...], message: str) -> None:
    with pytest.raises(ShapeMismatch) as caught:
        recorded_with(tap, crop)
    assert message in str(caught.value)


def test_fewer_tokens_than_the_spec_prepared_are_a_run_of_their_own() -> None:
    ready = prepare(CASES["grouped"])
    trace = record(ready.block, ready.hidden_states[:, :2], tuple(t[:2] for t in ready.position_embeddings))
    assert trace.sizes["T"] == 2 and np.isfinite(trace["resid_post"]).all()


def test_queries_and_keys_that_no_norm_touches_are_the_same_memory_and_cost_nothing():
    rows = {row.name: row for row in run(RunSpec()).ledger()}
    assert (rows["q_norm"].flops, rows["q_norm"].note) == (0, "same memory as q")
    normed = {row.name: row for row in run(RunSpec(qk_norm=True, weights="random")).ledger()}
    assert normed["k_norm"].flops == 4 * 2 * 2 and normed["k_norm"].note == ""


def test_experts_cost_a_weighted_sum_at_the_end_instead_of_a_projection():
    spec = RunSpec(T=3, d_model=8, h=2, experts=4, experts_per_token=2, weights="random")
    rows = {row.name: row for row in run(spec).ledger()}
    assert rows["ffn_out"].flops == 2 * 3 * 2 * 8
    assert rows["expert_out"].flops == 2 * 3 * 2 * 8 * spec.ffn_width
