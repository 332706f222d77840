"""The checkpoints that can be chosen by name, as plain data.

Purpose: let RunSpec know the sizes of a checkpoint without opening it.
Must not know: torch, what is in a file. explorer.sources fills the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from explorer.messages import say


@dataclass(frozen=True)
class Offer:
    """One checkpoint.

    source: folder, file or pinned Hub id; layers: number of blocks; fields: the RunSpec fields it dictates
    """

    name: str
    source: str
    layers: int
    fields: Mapping[str, Any]


OFFERS: dict[str, Offer] = {}
SHIPPED = Path(__file__).resolve().parents[1] / "assets" / "checkpoint"  # a copy may have one there
SHIPPED_NAME = "stories"


def has_shipped() -> bool:
    """Whether this copy has a checkpoint of its own."""
    return (SHIPPED / "config.json").is_file() and (SHIPPED / "model.safetensors").is_file()


def message_for_unknown(name: str) -> str:
    """What to answer when `name` is not offered."""
    offered = ", ".join(f"checkpoint:{n}" for n in OFFERS) or say("none")
    return say(
        "There is no checkpoint {name!r} here. Offered: {offered}. Choose one of these, toy or random.",
        name=name[:60], offered=offered,
    )  # fmt: skip
