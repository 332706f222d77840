"""Row 4, Runtime: one fused kernel where it may be used, and the same step by step where it may not.

Purpose: its check. Its sentences stand in `runtime.md`.
Must not know: other rows, the page.
"""

from __future__ import annotations

import torch
from torch import Tensor

from explorer.bridge.case import Case, Pass, apart
from explorer.bridge.row import Found, Point, Row
from explorer.spec import RunSpec
from explorer.stages.source import Lines

PASSES = 12
PAD = 2  # padding before the row that is padded


def check(spec: RunSpec) -> Found:
    """Fused = explicit, padded = unpadded, cached = whole, no look ahead, and every number finite."""
    case = Case.of(spec, PASSES)
    alone, case = case.tokens == 1, case.longer()
    fused, explicit = case.block(flash=True), case.block(flash=False)
    one, other = case.call(fused, case.stream), case.call(explicit, case.stream)
    padded, bare = _padded(case)
    cached, whole = _cached(case, explicit)
    blind = _blind(case)
    ahead = _ahead(case, (fused, one), (explicit, other))
    outs = [x.out for x in (one, other, padded, bare, cached, whole, blind)]
    limit = case.tolerance
    shared = {"tokens": case.tokens, "what": case.compared, "tolerance": limit, "dtype": case.dtype}
    flash = apart(one.out, other.out)
    row = apart(padded.out[:1, PAD:], bare.out)
    late = apart(cached.out, whole.out[:, -cached.out.shape[1] :])
    split = int(case.tokens - cached.out.shape[1])
    uncached = not case.spec.past
    return Found((
        Point("flash_alone" if alone else "flash", flash <= limit, {**shared, "gap": flash}, alone),
        Point("padded", row <= limit, {**shared, "gap": row, "pad": PAD}),
        Point("cache_none" if uncached else "cache", late <= limit,
              {**shared, "gap": late, "past": split, "new": case.tokens - split,
               "padding": "0" if case.mask is None else str(int((case.mask == 0).sum()))}, uncached),
        Point("ahead", max(ahead) == 0, {"one": ahead[0], "other": ahead[1], "before": case.tokens - 1}),
        _finite(outs, case, blind),
    ))  # fmt: skip


def _padded(case: Case) -> tuple[Pass, Pass]:
    """The first row behind PAD positions of padding, which hold numbers of the row itself, beside a row without; and
    the first row alone. It moves on by PAD positions, which no score may notice; where the model has no positions for
    that, its last tokens stay out.
    """
    row, block = case.stream[:1, : case.config.max_position_embeddings - PAD], case.block()
    junk = row.flip(1)[:, :PAD]
    junk = torch.cat((junk, junk), dim=1)[:, :PAD]
    longer = torch.cat((junk, row), dim=1)
    mask = torch.ones(2, longer.shape[1], dtype=torch.long, device=row.device)
    mask[0, :PAD] = 0
    return case.call(block, longer.repeat(2, 1, 1), mask=mask), case.call(block, row)


def _cached(case: Case, block: torch.nn.Module) -> tuple[Pass, Pass]:
    """This run's tokens behind its own cache, or the second half of the text behind the first; with its padding."""
    split = case.spec.past or case.tokens // 2
    mask = case.mask
    first = case.call(block, case.stream[:, :split], mask=None if mask is None else mask[:, :split])  # type: ignore[arg-type]
    later = case.call(block, case.stream[:, split:], split, first.present, mask)  # type: ignore[arg-type]
    return later, case.call(block, case.stream, mask=mask)  # type: ignore[arg-type]


def _blind(case: Case) -> Pass:
    """A row of padding alone: every key of every query is hidden."""
    row = case.stream[:1]
    return case.call(case.block(), row, mask=torch.zeros(row.shape[:2], dtype=torch.long, device=row.device))


def _ahead(case: Case, *pairs: tuple[torch.nn.Module, Pass]) -> list[int]:
    """For each path, at how many earlier tokens the output moved beyond rounding when the last token was another."""
    other = case.stream.clone()
    other[:, -1] = other[:, -1].flip(-1) * -2 + 1
    moved = []
    for block, before in pairs:
        after = case.call(block, other)  # type: ignore[arg-type]
        tokens = range(case.tokens - 1)
        gaps = [apart(after.out[:, t], before.out[:, t]) for t in tokens]
        moved.append(sum(not gap <= case.tolerance for gap in gaps))
    return moved


def _finite(outs: list[Tensor], case: Case, blind: Pass) -> Point:
    """No NaN and no infinity anywhere, not even where every key is hidden."""
    wrong = sum(int((~out.isfinite()).sum()) for out in outs)
    numbers = sum(out.numel() for out in outs)
    return Point("finite", wrong == 0, {"wrong": wrong, "numbers": numbers, "tokens": int(blind.out.shape[1])})


ROW = Row(
    number=4,
    key="runtime",
    check=check,
    lines=(
        Lines("model.attention", "Attention._attend", "k = repeat_kv"),
        Lines("model.attention", "Attention._may_fuse", "one_prefix"),
        Lines("model.attention", "visible_keys", "query_position"),
        Lines("model.attention", "masked_softmax", "blind ="),
    ),
)
