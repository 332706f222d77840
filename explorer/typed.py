"""Reading what a person typed into a field.

Purpose: text -> a whole number, a number, a flag or a list, with errors that help.
Must not know: RunSpec's rules, torch, the page.
"""

from __future__ import annotations

import math
from operator import index
from typing import Any

from explorer.messages import Message, say

WHOLE = ("B", "T", "d_model", "h", "h_kv", "d_h", "d_ff", "seed", "layer", "past", "experts", "experts_per_token")
REAL = ("angle_step", "rope_theta", "norm_eps")
FLAG = ("yarn", "qk_norm", "norm_topk")
TEXT = ("weights", "text", "attention", "dtype", "device")
OPTIONAL = ("h_kv", "d_h", "d_ff", "angle_step", "qk_norm")
LONGEST_SHOWN = 40
# What a Chinese keyboard writes in place of ASCII: full-width signs and digits, the mark between parts of a list.
NARROW = {wide: chr(wide - 0xFEE0) for wide in range(0xFF01, 0xFF5F)} | {ord("、"): " "}


def read_field(name: str, text: object) -> object:
    """What was typed into the field `name`, as the field's type. Raises ValueError: given, allowed, what to do.

    Edits are not typed as text: they come back as they are.
    """
    if name == "text" or name == "edits":
        return text
    if isinstance(text, str):
        text = (text if name in TEXT else text.translate(NARROW)).strip().replace("−", "-")
    if name == "padding":
        return _read_padding(text)
    if name == "switches":
        return _read_switches(text)
    if name in FLAG:
        return _read_flag(name, text)
    return _read_number(name, text) if name in (*WHOLE, *REAL) else text


def _read_number(name: str, text: object) -> int | float:
    try:  # 1,000 is a thousand to one person and one to another: whole numbers take no comma
        number = math.nan if name in WHOLE and isinstance(text, str) and "," in text else _number(text)
    except (OverflowError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        kind = say("a whole number") if name in WHOLE else say("a number")
        raise ValueError(
            say(
                "{name} = {value} is not a number that can be used. Type {kind}.",
                name=name, value=shown(text), kind=kind,
            )
        )  # fmt: skip
    if name in REAL:
        return number
    if number != int(number):
        raise ValueError(
            say("{name} = {value} is not a whole number. Type a whole number.", name=name, value=shown(text))
        )
    return int(number)


def _number(value: object) -> float:
    """Text as a person writes a number: a decimal comma is a point, as in the page's cells; 1_0 is no number."""
    if isinstance(value, str):
        return math.nan if "_" in value else float(value.replace(",", "."))
    known = isinstance(value, float) or (hasattr(value, "__index__") and not isinstance(value, bool))
    try:
        return float(value) if known else math.nan  # type: ignore[arg-type]
    except TypeError:  # an array of several
        return math.nan


def _read_flag(name: str, text: object) -> bool:
    if isinstance(text, bool):
        return text
    words = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    word = f"{text:g}" if isinstance(text, float) else shown(text).strip("'").lower()
    if (flag := words.get(word)) is None:
        raise ValueError(say("{name} = {value} is neither on nor off. Use on or off.", name=name, value=shown(text)))
    return flag


def _read_padding(text: object) -> tuple[int, ...]:
    parts: Any = text.replace(",", " ").split() if isinstance(text, str) else text
    try:
        return tuple(int(p) if isinstance(p, str) else index(p) for p in (parts if _is_list(parts) else [parts]))
    except (TypeError, ValueError):
        raise ValueError(
            say("padding = {value} is not a list of whole numbers. Type one count a row: 0 2.", value=shown(text))
        ) from None


def _is_list(value: object) -> bool:
    return isinstance(value, (list, tuple))


def _read_switches(text: object) -> tuple[object, ...]:
    parts = text.replace(",", " ").split() if isinstance(text, str) else text
    if isinstance(parts, (list, tuple)):
        return tuple(parts)
    raise ValueError(
        say("switches = {value} is not a list of names. Type them with commas: no_mask, no_rope.", value=shown(text))
    )


def shown(value: object) -> str:
    """`value` as it stands in a message: quoted, and cut when long."""
    if isinstance(value, Message):
        return say("{text!r}", text=value)
    try:
        text = str(value)
    except (ValueError, RecursionError):  # a number of thousands of digits; a list inside a thousand lists
        return say("'a very long {kind}'", kind=type(value).__name__)
    return repr(text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 3] + "…")


def amount(value: float) -> str:
    """A number as it stands in a message: whole numbers in full, others short."""
    if isinstance(value, int):
        return str(value) if abs(value) < 10**15 else shown(value).strip("'")
    return f"{value:g}"
