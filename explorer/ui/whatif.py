"""What-ifs on the page: which switches there are, which apply, and the table of what each part does.

Purpose: turn explorer.switches and explorer.effects into what the browser shows.
Must not know: gradio, how a switch works.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from explorer.capture import Trace
from explorer.effects import MOST_HEADS, effects
from explorer.limits import LIMITS
from explorer.messages import said
from explorer.quantities import QUANTITIES
from explorer.run import run
from explorer.spec import RunSpec, SpecError
from explorer.switches import KINDS, SwitchError, parse_switch

# The order of the panel: along the block.
ORDER = (
    "no_rope", "no_qk_norm", "no_scale", "no_mask", "uniform_attention", "no_first_residual", "no_second_residual",
    "temperature", "only_head", "without_head", "expert",
)  # fmt: skip
ROUNDING = 1e-6  # of the largest number: 0.5 written down and 0.5 from a softmax are the same
MOST_COMPARED = 100_000  # numbers; of a larger quantity nothing is said, as an edit must not wait for it
LONGEST_STRIP = 256  # tokens of a row that the strip shows one by one; beyond it their largest stand for several


def declarations(texts: Mapping[str, Any]) -> list[dict[str, str]]:
    """Every switch as the page builds it: name, label, longer title, and what its argument is."""
    return [
        {"name": name, "label": texts[f"switch_{name}"], "hint": texts[f"switch_{name}_hint"],
         "argument": KINDS[name].argument, "role": _role(name)}
        for name in ORDER
    ]  # fmt: skip


def _role(name: str) -> str:
    return QUANTITIES[next(iter(KINDS[name].rules))].role


def choices(spec: RunSpec) -> dict[str, Any]:
    """What the switches can take under this spec: how many heads and experts, and those that change nothing here."""
    return {"head": spec.h, "expert": spec.experts, "idle": [] if spec.normalizes_heads else ["no_qk_norm"]}


@dataclass(frozen=True)
class Sorted:
    """Switches that can be used, those that only other sizes have, and what is wrong with the rest."""

    fit: tuple[str, ...]
    gone: tuple[str, ...]


def sort(switches: tuple[str, ...], spec: RunSpec) -> Sorted:
    """Those whose head or expert does not exist are told apart. Raises SpecError for one that is wrong by itself."""
    fit, gone = [], []
    for text in switches:
        try:
            switch = parse_switch(text)
        except SwitchError as error:
            raise SpecError({"switches": said(error)}) from None
        try:
            switch.check({"h": spec.h, "experts": spec.experts})
        except SwitchError as error:
            if switch.kind.argument == "number":
                raise SpecError({"switches": said(error)}) from None
            gone.append(text)
        else:
            fit.append(text)
    return Sorted(tuple(dict.fromkeys(fit)), tuple(gone))


def without_effect(trace: Trace, switches: tuple[str, ...]) -> tuple[str, ...]:
    """Those in force that leave every number they set as the block had computed it: even attention made even."""
    rules = ((switch, parse_switch(switch).kind.rules) for switch in switches)
    return tuple(switch for switch, names in rules if all(_unchanged(trace, name) for name in names))


def _unchanged(trace: Trace, name: str) -> bool:
    if name in trace.recomputed or math.prod(trace.shape(name)) > MOST_COMPARED:
        return False
    now, before = trace[name], trace.before(name)
    reach = float(np.abs(before[np.isfinite(before)]).max(initial=0.0))
    with np.errstate(invalid="ignore"):  # −∞ less −∞
        near = np.abs(now - before) <= ROUNDING * reach
    return bool(np.all(near | (now == before) | (np.isnan(now) & np.isnan(before))))


def label(switch: str, texts: Mapping[str, Any]) -> str:
    """A switch in the words of the page, for example "head 2 off"."""
    name, _, argument = switch.partition(":")
    return str(texts[f"switch_{name}_with"]).format(n=argument) if argument else str(texts[f"switch_{name}"])


def table(spec: RunSpec, texts: Mapping[str, Any]) -> dict[str, Any]:
    """The what-if table: rows, the one that moves the output most first. Raises SpecError beside the table, where it
    would take long or a what-if needs more than one run may have, such as scores that the run itself does not keep.
    """
    _bound(spec, texts)
    trace = run(spec)
    try:
        found = effects(spec)
    except SpecError as error:
        raise SpecError({"effects": next(iter(error.errors.values()))}) from None
    return {
        "rows": [
            {"switch": e.switch, "label": label(e.switch, texts), "hint": hint(e.switch, texts), "stage": e.stage,
             "role": _role(e.switch.partition(":")[0]), "moved": e.moved, "tokens": [_strip(row) for row in e.tokens]}
            for e in found
        ],
        "tokens": trace.tokens,
        "past": spec.past,
        "heads_left": max(0, spec.h - MOST_HEADS),
    }  # fmt: skip


def hint(switch: str, texts: Mapping[str, Any]) -> str:
    return str(texts[f"switch_{switch.partition(':')[0]}_hint"])


def _strip(row: tuple[float, ...]) -> list[float]:
    """One number a token, or the largest of several tokens where there are many."""
    step = -(-len(row) // LONGEST_STRIP)
    return [float(f"{max(row[n : n + step]):.4g}") for n in range(0, len(row), step)]


def _bound(spec: RunSpec, texts: Mapping[str, Any]) -> None:
    """All runs together may take as much work as the largest single one."""
    runs = len(_plain()) + min(spec.h, MOST_HEADS) + spec.experts
    if spec.block_flops * runs > LIMITS.flops:
        raise SpecError({"effects": str(texts["effects_too_large"]).format(runs=runs)})


@cache
def _plain() -> tuple[str, ...]:
    return tuple(name for name, kind in KINDS.items() if not kind.argument)
