"""Small checkpoints for the tests: made by transformers, which knows nothing of this project, or by hand."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

SIZES: dict[str, Any] = {
    "vocab_size": 40,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 6,
    "max_position_embeddings": 64,
}


def randomise(model: nn.Module, seed: int = 0) -> nn.Module:
    """Random numbers in every weight, the norms' included, so that a forgotten one shows."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn(weight.shape, generator=generator) * 0.3 + (weight.dim() == 1))
    return model.eval()


def hugging_face_model(kind: str, **changes: Any) -> Any:
    """A random model of transformers' own: kind is qwen3, qwen3_moe or llama."""
    import transformers

    classes = {
        "qwen3": (transformers.Qwen3Config, transformers.Qwen3ForCausalLM),
        "qwen3_moe": (transformers.Qwen3MoeConfig, transformers.Qwen3MoeForCausalLM),
        "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM),
    }
    moe = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 10} if kind == "qwen3_moe" else {}
    config_class, model_class = classes[kind]
    config = config_class(**{**SIZES, **moe, **changes})
    config._attn_implementation = config._experts_implementation = "eager"
    return randomise(model_class(config))


def random_weights(shapes: dict[str, tuple[int, ...]], seed: int = 0) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {name: torch.randn(shape, generator=generator) * 0.3 + (len(shape) == 1) for name, shape in shapes.items()}


def write_folder(folder: Path, config: dict[str, Any] | None, weights: dict[str, Tensor]) -> Path:
    """A folder with config.json and model.safetensors."""
    folder.mkdir(parents=True, exist_ok=True)
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    save_file({name: weight.contiguous() for name, weight in weights.items()}, folder / "model.safetensors")
    return folder


def read_parts(path: Path) -> tuple[dict[str, Any], bytes]:
    """A .safetensors file taken apart: header and data."""
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def write_parts(path: Path, header: object, data: bytes) -> None:
    """And put together again, whatever it says."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def some_ids(vocab: int = 40, batch: int = 2, tokens: int = 9) -> Tensor:
    return torch.randint(vocab, (batch, tokens), generator=torch.Generator().manual_seed(5))


def assert_close(found: Tensor, expected: Tensor, tolerance: float = 1e-5) -> None:
    """Close relative to the largest magnitude."""
    assert found.shape == expected.shape
    gap = (found - expected).abs().max() / expected.abs().max()
    assert gap <= tolerance, f"differs by {gap:.2e} of the largest magnitude"
