"""A MiniMind checkpoint small enough to be written for a test: random numbers, real layout, few words."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers

from explorer.checkpoints.shapes import model_shapes
from explorer.model.config import MiniMindConfig

WORDS = ("<pad>", "<bos>", "<eos>", "<unk>", "the", "cat", "sees", "a", "dog", ".", "and", "runs", "猫", "看")


def write_checkpoint(folder: Path, layers: int = 2) -> Path:
    """A folder with config.json, model.safetensors and tokenizer.json."""
    config = MiniMindConfig(
        hidden_size=16, num_attention_heads=4, num_key_value_heads=2, intermediate_size=24, num_hidden_layers=layers,
        vocab_size=len(WORDS), max_position_embeddings=512,
    )  # fmt: skip
    source = torch.Generator().manual_seed(1)
    weights = {
        name: torch.randn(shape, generator=source) * 0.4 + (len(shape) == 1)
        for name, shape in model_shapes(config).items()
        if name != "lm_head.weight"
    }
    folder.mkdir(parents=True, exist_ok=True)
    save_file(weights, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({"model_type": "minimind", **config.to_dict()}))
    tokenizer = Tokenizer(models.WordLevel({word: n for n, word in enumerate(WORDS)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder
