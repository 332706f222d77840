"""A good checkpoint to be spoiled, and a check that nothing is built from one that is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from explorer.checkpoints.shapes import model_shapes
from explorer.model.block import MiniMindBlock
from tests.checkpoints.making import SIZES, random_weights, write_folder
from tests.checkpoints.refusing import CONFIG

QWEN = {"model_type": "qwen3", **SIZES, "rope_theta": 1e6, "tie_word_embeddings": True}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A good checkpoint, to be spoiled."""
    return write_folder(tmp_path / "model", QWEN, random_weights(model_shapes(CONFIG)))


@pytest.fixture
def nothing_is_built(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A refusal comes before the first layer is made."""

    def built(*_: object, **__: object) -> None:
        raise AssertionError("a block was built from a checkpoint that does not fit")

    monkeypatch.setattr(MiniMindBlock, "__init__", built)
    return
