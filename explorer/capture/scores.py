"""Scores that a run did not write down, computed afterwards from what it did.

Purpose: scores, masked scores and probabilities of the explorer's own block after its flash path.
Must not know: traces, figures, the page.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from explorer.capture.kept import Array, Kept, Mask, to_numpy
from explorer.limits import LIMITS

MOST_ROWS = 64  # kept for the inspector


class TooLarge(MemoryError):
    """Scores that would not fit the memory budget were asked for as a whole."""


class Recomputed:
    """Scores, masked scores and probs as the block's explicit path makes them.

    queries [B, H, Tq, Dh], keys [B, Hkv, Tk, Dh], both as they meet.
    """

    def __init__(self, queries: Kept, keys: Kept, mask: Mask) -> None:
        self._queries, self._keys, self._mask = queries, keys, mask
        self._rows: dict[tuple[str, int, int, int], Array] = {}

    def whole(self, name: str) -> Tensor:
        """All of it, [B, H, Tq, Tk]. Raises StaleValue, TooLarge."""
        shape = (*self._queries.tensor.shape[:3], self._keys.tensor.shape[2])
        cells = math.prod(shape)
        if 4 * cells > LIMITS.score_bytes:
            raise TooLarge(
                f"{name} has {'×'.join(map(str, shape))} cells, {4 * cells / 2**20:.0f} MiB in float32; at most "
                f"{LIMITS.score_bytes / 2**20:.0f} MiB are computed at once. Ask for a part: "
                f"trace.rows({name!r}, b, h, start, stop)."
            )
        return self.part(name)

    def part(self, name: str, b: slice = slice(None), h: int | None = None, rows: slice = slice(None)) -> Tensor:
        """Of some batch rows, one or all heads and some queries, [B, H, Tq, Tk]. Raises StaleValue."""
        with torch.no_grad():
            queries, keys = self._queries.read("q_rot")[b, :, rows], self._keys.read("present_k")[b]
            group = queries.shape[1] // keys.shape[1]
            if h is None:
                keys = keys.repeat_interleave(group, dim=1)
            else:
                queries, keys = queries[:, h : h + 1], keys[:, h // group, None]
            scores = queries @ keys.transpose(-2, -1) / math.sqrt(queries.shape[-1])
            if name == "scores":
                return scores
            masked = scores.masked_fill(self._mask.hidden[b][:, :, rows], -math.inf)
            if name == "masked_scores":
                return masked
            blind = (masked == -math.inf).all(-1, keepdim=True)
            return masked.float().softmax(-1).masked_fill(blind, 0.0).to(queries.dtype)

    def row(self, name: str, b: int, h: int, i: int) -> Array:
        """One query's row, [Tk], kept for a while: explaining a cell asks for every number of it."""
        row = self._rows.get((name, b, h, i))
        if row is None:
            if len(self._rows) >= MOST_ROWS:
                self._rows.clear()
            made = to_numpy(self.part(name, slice(b, b + 1), h, slice(i, i + 1)))
            row = self._rows[name, b, h, i] = made[0, 0, 0]
        return row
