"""The bridge: six rows from the course's block to MiniMind, each with a check that runs on the block that is shown.

Purpose: ROWS, in the order in which a port is built. A row is one module here, its text in `en/` (and other languages
beside it), and one line below.
Must not know: the page. Nothing here imports transformers before a row that needs it is run.
"""

from __future__ import annotations

from explorer.bridge import attention, configuration, decode, feed_forward, runtime, wrapper
from explorer.bridge.row import Found, Point, Row

__all__ = ["ROWS", "Found", "Point", "Row"]

ROWS: tuple[Row, ...] = (
    configuration.ROW,
    attention.ROW,
    decode.ROW,
    runtime.ROW,
    feed_forward.ROW,
    wrapper.ROW,
)
