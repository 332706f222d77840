"""Checkpoints by name only: links know names and sizes, never files."""

from __future__ import annotations

import pytest

from explorer.offers import OFFERS, Offer
from tests.link.random_specs import CHECKPOINTS, DICTATED, LAYERS


@pytest.fixture
def checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    """Offers CHECKPOINTS, all of the sizes DICTATED."""
    for weights in CHECKPOINTS:
        name = weights.removeprefix("checkpoint:")
        monkeypatch.setitem(OFFERS, name, Offer(name, "nowhere", LAYERS, DICTATED))
