"""Row 2, Attention: fewer key/value heads than query heads, norms of heads, rotary positions.

Purpose: its check. Its sentences stand in `attention.md`.
Must not know: other rows, the page.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from explorer import allowance
from explorer.bridge.case import Case, apart, times, tolerance
from explorer.bridge.row import Found, Point, Row
from explorer.capture import Trace
from explorer.model import attention as attention_module
from explorer.model import rope as rope_module
from explorer.spec import RunSpec
from explorer.stages.source import Lines

PASSES = 4
SHIFT = 5  # positions by which everything is moved


def check(spec: RunSpec) -> Found:
    """K/V reach H heads, each query head reads its own, the output is [B,T,D], RoPE is a rotation and relative."""
    case = Case.of(spec, PASSES)
    trace = case.trace()
    points = [_repeated(trace)]
    allowance.check()
    points += [_own_heads(case, trace), _shape(case, trace)]
    allowance.check()
    return Found((*points, _circle(case), _offset(case, trace)))


def _repeated(trace: Trace) -> Point:
    """repeat_kv against indexing: query head r gets key/value head r // (H / Hkv).

    With one key/value head every order of repeating is the same, and with as many as query heads nothing is repeated;
    then a case is taken that tells: K and V as two heads of one tensor, or twice as many query heads.
    """
    keys, values = trace.tensor("present_k"), trace.tensor("present_v")
    heads, kv_heads = trace.sizes["H"], trace.sizes["Hkv"]
    times_each, nearest = heads // kv_heads, heads == kv_heads or kv_heads == 1
    if kv_heads == 1:
        keys = values = torch.cat((keys, values), dim=1)
    if nearest:
        times_each = max(2, times_each)
    got = [attention_module.repeat_kv(x, times_each) for x in (keys, values)]
    wanted_heads = keys.shape[1] * times_each
    wanted = [torch.stack([x[:, r // times_each] for r in range(wanted_heads)], dim=1) for x in (keys, values)]
    holds = all(a.shape == b.shape and torch.equal(a, b) for a, b in zip(got, wanted, strict=True))
    values_ = {
        "heads": heads, "kv_heads": kv_heads, "times": times_each, "shape": times(keys.shape),
        "repeated": times(got[0].shape), "wrong": _wrong_heads(got[0], wanted[0]), "all": wanted_heads,
    }  # fmt: skip
    key = "repeat_one" if kv_heads == 1 else "repeat_equal" if heads == kv_heads else "repeat"
    return Point(key, holds, values_, nearest)


def _wrong_heads(got: Tensor, wanted: Tensor) -> int:
    if got.shape != wanted.shape:
        return int(wanted.shape[1])
    return sum(not torch.equal(got[:, r], wanted[:, r]) for r in range(wanted.shape[1]))


def _own_heads(case: Case, trace: Trace) -> Point:
    """Every head's blend in the run, computed anew in float64 from its query and the key/value head it should read."""
    size, group = trace.sizes, trace.sizes["H"] // trace.sizes["Hkv"]
    q, k, v = (trace[name].astype(np.float64) for name in ("q_rot", "present_k", "present_v"))
    wanted = np.empty(trace["heads"].shape)
    for b in range(size["B"]):
        hidden = trace.masked[b, 0]
        for r in range(size["H"]):
            scores = np.where(hidden, -np.inf, q[b, r] @ k[b, r // group].T / np.sqrt(size["Dh"]))
            top = scores.max(-1, keepdims=True)
            exponentials = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
            total = exponentials.sum(-1, keepdims=True)
            wanted[b, r] = exponentials / np.where(total == 0, 1.0, total) @ v[b, r // group]
    gap = apart(trace.tensor("heads"), torch.from_numpy(wanted))
    limit = case.tolerance
    return Point("own", gap <= limit, {"heads": size["H"], "group": group, "gap": gap, "tolerance": limit})


def _shape(case: Case, trace: Trace) -> Point:
    shape = trace.observed_shape("attn_out")
    wanted = (case.spec.B, case.spec.T, case.spec.d_model)
    return Point("shape", shape == wanted, {"shape": times(shape), "wanted": times(wanted)})


def _circle(case: Case) -> Point:
    """cos² + sin² of every angle; YaRN's attention factor scales both tables."""
    cos, sin = (table.double() for table in case.rope(0, case.tokens))
    factor = case.config.yarn.attention_factor if case.config.yarn else 1.0
    gap = float((cos**2 + sin**2 - factor**2).abs().max())
    limit = tolerance("float32")
    values = {"rows": case.tokens, "one": factor**2, "gap": gap, "tolerance": limit}
    return Point("circle", gap <= limit, values)


def _offset(case: Case, trace: Trace) -> Point:
    """Scores of the same queries and keys, all of them SHIFT positions further on. Computed in float32, for the run's
    own rounding is no part of the claim. One token alone has no other to be apart from: it stands twice.
    """
    queries, keys = (trace.tensor(name).float() for name in ("q_norm", "k_norm"))
    alone = queries.shape[2] == 1
    if alone:
        queries, keys = queries.repeat(1, 1, 2, 1), keys.repeat(1, 1, 2, 1)
    group, positions = queries.shape[1] // keys.shape[1], case.config.max_position_embeddings
    shift = min(SHIFT, positions - 2)
    tokens = min(int(queries.shape[2]), positions - shift)  # those that can move on
    queries, keys = queries[:, :, :tokens], keys[:, :, :tokens].repeat_interleave(group, dim=1)

    def scores(start: int) -> Tensor:
        tables = case.rope(start, tokens, queries.device)
        q, k = (rope_module.rotate(x, *tables).cpu().double() for x in (queries, keys))
        return q @ k.transpose(-2, -1)

    here, there = scores(0), scores(shift)
    size = max(float(queries.norm(dim=-1).amax()) * float(keys.norm(dim=-1).amax()), 1e-30)
    gap = float((here - there).abs().max()) / size
    limit = tolerance("float32", tokens + shift, case.config.angle_step)
    values = {"shift": shift, "gap": gap, "tolerance": limit, "tokens": tokens}
    return Point("offset_alone" if alone else "offset", gap <= limit, values, alone)


ROW = Row(
    number=2,
    key="attention",
    check=check,
    lines=(
        Lines("model.attention", "Attention.forward", 'q = self.taps["q"]', 'taps["k_rot"]'),
        Lines("model.attention", "repeat_kv", "if times == 1"),
        Lines("model.rope", "rope_tables", "positions ="),
        Lines("model.rope", "rotate", "first, second"),
    ),
)
