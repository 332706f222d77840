"""Reading what a person typed into a field.

Purpose: text -> a whole number, a number, a flag or a list, with errors that help.
Must not know: RunSpec's rules, torch, the page.
"""

from __future__ import annotations

import math

WHOLE = ("B", "T", "d_model", "h", "h_kv", "d_h", "d_ff", "seed", "layer", "past", "experts", "experts_per_token")
REAL = ("angle_step", "rope_theta", "norm_eps")
FLAG = ("yarn", "qk_norm", "norm_topk")
OPTIONAL = ("h_kv", "d_h", "d_ff", "angle_step", "qk_norm")


def read_field(name: str, text: object) -> object:
    """What was typed into the field `name`, as the field's type. Raises ValueError: given, allowed, what to do."""
    if isinstance(text, str) and name != "text":
        text = text.strip().replace("−", "-")
    if name == "padding":
        return _read_padding(text)
    if name not in (*WHOLE, *REAL, *FLAG):
        return str(text)
    if name in FLAG:
        return _read_flag(name, text)
    try:
        number = float(text) if isinstance(text, (str, int, float)) else math.nan
    except (OverflowError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        kind = "a whole number" if name in WHOLE else "a number"
        raise ValueError(f"{name} = {shown(text)} is not a number that can be used. Type {kind}.")
    if name in WHOLE:
        if number != int(number):
            raise ValueError(f"{name} = {shown(text)} is not a whole number. Type a whole number.")
        return int(number)
    return number


def _read_flag(name: str, text: object) -> bool:
    if isinstance(text, bool):
        return text
    words = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    if (flag := words.get(str(text).lower())) is None:
        raise ValueError(f"{name} = {shown(text)} is neither on nor off. Use on or off.")
    return flag


def _read_padding(text: object) -> tuple[int, ...]:
    parts = text.replace(",", " ").split() if isinstance(text, str) else text
    try:
        if not isinstance(parts, (list, tuple)):
            raise TypeError
        return tuple(int(p) for p in parts)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"padding = {shown(text)} is not a list of whole numbers. Type one count a row: 0 2."
        ) from None


def shown(value: object) -> str:
    """`value` as it stands in a message: quoted, and cut when long."""
    text = str(value)
    return repr(text if len(text) <= 40 else text[:37] + "…")
