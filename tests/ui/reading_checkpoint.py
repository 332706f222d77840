"""A checkpoint that reads words: three small random blocks, a tokenizer of whole words, and texts to try."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from explorer.model.block import MiniMindBlock
from explorer.model.config import MiniMindConfig
from tests.checkpoints.making import random_weights, write_folder

WORDS = ("once", "upon", "a", "time", "there", "was", "little", "cat", "dog", "and", "the", "ran")
LAYERS = 3
EXAMPLES = [
    {"text": "once upon a time", "look": "Where does the last word look?"},
    {"text": "the cat ran\nthe little dog and the cat ran", "look": "The first row is padded."},
]


def write_reader(folder: Path, *, experts: int = 0) -> Path:
    """The folder, with config.json, model.safetensors, tokenizer.json and examples.json."""
    config = MiniMindConfig(
        hidden_size=16, num_attention_heads=4, num_key_value_heads=2, head_dim=6, intermediate_size=24,
        num_hidden_layers=LAYERS, vocab_size=len(WORDS) + 1, use_moe=experts > 0, num_experts=max(1, experts),
        moe_intermediate_size=10, max_position_embeddings=256,
    )  # fmt: skip
    block = {name: tuple(w.shape) for name, w in MiniMindBlock(config).state_dict().items()}
    shapes = {f"model.layers.{n}.{name}": shape for n in range(LAYERS) for name, shape in block.items()}
    shapes |= {"model.embed_tokens.weight": (config.vocab_size, 16), "model.norm.weight": (16,)}
    settings = {name: value for name, value in asdict(config).items() if value is not None}
    write_folder(folder, settings, random_weights(shapes))
    vocabulary = {word: n for n, word in enumerate(("?", *WORDS))}
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "?"},
    }  # fmt: skip
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    (folder / "examples.json").write_text(json.dumps(EXAMPLES), encoding="utf-8")
    return folder
