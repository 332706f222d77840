"""What each part of the block does, measured: how far the output moves when a part is taken away.

Purpose: the table that ranks what-ifs and tokens. Every row is a real run of the block.
Must not know: gradio, figures.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from explorer.quantities import QUANTITIES
from explorer.run import run
from explorer.spec import RunSpec
from explorer.switches import KINDS, parse_switch

MOST_HEADS = 8  # beyond this many heads, only these are taken away one by one


@dataclass(frozen=True)
class Effect:
    """One what-if and how far it moved the block's output.

    switch: as RunSpec takes it; title: in words; stage: the first stage it touches
    moved:  ‖ΔX_next‖ / ‖X_next‖ over all tokens; tokens: the same for each token of each batch row, [B][T]
    """

    switch: str
    title: str
    stage: int
    moved: float
    tokens: tuple[tuple[float, ...], ...]


def effects(spec: RunSpec) -> list[Effect]:
    """Every what-if that applies to `spec`, the one that moves the output most first.

    Each is run on top of the edits and switches in force, and compared with the run without it.
    """
    output = run(spec)["resid_post"].astype(np.float64)
    measured = [_effect(spec, output, switch) for switch in _applicable(spec) if switch not in spec.switches]
    return sorted(measured, key=lambda e: -e.moved)


def _applicable(spec: RunSpec) -> list[str]:
    plain = [name for name, kind in KINDS.items() if not kind.argument]
    if not spec.normalizes_heads:
        plain.remove("no_qk_norm")
    heads = [f"without_head:{n}" for n in range(min(spec.h, MOST_HEADS))] if spec.h > 1 else []
    experts = [f"expert:{n}" for n in range(spec.experts)]
    return plain + heads + experts


def _effect(spec: RunSpec, output: NDArray[np.float64], switch: str) -> Effect:
    changed = run(replace(spec, switches=(*spec.switches, switch)))["resid_post"].astype(np.float64)
    difference, size = np.linalg.norm(changed - output, axis=-1), np.linalg.norm(output, axis=-1)
    tokens = np.divide(difference, size, out=np.zeros_like(size), where=size > 0)
    whole = float(np.linalg.norm(difference)) / max(float(np.linalg.norm(size)), 1e-30)
    kind = parse_switch(switch).kind
    title = f"{kind.title} ({switch.partition(':')[2]})" if kind.argument else kind.title
    stage = min(QUANTITIES[name].stage for name in kind.rules)
    return Effect(switch, title, stage, whole, tuple(tuple(map(float, row)) for row in tokens))
