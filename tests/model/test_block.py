from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from torch import Tensor, nn

from explorer.model import MiniMindBlock, MiniMindConfig, RotaryEmbedding
from tests.model.helpers import block_of, close, configs, normal, run_block, small, tiny, watch

ATTENTION = ("q", "k", "v", "q_norm", "k_norm", "q_rot", "k_rot", "present_k", "present_v", "scores", "masked_scores")
ATTENTION += ("probs", "heads", "concat", "attn_out")
DENSE = ("gate", "up", "hidden", "ffn_out")
EXPERTS = ("router_logits", "router_probs", "expert_index", "expert_weight", "expert_gate", "expert_up")
EXPERTS += ("expert_hidden", "expert_out", "ffn_out")
ORDER = {
    False: ("resid_pre", "attn_norm", *ATTENTION, "resid_mid", "ffn_norm", *DENSE, "resid_post"),
    True: ("resid_pre", "attn_norm", *ATTENTION, "resid_mid", "ffn_norm", *EXPERTS, "resid_post"),
}
CASES = [(use_moe, name) for use_moe in (False, True) for name in ORDER[use_moe]]


def tap(block: MiniMindBlock, name: str) -> nn.Module:
    return next(module for path, module in block.named_modules() if path.endswith(f"taps.{name}"))


@pytest.mark.parametrize("use_moe", [False, True], ids=["dense", "experts"])
def test_every_tap_fires_once_in_order(use_moe: bool) -> None:
    config = tiny(use_moe=use_moe)
    block, fired = block_of(config), []
    for path, module in block.named_modules():
        if "taps." in path:
            name = path.rsplit(".", 1)[1]
            module.register_forward_hook(lambda _m, _i, _o, name=name: fired.append(name))
    run_block(block, config, normal(2, 3, 24))
    assert tuple(fired) == ORDER[use_moe]


@small
@given(config=configs())
def test_the_residual_stream_is_the_sum_of_what_was_added(config: MiniMindConfig) -> None:
    block, x = block_of(config), normal(2, 4, config.hidden_size)
    seen = watch(block)
    out, _ = run_block(block, config, x)
    assert torch.equal(seen["resid_pre"], x)
    assert torch.equal(seen["resid_mid"], x + seen["attn_out"])
    assert torch.equal(out, seen["resid_mid"] + seen["ffn_out"])


@pytest.mark.parametrize(("use_moe", "name"), CASES)
def test_a_tap_is_not_a_dead_end(use_moe: bool, name: str) -> None:
    """Replacing any tap's value changes the output; replacing it with an equal one changes not a bit."""
    config = tiny(use_moe=use_moe, num_experts_per_tok=2, flash_attn=False)
    block, x = block_of(config), normal(1, 4, 24)
    before, _ = run_block(block, config, x)
    change = {"same": lambda value: value.clone(), "zero": torch.zeros_like}
    change["zero"] = (lambda value: value.flip(-1)) if name == "expert_index" else change["zero"]
    for kind in ("same", "zero"):
        handle = tap(block, name).register_forward_hook(lambda _m, _i, value, kind=kind: change[kind](value))
        after, _ = run_block(block, config, x)
        handle.remove()
        if kind == "same":
            assert torch.equal(after, before)
        elif name == "expert_index":
            close(after, before)  # the same two experts in the other order
        else:
            assert (after - before).abs().max() > 1e-4


@pytest.mark.parametrize("use_moe", [False, True], ids=["dense", "experts"])
@pytest.mark.parametrize("padded", [False, True], ids=["whole", "padded"])
def test_nothing_that_a_tap_shows_is_changed_later(use_moe: bool, padded: bool) -> None:
    config = tiny(use_moe=use_moe)
    block, x = block_of(config), normal(2, 4, 24)
    shown: list[tuple[str, Tensor, int, Tensor]] = []
    for path, module in block.named_modules():
        if "taps." in path:
            module.register_forward_hook(
                lambda _m, _i, value, path=path: shown.append((path, value, value._version, value.clone()))
            )
    mask = torch.tensor([[0, 0, 1, 1], [1, 1, 1, 1]]) if padded else None
    run_block(block, config, x, attention_mask=mask, use_cache=True)
    assert len(shown) == len(ORDER[use_moe])
    for path, value, version, copy in shown:
        assert value._version == version, path
        assert torch.equal(value, copy), path


def test_the_future_is_never_seen() -> None:
    config = tiny()
    block, x = block_of(config), normal(1, 5, 24)
    changed = x.clone()
    changed[:, 3:] += 1
    out, other = run_block(block, config, x)[0], run_block(block, config, changed)[0]
    assert torch.equal(out[:, :3], other[:, :3])
    assert not torch.equal(out[:, 3:], other[:, 3:])


def test_parameter_names_are_minimind_s() -> None:
    attention = [f"self_attn.{name}_proj.weight" for name in "qkvo"] + [f"self_attn.{n}_norm.weight" for n in "qk"]
    norms = ["input_layernorm.weight", "post_attention_layernorm.weight"]
    projections = [f"{name}_proj.weight" for name in ("gate", "up", "down")]
    dense = [f"mlp.{name}" for name in projections]
    experts = ["mlp.gate.weight", *(f"mlp.experts.{e}.{name}" for e in range(4) for name in projections)]
    assert set(MiniMindBlock(tiny()).state_dict()) == {*attention, *norms, *dense}
    assert set(MiniMindBlock(tiny(use_moe=True)).state_dict()) == {*attention, *norms, *experts}


def test_a_block_that_only_adds_nothing_returns_its_input() -> None:
    config = tiny()
    block, x = block_of(config), normal(1, 3, 24)
    with torch.no_grad():
        block.self_attn.o_proj.weight.zero_()
        block.mlp.down_proj.weight.zero_()
    assert torch.equal(run_block(block, config, x)[0], x)


def test_it_trains() -> None:
    config = tiny(dropout=0.1)
    block, x = block_of(config).train(), normal(2, 4, 24)
    cos_sin = (torch.ones(4, 6), torch.zeros(4, 6))
    options: dict[str, Any] = {"attention_mask": torch.tensor([[0, 1, 1, 1], [1, 1, 1, 1]])}
    block(x, cos_sin, **options)[0].square().mean().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() and p.grad.any() for p in block.parameters())


def test_an_infinity_in_one_padded_token_stays_there() -> None:
    """Masked scores are replaced, not added to: inf − inf would give NaN."""
    config = tiny(qk_norm=False)
    block, x = block_of(config), normal(1, 3, 24)
    block.self_attn.taps["scores"].register_forward_hook(
        lambda _m, _i, value: value.masked_fill(torch.tensor([True, False, False]), math.inf)
    )
    seen = watch(block)
    run_block(block, config, x, attention_mask=torch.tensor([[0, 1, 1]]))
    assert seen["probs"].isfinite().all()


@pytest.mark.gpu
@pytest.mark.parametrize("use_moe", [False, True], ids=["dense", "experts"])
def test_a_gpu_computes_the_same(use_moe: bool) -> None:
    config = tiny(use_moe=use_moe, num_experts_per_tok=2)
    block, x = block_of(config), normal(2, 5, 24)
    tables = RotaryEmbedding(config)
    expected, _ = run_block(block, config, x)
    with torch.no_grad():
        got, _ = block.to("cuda")(x.cuda(), tables(0, 5, "cuda"))
    close(got.cpu(), expected, 1e-4)
