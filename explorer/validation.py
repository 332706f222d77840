"""What makes a RunSpec runnable: types, sizes that fit together, bounds on work, edits that exist.

Purpose: every check of RunSpec, each message saying what was given, what is allowed and what to do.
Must not know: torch, how the block is computed, the page.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from explorer.limits import MAX_POSITIONS, Limits
from explorer.offers import OFFERS, message_for_unknown
from explorer.quantities import K_GAMMA, Q_GAMMA, QUANTITIES, W_ROUTER, UnknownName
from explorer.switches import SwitchError, parse_switch
from explorer.typed import FLAG, OPTIONAL, REAL, TEXT, WHOLE, amount, shown

if TYPE_CHECKING:
    from explorer.spec import Edit, RunSpec

WEIGHT_SOURCES = ("toy", "random")
ATTENTION_PATHS = ("auto", "explicit", "flash")
DTYPES = ("float32", "bfloat16", "float16")
DEVICES = ("auto", "cpu", "cuda", "mps")
MOST_SWITCHES = 64
LARGEST = {"float32": 3.4e38, "bfloat16": 3.38e38, "float16": 65504.0}  # magnitudes that each dtype still holds


def check_types(spec: RunSpec) -> dict[str, str]:
    errors = {}
    for names, wanted, kind in (
        (WHOLE, (int,), "whole number"),
        (REAL, (int, float), "number"),
        (FLAG, (bool,), "flag, True or False"),
        (TEXT, (str,), "text"),
        (("padding", "switches"), (tuple,), "list, one entry each"),
    ):
        for name in names:
            value = getattr(spec, name)
            if value is None and name in OPTIONAL:
                continue
            if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
                errors[name] = f"{name} = {shown(value)} has the wrong type. It takes a {kind}."
            elif isinstance(value, float) and not math.isfinite(value):
                errors[name] = f"{name} = {value} is not finite. Type a finite number."
    return errors or _check_switches(spec, None)


def _between(errors: dict[str, str], name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        bounds = f"from {amount(low)} to {amount(high)}"
        errors.setdefault(name, f"{name} = {amount(value)} is out of range. Choose a number {bounds}.")


def check_sizes(spec: RunSpec, limits: Limits) -> dict[str, str]:
    errors: dict[str, str] = {}
    for name, high in (("B", limits.B), ("T", limits.T), ("d_model", limits.d_model), ("h", limits.h)):
        _between(errors, name, getattr(spec, name), 1, high)
    _between(errors, "past", spec.past, 0, limits.T)
    _between(errors, "experts", spec.experts, 0, limits.experts)
    if spec.d_ff is not None:
        _between(errors, "d_ff", spec.d_ff, 1, limits.d_ff)
    if errors:
        return errors
    if spec.h_kv is not None:
        _between(errors, "h_kv", spec.h_kv, 1, spec.h)
    if not errors and spec.h % spec.kv_heads:
        allowed = ", ".join(str(n) for n in range(1, spec.h + 1) if spec.h % n == 0)
        errors["h_kv"] = f"h_kv = {spec.kv_heads} does not divide h = {spec.h}. With this h it can be {allowed}."
    if spec.d_h is None and spec.d_model % spec.h:
        near = ", ".join(str(n) for n in range(1, min(spec.d_model, limits.h) + 1) if spec.d_model % (2 * n) == 0)
        errors["h"] = (
            f"h = {spec.h} does not divide d_model = {spec.d_model}. Use h from {near or 'none (d_model is odd)'}, "
            "another d_model, or set d_h."
        )
    elif spec.head_dim % 2 or spec.head_dim < 2 or spec.head_dim > limits.d_model:
        where = "d_h" if spec.d_h is not None else "h"
        errors[where] = (
            f"d_h = {amount(spec.head_dim)} cannot be rotated: RoPE turns feature pairs, so d_h must be even, "
            f"from 2 to {limits.d_model}. Change {'d_h' if spec.d_h is not None else 'h or d_model, or set d_h'}."
        )
    _between(errors, "d_ff", spec.ffn_width, 1, limits.d_ff)
    _between(errors, "experts_per_token", spec.experts_per_token, 1, max(1, spec.experts))
    return errors or _check_work(spec, limits)


def _check_work(spec: RunSpec, limits: Limits) -> dict[str, str]:
    """Bounds on what one run costs, checked before anything is computed."""
    n = spec.sizes
    per_token = n["C"] * 2 + n["Ckv"] * 2 + 3 * n["F"] * max(1, spec.experts_per_token if spec.experts else 1)
    flops = 2 * spec.B * n["Tk"] * (spec.d_model * per_token + 2 * n["C"] * n["Tk"])  # the cache is computed too
    parameters = spec.d_model * (2 * n["C"] + 2 * n["Ckv"] + 3 * n["F"] * max(1, spec.experts))
    for what, needed, limit in (
        ("multiplications", flops, limits.flops),
        ("parameters", parameters, limits.parameters),
    ):
        if needed > limit:
            return {
                "T" if what == "multiplications" else "d_model": (
                    f"This run needs {needed:.2g} {what}; at most {limit:.2g} are allowed here. "
                    "Choose smaller B, T, d_model or d_ff."
                )
            }
    if n["Tk"] > MAX_POSITIONS:
        return {
            "T": f"past + T = {n['Tk']} goes beyond the last position, {MAX_POSITIONS}. Choose a smaller T or past."
        }
    if spec.explicit and spec.score_bytes > limits.score_bytes:
        taken, kept = (f"{n_bytes / 2**20:.0f} MiB" for n_bytes in (spec.score_bytes, limits.score_bytes))
        way_out = "" if spec.needs_scores else ", or attention = flash"
        return {
            "T": (
                f"Scores for B·h·T·T_k = {spec.B}·{spec.h}·{spec.T}·{n['Tk']} take {taken}; at most {kept} are kept "
                f"here. Choose a smaller T or B{way_out}."
            )
        }
    return {}


def check_choices(spec: RunSpec, limits: Limits) -> dict[str, str]:
    """What can be judged whatever the sizes are: choices from lists, and numbers with bounds of their own."""
    errors: dict[str, str] = {}
    for name, allowed in (("attention", ATTENTION_PATHS), ("dtype", DTYPES), ("device", DEVICES)):
        if getattr(spec, name) not in allowed:
            errors[name] = f"{name} = {shown(getattr(spec, name))} is unknown. Choose {', '.join(allowed)}."
    if spec.weights not in WEIGHT_SOURCES and not spec.checkpoint:
        errors["weights"] = f"weights = {shown(spec.weights)} is unknown. Choose toy, random or checkpoint:NAME."
    if spec.checkpoint and spec.checkpoint not in OFFERS:
        errors["weights"] = message_for_unknown(spec.checkpoint)
    elif spec.checkpoint:
        _between(errors, "layer", spec.layer, 0, OFFERS[spec.checkpoint].layers - 1)
    _between(errors, "seed", spec.seed, 0, 2**32 - 1)
    _between(errors, "layer", spec.layer, 0, 999)
    _between(errors, "angle_step", spec.step, -1000, 1000)
    _between(errors, "rope_theta", spec.rope_theta, 2 if spec.yarn else 1e-3, 1e12)  # YaRN divides by its logarithm
    _between(errors, "norm_eps", spec.norm_eps, 1e-12, 1)
    if len(spec.text) > limits.text:
        errors["text"] = f"The text has {len(spec.text)} characters; at most {limits.text} are read. Shorten it."
    return errors


def check_rest(spec: RunSpec, limits: Limits) -> dict[str, str]:
    """What can be judged only when the sizes fit: the toy's weights, padding, edits."""
    errors: dict[str, str] = {}
    if spec.weights == "toy" and (misfit := _toy_misfit(spec)):
        errors[misfit[0]] = misfit[1]
    if spec.padding and len(spec.padding) != spec.B:
        errors["padding"] = f"padding has {len(spec.padding)} counts for B = {spec.B} rows. Give one count a row."
    for count in spec.padding:
        if type(count) is not int or not 0 <= count <= spec.past + spec.T:
            last = spec.past + spec.T
            errors["padding"] = f"padding = {shown(count)} does not fit. Each count goes from 0 to past + T = {last}."
    errors.update(_check_edits(spec, limits))
    return errors


