"""Small models and independent calculations that several tests of the model share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from explorer.model import MiniMindBlock, MiniMindConfig, RotaryEmbedding

small = settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def tiny(**fields: Any) -> MiniMindConfig:
    """A configuration small enough to check by hand; D=24, H=4, Hkv=2, Dh=6, F=20."""
    defaults = {
        "hidden_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 20,
        "vocab_size": 37,
        "max_position_embeddings": 64,
        "num_experts": 4,
    }
    return MiniMindConfig(**(defaults | fields))


@st.composite
def configs(draw: st.DrawFn, **fixed: Any) -> MiniMindConfig:
    """Any valid small configuration: grouped heads of any ratio, free head_dim, dense or experts, YaRN or not."""
    kv_heads = draw(st.integers(1, 3))
    experts = draw(st.integers(1, 5))
    fields = {
        "hidden_size": draw(st.integers(1, 12)) * 2,
        "num_attention_heads": kv_heads * draw(st.integers(1, 3)),
        "num_key_value_heads": kv_heads,
        "head_dim": draw(st.integers(1, 6)) * 2,
        "intermediate_size": draw(st.integers(1, 24)),
        "qk_norm": draw(st.booleans()),
        "rope_theta": draw(st.sampled_from([100.0, 1e4, 1e6])),
        "angle_step": draw(st.sampled_from([1.0, 0.5, np.pi / 2])),
        "inference_rope_scaling": draw(st.booleans()),
        "rope_scaling": {"original_max_position_embeddings": draw(st.sampled_from([16, 128])), "factor": 4},
        "use_moe": draw(st.booleans()),
        "num_experts": experts,
        "num_experts_per_tok": draw(st.integers(1, experts)),
        "moe_intermediate_size": draw(st.integers(1, 12)),
        "norm_topk_prob": draw(st.booleans()),
    }
    return tiny(**(fields | fixed))


def randomise(module: nn.Module, seed: int = 0) -> nn.Module:
    """Fill every parameter, the norms' too, so that a part that is skipped shows."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(1 + 0.3 * noise if "norm" in name else 0.4 * noise)
    return module.eval()


def block_of(config: MiniMindConfig, seed: int = 0) -> MiniMindBlock:
    block = randomise(MiniMindBlock(config), seed)
    assert isinstance(block, MiniMindBlock)
    return block


def normal(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def run_block(block: MiniMindBlock, config: MiniMindConfig, x: Tensor, **options: Any) -> tuple[Tensor, Any]:
    """One call without gradients, positions going on after the cache if there is one."""
    past = options.get("past_key_value")
    start = 0 if past is None else past[0].shape[2]
    with torch.no_grad():
        return block(x, RotaryEmbedding(config)(start, x.shape[1]), **options)  # type: ignore[no-any-return]


def watch(module: nn.Module) -> dict[str, Tensor]:
    """Every tap's value of the next forward pass, by name; the hooks stay."""
    seen: dict[str, Tensor] = {}

    def keep(name: str) -> Callable[[nn.Module, Any, Tensor], None]:
        return lambda _module, _inputs, output: seen.__setitem__(name, output)

    for path, tap in module.named_modules():
        if "taps." in path:
            tap.register_forward_hook(keep(path.rsplit(".", 1)[1]))
    return seen


def close(got: Tensor, expected: Tensor | np.ndarray, tolerance: float = 1e-5) -> None:
    """Equal up to the tolerance, relative to the largest magnitude (at least 1)."""
    expected = torch.as_tensor(expected).double()
    got = got.detach().double()
    assert got.shape == expected.shape, (got.shape, expected.shape)
    assert got.isfinite().all()
    if got.numel():
        error = (got - expected).abs().max().item()
        assert error <= tolerance * max(1.0, expected.abs().max().item()), error
