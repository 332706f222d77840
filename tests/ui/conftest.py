"""Checkpoints offered to the page: one that reads, and two that no longer can."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from explorer import sources
from explorer.offers import OFFERS
from tests.ui.reading_checkpoint import write_reader


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One that reads, one that has gone since it was offered, one whose tokenizer has gone."""
    folder = tmp_path_factory.mktemp("checkpoints")
    for name in ("reader", "lost", "mute"):
        sources.offer(name, write_reader(folder / name))
    shutil.rmtree(folder / "lost")
    (folder / "mute" / "tokenizer.json").unlink()
    sources._open.cache_clear()
    yield
    for name in ("reader", "lost", "mute"):
        del OFFERS[name]