def _toy_misfit(spec: RunSpec) -> tuple[str, str] | None:
    wanted = {"d_model": (spec.d_model, 2), "h": (spec.h, 1), "d_h": (spec.head_dim, 2), "d_ff": (spec.ffn_width, 2)}
    for name, (value, must) in wanted.items():
        if value != must:
            return (
                name,
                f"The toy's weights need {name} = {must}, not {value}. Choose weights = random for other sizes.",
            )
    if spec.experts:
        return "experts", "The toy has a dense feed-forward. Choose weights = random to use experts."
    return None


def _check_edits(spec: RunSpec, limits: Limits) -> dict[str, str]:
    errors: dict[str, str] = {}
    if len(spec.edits) > limits.edits:
        return {"edits": f"{len(spec.edits)} edits are in force; at most {limits.edits} are kept. Remove some."}
    for n, edit in enumerate(spec.edits):
        if message := _check_edit(spec, edit):
            errors[f"edits.{n}"] = message
    return errors | _check_switches(spec, {"h": spec.h, "experts": spec.experts})


def _check_switches(spec: RunSpec, heads_and_experts: dict[str, int] | None) -> dict[str, str]:
    """Whether every switch exists and, where sizes are known to fit, its head or expert too."""
    if len(spec.switches) > MOST_SWITCHES:
        return {"switches": f"{len(spec.switches)} switches are on; at most {MOST_SWITCHES} can be. Remove some."}
    names: tuple[object, ...] = spec.switches
    for text in names:
        if not isinstance(text, str):
            return {"switches": f"{shown(text)} is no switch. Name one, for example no_mask."}
        try:
            switch = parse_switch(text)
            if heads_and_experts is not None:
                switch.check(heads_and_experts)
        except SwitchError as error:
            return {"switches": str(error)}
    return {}


