"""Spoiling a good checkpoint, and holding both ways of loading to a refusal that is quick and says why."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from explorer.checkpoints import CheckpointError, load
from explorer.model.config import MiniMindConfig
from tests.checkpoints.making import SIZES

CONFIG = MiniMindConfig(**SIZES)


def refused(source: Path | str, says: str, **options: Any) -> CheckpointError:
    """Both ways of loading refuse, in under a second, with these words; the files are as they were."""
    for layer in (None, 0):
        start = time.perf_counter()
        with pytest.raises(CheckpointError, match=says) as caught:
            load(source, layer=layer, **options)
        assert time.perf_counter() - start < 1
    return caught.value


def rewrite(folder: Path, **changes: Any) -> None:
    """Change entries of config.json; None takes one away."""
    path = folder / "config.json"
    config = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({name: value for name, value in config.items() if value is not None}))


def change_weights(folder: Path, **changes: torch.Tensor | None) -> None:
    """Change weights, '__' standing for '.'; None takes one away."""
    weights = load_file(folder / "model.safetensors")
    for name, value in changes.items():
        weights.pop(name.replace("__", "."), None)
        if value is not None:
            weights[name.replace("__", ".")] = value
    save_file(weights, folder / "model.safetensors")
