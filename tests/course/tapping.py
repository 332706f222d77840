"""The course's taps: their names, what passes through them in a run, and a block of random weights to run."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from explorer.course.transformer_model import TransformerBlock, TransformerConfig

TAPS = (
    "resid_pre", "attn_norm", "q", "k", "v", "q_rot", "k_rot", "scores", "masked_scores", "probs", "heads", "concat",
    "attn_out", "resid_mid", "ffn_norm", "gate", "up", "hidden", "ffn_out", "resid_post",
)  # fmt: skip


def find_taps(block: nn.Module) -> dict[str, nn.Module]:
    """Every tap of a block by its quantity's name."""
    return {
        path.rpartition(".")[2]: module
        for path, module in block.named_modules()
        if f".{path}".rpartition(".")[0].endswith(".taps")
    }


def run_with_taps(block: nn.Module, *inputs: object) -> dict[str, Tensor]:
    """Run the block and return what passed through each tap, in the order of firing."""
    seen: dict[str, Tensor] = {}
    handles = []
    for name, tap in find_taps(block).items():

        def keep(_module: nn.Module, _inputs: object, value: Tensor, name: str = name) -> None:
            assert name not in seen, f"{name} fired twice"
            seen[name] = value

        handles.append(tap.register_forward_hook(keep))
    try:
        with torch.no_grad():
            block(*inputs)
    finally:
        for handle in handles:
            handle.remove()
    return seen


def random_block(config: TransformerConfig, seed: int = 0) -> TransformerBlock:
    """A block whose every weight is random, the norms' included, so that a skipped norm shows."""
    generator = torch.Generator().manual_seed(seed)
    block = TransformerBlock(config).eval()
    with torch.no_grad():
        for weight in block.parameters():
            weight.copy_(torch.randn(weight.shape, generator=generator) * 0.5 + (weight.dim() == 1))
    return block
