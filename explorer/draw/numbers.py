"""How numbers are written in sentences, and how arrays become JSON.

Purpose: one way to write a number (four significant digits, a real minus sign, −∞, NaN) for texts and prose.
Must not know: what the numbers mean.
"""

from __future__ import annotations

import math
import re
import string
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import orjson

Array: TypeAlias = "np.ndarray[Any, Any]"
LONGEST_ROW = 6  # a row of more numbers is cut and ends in "…"


def number(value: float, spec: str = ".4g") -> str:
    """1.41421 -> "1.414", -0.5 -> "−0.5", -inf -> "−∞", 1e-06 -> "1e−6"."""
    value = float(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = format(value + 0.0, spec)
    mantissa, e, exponent = text.partition("e")
    if float(mantissa) == 0:
        mantissa = mantissa.lstrip("-")
    return (f"{mantissa}e{int(exponent)}" if e else mantissa).replace("-", "−")


def degrees(angle: float) -> str:
    """Radians as degrees in full: "90", "3610", and "22918" rather than "2.292e4"."""
    whole = float(np.degrees(angle))
    return number(whole, ".0f" if 1e4 <= abs(whole) < 1e15 else ".4g")


def row(values: Sequence[float] | Array, spec: str = ".4g") -> str:
    """(1, −1); beyond LONGEST_ROW numbers the rest is "…"."""
    long = len(values) > LONGEST_ROW
    shown = [number(v, spec) for v in values[: LONGEST_ROW - long]] + ["…"] * long
    return f"({', '.join(shown)})"


def spoken(symbol: str) -> str:
    """A symbol for plain text: "X<sub>next</sub>" -> "X_next"."""
    return re.sub(r"<sub>(.*?)</sub>", r"_\1", symbol)


class Writer(string.Formatter):
    """str.format with our numbers: floats through `number`, whole numbers plain, arrays and lists through `row`.

    A placeholder without a value raises KeyError, a value without a placeholder ValueError, so that a text and
    the code that fills it cannot drift apart.
    """

    def fields(self, template: str) -> set[str]:
        """The placeholder names of a template."""
        return {name for _, name, _, _ in self.parse(template) if name is not None}

    def write(self, template: str, values: dict[str, Any]) -> str:
        """The template with every placeholder filled. Raises KeyError or ValueError as the class says."""
        unused = values.keys() - self.fields(template)
        if unused:
            raise ValueError(f"Values that no placeholder uses: {', '.join(sorted(unused))}. Template: {template!r}")
        return self.vformat(template, (), values)

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, (bool, str)):
            return str(value)
        if isinstance(value, (int, np.integer)):
            return str(int(value)).replace("-", "−")
        spec = format_spec or ".4g"
        if isinstance(value, (list, tuple, np.ndarray)):
            return row(value, spec)
        return number(value, spec)


WRITER = Writer()


def plain(array: Array, digits: int | None = None) -> list[Any]:
    """Nested lists of the shortest decimals that float32 tells apart; NaN and infinities become None.

    digits: round to so many significant digits, where the exact value does not matter.
    """
    data = np.asarray(array, dtype=np.float64)
    if digits is not None:
        with np.errstate(divide="ignore", invalid="ignore"):
            step = 10.0 ** (np.floor(np.log10(np.abs(data))) - digits + 1)
            data = np.where(np.isfinite(step) & (step > 0), np.round(data / step) * step, data)
    with np.errstate(over="ignore"):
        data = np.ascontiguousarray(data, dtype=np.float32)
    result: list[Any] = orjson.loads(orjson.dumps(data, option=orjson.OPT_SERIALIZE_NUMPY))
    return result
