"""A checkpoint reads a text: what choosing one on the page does to the other fields.

Purpose: sizes that follow from the text, fields that only a checkpoint or experts need, the texts offered to try.
Must not know: gradio, how a checkpoint is opened.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from explorer import sources
from explorer.limits import LIMITS
from explorer.offers import OFFERS
from explorer.spec import CHECKPOINT_PREFIX
from explorer.typed import read_field

log = logging.getLogger(__name__)
MOST_EXAMPLES = 12


def settle(typed: Mapping[str, Any], fit: bool) -> dict[str, Any]:
    """The fields without those that mean nothing now, and with B, T and padding from the text where `fit` asks for it.

    Raises SpecError for a text without a token, or longer than a run may be.
    """
    fields = dict(typed)
    name = _checkpoint(fields)
    if name is None:
        fields.pop("text", None)
        fields.pop("layer", None)
    elif fit:
        fields |= _fitted(name, str(fields.get("text") or ""), fields.get("past"))
    if not _experts(name, fields):
        fields.pop("experts_per_token", None)
    return fields


def _checkpoint(fields: Mapping[str, Any]) -> str | None:
    weights = str(fields.get("weights") or "")
    return weights.removeprefix(CHECKPOINT_PREFIX) if weights.startswith(CHECKPOINT_PREFIX) else None


def _experts(checkpoint: str | None, fields: Mapping[str, Any]) -> bool:
    """Whether there are experts, or something was typed that has to be judged first."""
    if checkpoint in OFFERS:
        return bool(OFFERS[checkpoint].fields.get("experts"))
    typed = fields.get("experts")
    try:
        return float(typed if isinstance(typed, (int, float)) else str(typed or 0).strip() or 0) != 0
    except ValueError:
        return True


def _fitted(name: str, text: str, past: Any) -> dict[str, Any]:
    """B, T, padding, and a cache that leaves at least one token to this call."""
    if name not in OFFERS or len(text) > LIMITS.text:
        return {}  # RunSpec says what is wrong
    fields = sources.fit_to_text(name, text)
    try:
        cached = int(str(read_field("past", past))) if past not in (None, "") else 0
    except ValueError:
        cached = 0
    cached = min(max(cached, 0), fields["T"] - 1)
    return {**fields, "T": fields["T"] - cached, "past": cached}


def examples() -> dict[str, list[dict[str, str]]]:
    """weights -> texts to try with it, each with what to look at: from examples.json beside the checkpoint."""
    return {CHECKPOINT_PREFIX + name: _examples(Path(offer.source)) for name, offer in OFFERS.items()}


def _examples(source: Path) -> list[dict[str, str]]:
    path = (source if source.is_dir() else source.parent) / "examples.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except (OSError, ValueError):
        log.warning("%s cannot be read; its texts are not offered", path)
        return []
    items = found.get("examples", []) if isinstance(found, dict) else found
    taken = [_example(item) for item in items if isinstance(item, (dict, str))]
    return [item for item in taken if item["text"].strip()][:MOST_EXAMPLES]


def _example(item: dict[str, Any] | str) -> dict[str, str]:
    if isinstance(item, str):
        return {"text": item, "look": ""}
    look = next((item[key] for key in ("look", "look_at", "notice", "what", "note") if item.get(key)), "")
    return {"text": str(item.get("text", "")), "look": str(look)}
