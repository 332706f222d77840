"""Whether edits fit a RunSpec: targets that exist, cells within their shapes, values that their dtype holds.

Purpose: every check of an Edit, each message saying what was given, what is allowed and what to do.
Must not know: torch, how an edit is made, the page.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from explorer.limits import Limits
from explorer.messages import said, say
from explorer.quantities import (
    K_GAMMA,
    Q_GAMMA,
    QUANTITIES,
    W_ROUTER,
    WEIGHTS,
    UnknownName,
    expert_weight_name,
    unknown_name,
)
from explorer.typed import shown

if TYPE_CHECKING:
    from explorer.spec import Edit, RunSpec

LARGEST = {"float32": 3.4e38, "bfloat16": 3.38e38, "float16": 65504.0}  # magnitudes that each dtype still holds


def check_edits(spec: RunSpec, limits: Limits) -> dict[str, str]:
    """Whether every edit's target, cells and values exist under `spec`, whose sizes fit; messages by "edits.N"."""
    errors: dict[str, str] = {}
    if len(spec.edits) > limits.edits:
        message = say(
            "{count} edits are in force; at most {most} are kept. Remove some.",
            count=len(spec.edits), most=limits.edits,
        )  # fmt: skip
        return {"edits": message}
    for n, edit in enumerate(spec.edits):
        if wrong := _check_edit(spec, edit):
            errors[f"edits.{n}"] = wrong
    return errors


def _check_edit(spec: RunSpec, edit: Edit) -> str | None:
    target: object = edit.target
    if not isinstance(target, str):
        return say("{target} is no name. Name a quantity or weight, for example resid_pre.", target=shown(target))
    try:
        shape = spec.shape(edit.target)
    except UnknownName:
        return said(unknown_name(edit.target, _targets(spec), listed=False))
    declared = QUANTITIES.get(edit.target)
    if declared and declared.only and (declared.only == "moe") != bool(spec.experts):
        kind = say("a mixture of experts") if spec.experts else say("a dense feed-forward")
        return say("{target} does not exist in {kind}. Remove this edit.", target=edit.target, kind=kind)
    if not declared and (message := _weight_absent(spec, edit.target)):
        return message
    if declared and "P" in declared.axes and not spec.past:
        return say(
            "{target} is empty: this run has no cache. Set past to 1 or more, or remove this edit.", target=edit.target
        )
    if edit.index and (len(edit.index) != len(shape) or any(
        i is not None and (type(i) is not int or not 0 <= i < n)
        for i, n in zip(edit.index, shape, strict=False)
    )):  # fmt: skip
        return say(
            "{target} has shape {shape}; index {index} is outside of it. Give {axes} numbers, each below its length.",
            target=edit.target, shape="×".join(map(str, shape)), index=shown(list(edit.index)), axes=len(shape),
        )  # fmt: skip
    return _check_value(spec, edit, shape)


def _targets(spec: RunSpec) -> list[str]:
    """The names of every quantity and weight that a run of `spec` has."""
    kinds = ("", "moe" if spec.experts else "dense")
    names = [q.name for q in QUANTITIES.values() if q.only in kinds and (spec.past or "P" not in q.axes)]
    of_experts = [expert_weight_name(e, part) for e in range(spec.experts) for part in ("gate", "up", "down")]
    return names + [name for name in (*WEIGHTS, *of_experts) if not _weight_absent(spec, name)]


def _weight_absent(spec: RunSpec, name: str) -> str | None:
    dense, expert = name.startswith("mlp.") and name != W_ROUTER, name.startswith("mlp.experts.")
    absent = (
        (dense and not expert and spec.experts)
        or (name == W_ROUTER and not spec.experts)
        or (expert and int(name.split(".")[2]) >= spec.experts)
        or (name in (Q_GAMMA, K_GAMMA) and not spec.normalizes_heads)
    )
    return say("This block has no weight {name!r}. Remove this edit.", name=name) if absent else None


def _check_value(spec: RunSpec, edit: Edit, shape: tuple[int, ...]) -> str | None:
    if isinstance(edit.value, tuple):
        if edit.index or _nested_shape(edit.value) != shape:
            return say(
                "{target} takes values of shape {shape}, one number a cell.",
                target=edit.target, shape="×".join(map(str, shape)),
            )  # fmt: skip
        numbers = _flat(edit.value)
    else:
        numbers = [edit.value]
    minus_infinity = edit.target == "masked_scores"
    tables = edit.target in ("rope_cos", "rope_sin")
    largest = LARGEST["float32"] if tables else LARGEST.get(spec.dtype, math.inf)  # an unknown dtype is said elsewhere
    for x in numbers:
        if isinstance(x, bool) or not isinstance(x, (int, float)):
            return say("{target}: {value} is not a number. Type a number.", target=edit.target, value=shown(x))
        if not abs(x) <= largest and not (minus_infinity and x == -math.inf):
            return say(
                "{target}: {value:g} does not fit. Type a finite number up to {largest:g} in size{extra}.",
                target=edit.target, value=x, largest=largest, extra=say(" or −inf") if minus_infinity else "",
            )  # fmt: skip
        if edit.target == "expert_index" and (x != int(x) or not 0 <= x < spec.experts):
            return say(
                "expert_index: {value:g} is no expert. Experts are numbered 0 to {last}.",
                value=x, last=spec.experts - 1,
            )  # fmt: skip
    return None


def _nested_shape(value: object) -> tuple[int, ...] | None:
    if not isinstance(value, tuple):
        return ()
    inner = {_nested_shape(v) for v in value}
    if len(inner) != 1 or (first := inner.pop()) is None:
        return None
    return (len(value), *first)


def _flat(value: object) -> list[Any]:
    return [x for v in value for x in _flat(v)] if isinstance(value, tuple) else [value]
