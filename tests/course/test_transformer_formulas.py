"""The course's model computes what the formulas say, and what MiniMind's block computes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from explorer.course.transformer_model import TransformerBlock, TransformerConfig, TransformerModel, rope_tables
from tests.course.tapping import TAPS, random_block, run_with_taps

# ------------------------------------------------------------------------------------------- independent formulas


def reference_block(block: TransformerBlock, x: np.ndarray) -> dict[str, np.ndarray]:
    """The block in float64 numpy, one head and one query at a time, RoPE by complex multiplication."""
    config = block.config
    weight = {name: value.double().numpy() for name, value in block.state_dict().items()}
    heads, width = config.num_heads, config.head_dim

    def norm(values: np.ndarray, gamma: np.ndarray) -> np.ndarray:
        return gamma * values / np.sqrt((values**2).sum(-1, keepdims=True) / values.shape[-1] + config.norm_eps)

    def turn(values: np.ndarray, position: int) -> np.ndarray:
        pairs = values[: width // 2] + 1j * values[width // 2 :]
        turned = [
            pair * np.exp(1j * position * config.angle_step * config.rope_theta ** (-2 * i / width))
            for i, pair in enumerate(pairs)
        ]
        return np.concatenate([np.real(turned), np.imag(turned)])

    batch, tokens, _ = x.shape
    out = {"probs": np.zeros((batch, heads, tokens, tokens)), "concat": np.zeros_like(x)}
    normed = norm(x, weight["input_layernorm.weight"])
    for b in range(batch):
        for head in range(heads):
            rows = slice(head * width, (head + 1) * width)
            query, key, value = (normed[b] @ weight[f"self_attn.{n}_proj.weight"][rows].T for n in "qkv")
            for i in range(tokens):
                seen = [turn(query[i], i) @ turn(key[j], j) / width**0.5 for j in range(i + 1)]
                share = np.exp(np.array(seen) - max(seen))
                out["probs"][b, head, i, : i + 1] = share / share.sum()
                out["concat"][b, i, rows] = sum(p * value[j] for j, p in enumerate(share / share.sum()))
    out["resid_mid"] = x + out["concat"] @ weight["self_attn.o_proj.weight"].T
    z = norm(out["resid_mid"], weight["post_attention_layernorm.weight"])
    gate, up = z @ weight["mlp.gate_proj.weight"].T, z @ weight["mlp.up_proj.weight"].T
    out["resid_post"] = out["resid_mid"] + (gate / (1 + np.exp(-gate)) * up) @ weight["mlp.down_proj.weight"].T
    return out


@pytest.mark.parametrize(("heads", "angle_step", "theta"), [(1, 1.0, 1e4), (3, 1.0, 1e6), (2, 0.3, 100.0)])
def test_the_block_computes_what_the_formulas_say(heads: int, angle_step: float, theta: float) -> None:
    config = TransformerConfig(num_heads=heads, angle_step=angle_step, rope_theta=theta, norm_eps=1e-3)
    block = random_block(config)
    x = torch.randn(2, 6, 12, generator=torch.Generator().manual_seed(1))
    seen = run_with_taps(block, x)
    for name, expected in reference_block(block, x.double().numpy()).items():
        scale = np.abs(expected).max()
        np.testing.assert_allclose(seen[name].numpy(), expected, rtol=0, atol=1e-5 * scale, err_msg=name)


def test_the_toy_of_the_lesson() -> None:
    """LESSON section 3: identity weights, unit norms, a quarter turn a position."""
    block = TransformerBlock(
        TransformerConfig(hidden_size=2, num_heads=1, ffn_width=2, angle_step=torch.pi / 2, norm_eps=0.0)
    )
    with torch.no_grad():
        for name in ("q", "k", "v", "o"):
            getattr(block.self_attn, f"{name}_proj").weight.copy_(torch.eye(2))
    seen = run_with_taps(block, torch.tensor([[[1.0, 1.0], [1.0, -1.0]]]))
    root = 2**0.5
    expected = {
        "q_rot": [[1, 1], [1, 1]],
        "scores": [[root, root], [root, root]],
        "masked_scores": [[root, -np.inf], [root, root]],
        "probs": [[1, 0], [0.5, 0.5]],
        "heads": [[1, 1], [1, 0]],
        "resid_mid": [[2, 2], [2, -1]],
    }
    for name, value in expected.items():
        np.testing.assert_allclose(seen[name].numpy().reshape(2, 2), np.array(value, float), atol=1e-6, err_msg=name)


def test_a_token_never_changes_what_stands_before_it() -> None:
    model = TransformerModel(TransformerConfig()).eval()
    ids = torch.randint(50, (2, 7), generator=torch.Generator().manual_seed(0))
    changed = ids.clone()
    changed[:, 4:] = (changed[:, 4:] + 1) % 50
    with torch.no_grad():
        before, after = model(ids), model(changed)
    assert torch.equal(before[:, :4], after[:, :4])
    assert (before[:, 4:] != after[:, 4:]).any(-1).all()


def test_one_token_needs_no_neighbour() -> None:
    seen = run_with_taps(random_block(TransformerConfig()), torch.randn(1, 1, 12))
    assert torch.equal(seen["probs"], torch.ones(1, 3, 1, 1))
    assert torch.equal(seen["heads"], seen["v"])


def test_own_positions_are_the_tables_from_zero() -> None:
    config = TransformerConfig(rope_theta=500.0, angle_step=0.7)
    block, x = random_block(config), torch.randn(1, 4, 12)
    with torch.no_grad():
        assert torch.equal(block(x), block(x, rope_tables(config, 4)))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_precisions_keep_their_dtype(dtype: torch.dtype) -> None:
    block = random_block(TransformerConfig()).to(dtype)
    seen = run_with_taps(block, torch.randn(1, 5, 12, dtype=dtype))
    assert {value.dtype for value in seen.values()} == {dtype}
    assert all(value.isfinite().all() for name, value in seen.items() if name != "masked_scores")


# ------------------------------------------------------------------------------------- the course beside MiniMind


def course_weights(block: nn.Module) -> dict[str, Tensor]:
    """MiniMind's weights under the course's names: the same names, without q_norm and k_norm, which have no place."""
    foreign = ("q_norm.weight", "k_norm.weight")
    return {name: value for name, value in block.state_dict().items() if not name.endswith(foreign)}


@pytest.mark.parametrize(("heads", "theta", "tokens"), [(3, 1e6, 5), (1, 1e4, 1), (6, 1e4, 9)])
def test_the_course_block_and_minimind_agree_at_every_tap(heads: int, theta: float, tokens: int) -> None:
    from explorer.model.block import MiniMindBlock
    from explorer.model.config import MiniMindConfig
    from explorer.model.rope import rope_tables as minimind_tables

    config = TransformerConfig(num_heads=heads, rope_theta=theta, norm_eps=1e-5, angle_step=0.8)
    minimind_config = MiniMindConfig(
        hidden_size=12, num_attention_heads=heads, num_key_value_heads=heads, intermediate_size=config.ffn_width,
        rms_norm_eps=1e-5, rope_theta=theta, angle_step=0.8, qk_norm=False, flash_attn=False,
        num_hidden_layers=1, vocab_size=config.vocab_size,
    )  # fmt: skip
    minimind = MiniMindBlock(minimind_config).eval()
    block = random_block(config)
    assert set(course_weights(minimind)) == set(block.state_dict())
    minimind.load_state_dict(block.state_dict())

    x = torch.randn(2, tokens, 12, generator=torch.Generator().manual_seed(2))
    ours = run_with_taps(block, x)
    theirs = run_with_taps(minimind, x, minimind_tables(minimind_config, tokens))
    for name in TAPS:
        assert ours[name].shape == theirs[name].shape, name
        finite = ours[name].isfinite()
        assert torch.equal(finite, theirs[name].isfinite()), name
        gap = (ours[name] - theirs[name])[finite].abs().max()
        assert gap <= 1e-6 * max(1.0, float(ours[name][finite].abs().max())), f"{name} differs by {gap:.2e}"
