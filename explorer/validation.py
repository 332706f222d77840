"""What makes a RunSpec runnable: types, sizes that fit together, bounds on work, edits that exist.

Purpose: every check of RunSpec, each message saying what was given, what is allowed and what to do.
Must not know: torch, how the block is computed, the page.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import TYPE_CHECKING

from explorer.edit_checks import check_edits
from explorer.limits import MAX_POSITIONS, Limits
from explorer.messages import said, say
from explorer.offers import OFFERS, message_for_unknown
from explorer.switches import SwitchError, parse_switch
from explorer.typed import FLAG, OPTIONAL, REAL, TEXT, WHOLE, amount, shown

if TYPE_CHECKING:
    from explorer.spec import RunSpec

WEIGHT_SOURCES = ("toy", "random")
ATTENTION_PATHS = ("auto", "explicit", "flash")
DTYPES = ("float32", "bfloat16", "float16")
DEVICES = ("auto", "cpu", "cuda", "mps")
MOST_SWITCHES = 64
TYPES = (
    (WHOLE, (int,), say("whole number")),
    (REAL, (int, float), say("number")),
    (FLAG, (bool,), say("flag, True or False")),
    (TEXT, (str,), say("text")),
    (("padding", "switches"), (tuple,), say("list, one entry each")),
)


def check_types(spec: RunSpec) -> dict[str, str]:
    errors: dict[str, str] = {}
    for names, wanted, kind in TYPES:
        for name in names:
            value = getattr(spec, name)
            if value is None and name in OPTIONAL:
                continue
            if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
                errors[name] = say(
                    "{name} = {value} has the wrong type. It takes a {kind}.", name=name, value=shown(value), kind=kind
                )
            elif isinstance(value, float) and not math.isfinite(value):
                errors[name] = say("{name} = {value} is not finite. Type a finite number.", name=name, value=value)
    return errors or _check_switches(spec, None)


def _between(errors: dict[str, str], name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        errors.setdefault(
            name,
            say(
                "{name} = {value} is out of range. Choose a number from {low} to {high}.",
                name=name, value=amount(value), low=amount(low), high=amount(high),
            ),
        )  # fmt: skip


def check_sizes(spec: RunSpec, limits: Limits) -> dict[str, str]:
    """Each size by itself, then with those that it depends on as far as these are right, then the work of all."""
    errors: dict[str, str] = {}
    for name, high in (("B", limits.B), ("T", limits.T), ("d_model", limits.d_model), ("h", limits.h)):
        _between(errors, name, getattr(spec, name), 1, high)
    _between(errors, "past", spec.past, 0, limits.T)
    _between(errors, "experts", spec.experts, 0, limits.experts)
    if spec.d_ff is not None or "d_model" not in errors:
        _between(errors, "d_ff", spec.ffn_width, 1, limits.d_ff)
    if "h" not in errors:
        errors |= _check_key_heads(spec)
    if spec.d_h is not None or not errors.keys() & {"d_model", "h"}:
        errors |= _check_head_dim(spec, limits)
    if "experts" not in errors:
        errors |= _check_experts_per_token(spec)
    return errors or _check_work(spec, limits)


def _check_key_heads(spec: RunSpec) -> dict[str, str]:
    errors: dict[str, str] = {}
    if spec.h_kv is not None:
        _between(errors, "h_kv", spec.h_kv, 1, spec.h)
    if not errors and spec.h % spec.kv_heads:
        allowed = ", ".join(str(n) for n in range(1, spec.h + 1) if spec.h % n == 0)
        errors["h_kv"] = say(
            "h_kv = {h_kv} does not divide h = {h}. With this h it can be {allowed}.",
            h_kv=spec.kv_heads, h=spec.h, allowed=allowed,
        )  # fmt: skip
    return errors


def _check_head_dim(spec: RunSpec, limits: Limits) -> dict[str, str]:
    errors: dict[str, str] = {}
    if spec.d_h is None and spec.d_model % spec.h:
        near = ", ".join(str(n) for n in range(1, min(spec.d_model, limits.h) + 1) if spec.d_model % (2 * n) == 0)
        errors["h"] = (
            say(
                "h = {h} does not divide d_model = {width}. Use h from {near}, another d_model, or set d_h.",
                h=spec.h, width=spec.d_model, near=near,
            ) if near else say(
                "h = {h} does not divide d_model = {width}, and no other h fits either: RoPE turns feature pairs, and "
                "an odd d_model has no even share. Choose an even d_model, or set d_h.",
                h=spec.h, width=spec.d_model,
            )
        )  # fmt: skip
    elif spec.head_dim % 2 or spec.head_dim < 2 or spec.head_dim > limits.d_model:
        where = "d_h" if spec.d_h is not None else "h"
        errors[where] = say(
            "d_h = {d_h} cannot be rotated: RoPE turns feature pairs, so d_h must be even, from 2 to {most}. "
            "Change {what}.",
            d_h=amount(spec.head_dim), most=limits.d_model,
            what="d_h" if spec.d_h is not None else say("h or d_model, or set d_h"),
        )  # fmt: skip
    return errors


def _check_experts_per_token(spec: RunSpec) -> dict[str, str]:
    errors: dict[str, str] = {}
    if spec.experts:
        _between(errors, "experts_per_token", spec.experts_per_token, 1, spec.experts)
    elif spec.experts_per_token != 1:
        errors["experts_per_token"] = say(
            "experts_per_token = {value} is for experts, and this feed-forward is dense. "
            "Choose a number of experts first, or leave it at 1.",
            value=amount(spec.experts_per_token),
        )  # fmt: skip
    return errors


def _check_work(spec: RunSpec, limits: Limits) -> dict[str, str]:
    """Bounds on what one run costs, checked before anything is computed."""
    n = spec.sizes
    earlier = min(max(spec.layer, 0), 999) if spec.checkpoint else 0  # a later block reads what those made
    flops = spec.block_flops * (1 + earlier)
    parameters = spec.d_model * (2 * n["C"] + 2 * n["Ckv"] + 3 * n["F"] * max(1, spec.experts))
    for field, what, needed, limit in (
        ("T", say("multiplications"), flops, limits.flops),
        ("d_model", say("parameters"), parameters, limits.parameters),
    ):
        if needed > limit:
            return {
                field: say(
                    "This run needs {needed:.2g} {what}; at most {limit:.2g} are allowed here. "
                    "Choose smaller B, T, d_model or d_ff.",
                    needed=needed, what=what, limit=limit,
                )
            }  # fmt: skip
    if n["Tk"] > MAX_POSITIONS:
        return {
            "T": say(
                "past + T = {total} goes beyond the last position, {last}. Choose a smaller T or past.",
                total=n["Tk"], last=MAX_POSITIONS,
            )
        }  # fmt: skip
    if spec.explicit and spec.score_bytes > limits.score_bytes:
        return {
            "T": say(
                "Scores for B·h·T·T_k = {B}·{h}·{T}·{keys} take {taken:.0f} MiB; at most {kept:.0f} MiB are kept here. "
                "Choose a smaller T or B{way_out}.",
                B=spec.B, h=spec.h, T=spec.T, keys=n["Tk"],
                taken=spec.score_bytes / 2**20, kept=limits.score_bytes / 2**20,
                way_out="" if spec.needs_scores else say(", or attention = flash"),
            )
        }  # fmt: skip
    return {}


def check_choices(spec: RunSpec, limits: Limits) -> dict[str, str]:
    """What can be judged whatever the sizes are: choices from lists, and numbers with bounds of their own."""
    errors: dict[str, str] = {}
    for name, allowed in (("attention", ATTENTION_PATHS), ("dtype", DTYPES), ("device", DEVICES)):
        if getattr(spec, name) not in allowed:
            errors[name] = say(
                "{name} = {value} is unknown. Choose {allowed}.",
                name=name, value=shown(getattr(spec, name)), allowed=", ".join(allowed),
            )  # fmt: skip
    if spec.weights not in WEIGHT_SOURCES and not spec.checkpoint:
        errors["weights"] = say(
            "weights = {value} is unknown. Choose toy, random or checkpoint:NAME.", value=shown(spec.weights)
        )
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
        errors["text"] = say(
            "The text has {length} characters; at most {most} are read. Shorten it.",
            length=len(spec.text), most=limits.text,
        )  # fmt: skip
    return errors


def check_rest(spec: RunSpec, limits: Limits, wrong: Collection[str]) -> dict[str, str]:
    """What can be judged only when the sizes fit that it depends on: the toy's weights, padding, edits. wrong: sizes
    that do not.
    """
    errors: dict[str, str] = {}
    if spec.weights == "toy" and not {"d_model", "h", "d_h", "d_ff", "experts"} & set(wrong):
        errors |= _toy_misfit(spec)
    if spec.padding and "B" not in wrong and len(spec.padding) != spec.B:
        errors["padding"] = say(
            "padding has {counts} counts for B = {B} rows. Give one count a row.", counts=len(spec.padding), B=spec.B
        )
    for count in () if {"T", "past"} & set(wrong) else spec.padding:
        if type(count) is not int or not 0 <= count <= spec.past + spec.T:
            errors["padding"] = say(
                "padding = {count} does not fit. Each count goes from 0 to past + T = {last}.",
                count=shown(count), last=spec.past + spec.T,
            )  # fmt: skip
    if wrong:
        return errors
    errors |= check_edits(spec, limits)
    return errors | _check_switches(spec, {"h": spec.h, "experts": spec.experts})


def _toy_misfit(spec: RunSpec) -> dict[str, str]:
    wanted = {"d_model": (spec.d_model, 2), "h": (spec.h, 1), "d_h": (spec.head_dim, 2), "d_ff": (spec.ffn_width, 2)}
    for name, (value, must) in wanted.items():
        if value != must:
            message = say(
                "The toy's weights need {name} = {must}, not {value}. Choose weights = random for other sizes.",
                name=name, must=must, value=value,
            )  # fmt: skip
            return {name: message}
    if spec.experts:
        return {"experts": say("The toy has a dense feed-forward. Choose weights = random to use experts.")}
    return {}


def _check_switches(spec: RunSpec, heads_and_experts: dict[str, int] | None) -> dict[str, str]:
    """Whether every switch exists and, where sizes are known to fit, its head or expert too."""
    if len(spec.switches) > MOST_SWITCHES:
        message = say(
            "{count} switches are on; at most {most} can be. Remove some.",
            count=len(spec.switches), most=MOST_SWITCHES,
        )  # fmt: skip
        return {"switches": message}
    names: tuple[object, ...] = spec.switches
    for text in names:
        if not isinstance(text, str):
            return {"switches": say("{text} is no switch. Name one, for example no_mask.", text=shown(text))}
        try:
            switch = parse_switch(text)
            if heads_and_experts is not None:
                switch.check(heads_and_experts)
        except SwitchError as error:
            return {"switches": said(error)}
    return {}
