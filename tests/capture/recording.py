"""Recording a prepared run with edits, and the runs that tests of the recorder go through."""

from __future__ import annotations

from typing import Any

from explorer import Edit, Trace
from explorer.capture import record
from explorer.run import Prepared

SOME = ("toy", "capstone", "grouped", "cache_and_padding", "moe_two_raw")


def capture(ready: Prepared, *edits: Edit, **more: Any) -> Trace:
    return record(
        ready.block, ready.hidden_states, ready.position_embeddings, ready.past_key_value, ready.attention_mask,
        edits, **more,
    )  # fmt: skip
