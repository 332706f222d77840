"""Row 3, Decode: keys and values of earlier tokens are kept, and a token alone takes up where they end.

Purpose: its check. Its sentences stand in `decode.md`.
Must not know: other rows, the page.
"""

from __future__ import annotations

import torch

from explorer.bridge.case import Case, Pass, apart, times
from explorer.bridge.row import Found, Point, Row
from explorer.spec import RunSpec
from explorer.stages.source import Lines

PASSES = 4


def check(spec: RunSpec) -> Found:
    """The last token alone with a cache is what it is in the whole text; the cache grows by one; tables start there."""
    case = Case.of(spec, PASSES)
    alone, case = case.tokens == 1, case.longer()
    block, last, mask = case.block(), case.tokens - 1, case.mask
    before = None if mask is None else mask[:, :last]
    whole = case.call(block, case.stream, mask=mask)
    earlier = case.call(block, case.stream[:, :last], mask=before)
    one = case.call(block, case.stream[:, last:], last, earlier.present, mask)
    astray = case.call(block, case.stream[:, last:], 0, earlier.present, mask)
    points = (_cached(case, whole, one, alone), _cache(case, earlier, one), _start(case, one, astray), _end(case))
    return Found(points)


def _cached(case: Case, whole: Pass, one: Pass, alone: bool) -> Point:
    gap, limit = apart(one.out, whole.out[:, -1:]), case.tolerance
    values = {
        "tokens": case.tokens, "last": case.tokens - 1, "what": case.compared, "gap": gap, "tolerance": limit,
        "dtype": case.dtype,
    }  # fmt: skip
    return Point("cached_alone" if alone else "cached", gap <= limit, values, alone)


def _cache(case: Case, earlier: Pass, one: Pass) -> Point:
    """[B,Hkv,N-1,Dh] and then [B,Hkv,N,Dh], what was there before untouched to the last bit."""
    size = (case.stream.shape[0], case.config.num_key_value_heads, case.config.head_dim)
    shapes = [(size[0], size[1], tokens, size[2]) for tokens in (case.tokens - 1, case.tokens)]
    seen = [tuple(x.shape) for made in (earlier, one) for x in made.present]
    kept = all(
        old.shape[2] <= new.shape[2] and torch.equal(old, new[:, :, : old.shape[2]])
        for old, new in zip(earlier.present, one.present, strict=True)
    )
    holds = seen == [shapes[0], shapes[0], shapes[1], shapes[1]] and kept
    changed = sum(not torch.equal(a, b[:, :, : a.shape[2]]) for a, b in zip(earlier.present, one.present, strict=True))
    return Point("cache", holds, {"before": times(seen[0]), "after": times(seen[2]), "changed": changed})


def _start(case: Case, one: Pass, astray: Pass) -> Point:
    """The tables from start_pos on are those rows of the whole tables; and what a start at 0 would have done."""
    start = case.tokens - 1
    rows, whole = case.rope(start, 1), case.rope(0, case.tokens)
    gap = max(float((a - b[start:]).abs().max()) for a, b in zip(rows, whole, strict=True))
    values = {"start": start, "gap": gap, "astray": apart(astray.out, one.out)}
    return Point("start", gap == 0, values)


def _end(case: Case) -> Point:
    """A position behind the last one is refused, not broadcast."""
    limit = case.config.max_position_embeddings
    try:
        case.rope(limit, 1)
    except ValueError as error:
        return Point("end_refused", True, {"last": limit - 1, "error": str(error)})
    return Point("end_taken", False, {"last": limit - 1})


ROW = Row(
    number=3,
    key="decode",
    check=check,
    lines=(
        Lines("model.attention", "Attention.forward", "past_k, past_v =", 'taps["present_v"]'),
        Lines("model.attention", "_after"),
        Lines("model.rope", "RotaryEmbedding.forward", "end, limit ="),
        Lines("model.causal_lm", "MiniMindModel.forward", "pasts =", "position_embeddings ="),
    ),
)
