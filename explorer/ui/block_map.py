"""The block map's content: which tensors each row shows, and a thumbnail of each.

Must not know: how the map is drawn.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from explorer.capture import Trace
from explorer.draw.pooling import pool, tile
from explorer.quantities import SCORE_TAPS
from explorer.ui.matrix import Array

MOST = 24  # rows and columns of a thumbnail
MASKED, MISSING, FULL = -128, -127, 126  # codes of a pixel; the page knows the same

# Stage -> what comes out of it. Stage 0 is what enters; the last row is the second addition, part of stage 8.
ROWS: tuple[tuple[int, tuple[str, ...]], ...] = (
    (0, ("resid_pre",)), (1, ("attn_norm",)), (2, ("q", "k", "v")), (3, ("q_rot", "k_rot")), (4, ("masked_scores",)),
    (5, ("probs", "heads")), (6, ("attn_out",)), (7, ("resid_mid",)), (8, ("ffn_out",)), (9, ("resid_post",)),
)  # fmt: skip


def thumbnails(trace: Trace, slots: Mapping[str, int], base: Trace, compare: str = "value") -> dict[str, Any]:
    """{name: {"shape", "r", "c", "v", "moved", "change"}}: v is base64 of one signed byte a pixel, ±FULL the largest.

    base is the unedited run (`trace` itself where nothing is in force); moved: whether an edit moved anything that is
    shown; change: whether the pixels are the change from the unedited run.
    """
    return {name: _thumbnail(trace, name, slots, base, compare) for _, row in ROWS for name in row}


def _thumbnail(trace: Trace, name: str, slots: Mapping[str, int], base: Trace, compare: str) -> dict[str, Any]:
    values, about = _slice(trace, name, slots), {"shape": trace.shape(name)}
    if base is trace:
        return about | _pixels(values)
    before = _slice(base, name, slots)
    moved = (values != before) & ~(np.isnan(values) & np.isnan(before))
    if compare != "change":
        return about | _pixels(values) | {"moved": bool(moved.any())}
    with np.errstate(invalid="ignore"):
        change = np.where(moved, values - before, 0).astype(np.float32)
    return about | _pixels(change) | {"moved": bool(moved.any()), "change": True}


def _slice(trace: Trace, name: str, slots: Mapping[str, int]) -> Array:
    row, head = slots["b"], slots["h"]
    if name in SCORE_TAPS:
        return trace.rows(name, row, head)
    values: Array = trace[name][row]
    return values if values.ndim == 2 else np.asarray(values[head * values.shape[0] // trace.sizes["H"]])


def _pixels(values: Array) -> dict[str, Any]:
    rows, cols = values.shape
    small = pool(values, tile(rows, MOST), tile(cols, MOST)) if max(rows, cols) > MOST else values
    finite = np.isfinite(small)
    size = np.abs(small, where=finite, out=np.zeros(small.shape, np.float32)).max() or 1.0
    code = np.rint(np.where(finite, small, 0) * (FULL / size)).astype(np.int8)
    code[~finite] = np.where(np.isneginf(small[~finite]), MASKED, MISSING)
    return {"r": small.shape[0], "c": small.shape[1], "v": base64.b64encode(code.tobytes()).decode("ascii")}


def rows(titles: Sequence[str], entering: str, leaving: str) -> list[dict[str, Any]]:
    """The rows as the page builds them; titles of stages 1 to 8, and symbols of what enters and leaves."""
    words = {0: entering, 9: leaving} | dict(enumerate(titles, start=1))
    return [{"stage": stage, "title": words[stage], "names": names, "adds": stage == 9} for stage, names in ROWS]
