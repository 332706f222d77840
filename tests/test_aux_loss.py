"""The auxiliary loss shown on the page is the one that the model adds in training."""

import pytest
import torch

from explorer import RunSpec, run
from explorer.run import prepare


@pytest.mark.parametrize(("experts", "k"), [(4, 1), (4, 2), (3, 3)])
def test_it_is_what_the_block_computes_in_training(experts, k):
    spec = RunSpec(B=2, T=6, d_model=16, h=4, experts=experts, experts_per_token=k, weights="random", seed=k)
    ready = prepare(spec)
    ready.block.train()
    try:
        with torch.no_grad():
            ready.block(ready.hidden_states, ready.position_embeddings)
        expected = float(ready.block.mlp.aux_loss)
    finally:
        ready.block.eval()
    assert run(spec).aux_loss == pytest.approx(expected, rel=1e-6)
    assert expected > 0


def test_a_dense_block_has_none():
    assert run(RunSpec()).aux_loss is None
