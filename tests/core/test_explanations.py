"""What cannot be explained says so; ties, edited choices and other activations are explained as they ran."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from explorer import Edit, RunSpec, run
from explorer.quantities import UnknownName
from tests.core.arithmetic import evaluate
from tests.core.cases import CASES


def test_what_cannot_be_explained_says_so() -> None:
    trace = run(CASES["capstone"])
    with pytest.raises(ValueError, match="resid_pre is given to the block; nothing in the block computes it"):
        trace.explain("resid_pre", (0, 0, 0))
    with pytest.raises(ValueError, match=r"self_attn\.q_proj\.weight is a weight: it was learned"):
        trace.explain("self_attn.q_proj.weight", (0, 0))
    with pytest.raises(UnknownName, match=r"named 'prob'\. Did you mean 'probs'"):
        trace.explain("prob", (0, 0, 0, 0))
    for index in ((0, 0, 0), (0, 0, 0, -1), (0, 3, 0, 0), ()):
        with pytest.raises(IndexError, match=r"probs has shape 2×3×5×5; index .* is outside of it\. Give 4 numbers"):
            trace.explain("probs", index)


def test_ties_of_experts_are_explained_as_they_were_taken() -> None:
    spec = replace(CASES["moe_two"], edits=[Edit("router_probs", (), 0.25)])
    trace = run(spec)
    for index in np.ndindex(*trace.shape("expert_index")):
        assert trace.explain("expert_index", index).value(trace.value) == trace["expert_index"][index]


def test_an_edited_choice_leaves_the_explanation_of_the_choice() -> None:
    plain = run(CASES["moe_two"])
    second = float(plain["expert_index"][0, 0, 1])
    trace = run(replace(CASES["moe_two"], edits=[Edit("expert_index", (0, 0, 0), second)]))
    for slot in range(2):
        assert trace.explain("expert_index", (0, 0, slot)).value(trace.value) == plain["expert_index"][0, 0, slot]
    assert trace.explain("expert_weight", (0, 0, 0)).value(trace.value) == pytest.approx(0.5)


def test_explaining_a_flash_run_computes_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = run(RunSpec(T=300, d_model=16, h=2, weights="random", attention="flash"))
    rows: list[tuple[Any, ...]] = []
    real = trace.rows
    monkeypatch.setattr(trace, "rows", lambda *a: rows.append(a) or real(*a))
    for j in range(4):
        expression = trace.explain("heads", (0, 1, 10, j))
        assert len(list(expression.refs())) == 2 * 11
        assert expression.value(trace.value) == pytest.approx(float(trace["heads"][0, 1, 10, j]), rel=1e-4, abs=1e-6)
    trace.explain("probs", (0, 1, 10, 3)).value(trace.value)
    assert len(rows) <= 3 and "probs" not in trace._arrays


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_other_activations_are_explained_or_refused(activation: str) -> None:
    from explorer.capture import record
    from explorer.model.block import MiniMindBlock
    from explorer.model.config import MiniMindConfig

    torch.manual_seed(0)
    config = MiniMindConfig(hidden_size=8, num_attention_heads=2, num_key_value_heads=2, hidden_act=activation)
    tables = torch.ones(3, 4), torch.zeros(3, 4)
    trace = record(MiniMindBlock(config).eval(), torch.randn(1, 3, 8), tables)
    if activation == "gelu":
        with pytest.raises(ValueError, match="gelu is not taken apart here; silu and relu are"):
            trace.explain("hidden", (0, 0, 0))
        return
    for n in range(20):
        text = trace.explain("hidden", (0, 1, n)).substituted(trace.value)
        assert evaluate(text) == pytest.approx(float(trace["hidden"][0, 1, n]), rel=1e-6)