def _check_edit(spec: RunSpec, edit: Edit) -> str | None:
    target: object = edit.target
    if not isinstance(target, str):
        return f"{shown(edit.target)} is no name. Name a quantity or weight, for example resid_pre."
    try:
        shape = spec.shape(edit.target)
    except UnknownName as error:
        return str(error)
    declared = QUANTITIES.get(edit.target)
    if declared and declared.only and (declared.only == "moe") != bool(spec.experts):
        kind = "a mixture of experts" if spec.experts else "a dense feed-forward"
        return f"{edit.target} does not exist in {kind}. Remove this edit."
    if not declared and (message := _weight_absent(spec, edit.target)):
        return message
    if declared and "P" in declared.axes and not spec.past:
        return f"{edit.target} is empty: this run has no cache. Set past to 1 or more, or remove this edit."
    if edit.index and (len(edit.index) != len(shape) or any(
        i is not None and (type(i) is not int or not 0 <= i < n)
        for i, n in zip(edit.index, shape, strict=False)
    )):  # fmt: skip
        return (
            f"{edit.target} has shape {'×'.join(map(str, shape))}; index {shown(list(edit.index))} is outside of it. "
            f"Give {len(shape)} numbers, each below its length."
        )
    return _check_value(spec, edit, shape)


def _weight_absent(spec: RunSpec, name: str) -> str | None:
    dense, expert = name.startswith("mlp.") and name != W_ROUTER, name.startswith("mlp.experts.")
    absent = (
        (dense and not expert and spec.experts)
        or (name == W_ROUTER and not spec.experts)
        or (expert and int(name.split(".")[2]) >= spec.experts)
        or (name in (Q_GAMMA, K_GAMMA) and not spec.normalizes_heads)
    )
    return f"This block has no weight {name!r}. Remove this edit." if absent else None


def _check_value(spec: RunSpec, edit: Edit, shape: tuple[int, ...]) -> str | None:
    if isinstance(edit.value, tuple):
        if edit.index or _nested_shape(edit.value) != shape:
            return f"{edit.target} takes values of shape {'×'.join(map(str, shape))}, one number a cell."
        numbers = _flat(edit.value)
    else:
        numbers = [edit.value]
    minus_infinity = edit.target == "masked_scores"
    tables = edit.target in ("rope_cos", "rope_sin")
    largest = LARGEST["float32"] if tables else LARGEST.get(spec.dtype, math.inf)  # an unknown dtype is said elsewhere
    for x in numbers:
        if isinstance(x, bool) or not isinstance(x, (int, float)):
            return f"{edit.target}: {shown(x)} is not a number. Type a number."
        if not abs(x) <= largest and not (minus_infinity and x == -math.inf):
            extra = " or −inf" if minus_infinity else ""
            return f"{edit.target}: {x:g} does not fit. Type a finite number up to {largest:g} in size{extra}."
        if edit.target == "expert_index" and (x != int(x) or not 0 <= x < spec.experts):
            return f"expert_index: {x:g} is no expert. Experts are numbered 0 to {spec.experts - 1}."
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
