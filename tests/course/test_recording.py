"""The explorer's recorder, ledger and explanations work on the course's block as they do on MiniMind's."""

from __future__ import annotations

import numpy as np
import torch

from explorer.capture import record
from explorer.course.transformer_model import TransformerBlock, TransformerConfig, rope_tables
from explorer.spec import Edit

CONFIG = TransformerConfig()  # the capstone's sizes: D = 12, H = 3
GIVEN = ("resid_pre", "rope_cos", "rope_sin")


def stream() -> torch.Tensor:
    return torch.randn(2, 5, 12, generator=torch.Generator().manual_seed(3))


def block() -> TransformerBlock:
    torch.manual_seed(0)
    return TransformerBlock(CONFIG).eval()


def test_every_tap_is_recorded_and_the_ledger_agrees() -> None:
    trace = record(block(), stream(), rope_tables(CONFIG, 5))
    assert trace["q"].shape == (2, 3, 5, 4)
    assert trace["probs"].shape == (2, 3, 5, 5)
    assert trace["concat"].shape == trace["resid_post"].shape == (2, 5, 12)
    assert all(row.agrees for row in trace.ledger())
    assert {row.name for row in trace.ledger()} >= {"scores", "hidden", "resid_mid", "resid_post"}


def test_every_quantity_explains_its_cells() -> None:
    trace = record(block(), stream(), rope_tables(CONFIG, 5))
    for name in trace.names:
        if name in GIVEN:
            continue
        for index in ((0,) * trace[name].ndim, tuple(length - 1 for length in trace[name].shape)):
            explained = trace.explain(name, index).value(trace.value)
            np.testing.assert_allclose(explained, trace[name][index], rtol=1e-5, atol=1e-6, err_msg=name)


def test_edits_of_values_and_weights_flow_on() -> None:
    plain = record(block(), stream(), rope_tables(CONFIG, 5))
    edits = (Edit("probs", (0, 0, 1, 0), 1.0), Edit("self_attn.q_proj.weight", (0, 1), 0.5))
    trace = record(block(), stream(), rope_tables(CONFIG, 5), edits=edits)
    assert trace["probs"][0, 0, 1, 0] == 1.0
    assert not np.array_equal(trace["q"], plain["q"])
    assert not np.array_equal(trace["resid_post"], plain["resid_post"])
    assert np.array_equal(trace["attn_norm"], plain["attn_norm"])
