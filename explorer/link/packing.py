"""The values of whole-tensor edits as short text.

Purpose: nested tuples of float64 <-> `z<shape>_<base64 of deflated little-endian float64>`, exact to the last bit.
Must not know: edits, queries. Unpacking never makes more numbers than it was allowed to.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from typing import Any

MARK = "z"
_MOST_AXES = 4


def count(value: Any) -> int:
    """How many numbers a nested tuple holds; 0 for a single number."""
    if not isinstance(value, tuple):
        return 0
    return sum(count(v) for v in value) if value and isinstance(value[0], tuple) else len(value)


def pack(values: tuple[Any, ...]) -> str:
    """Nested tuples of one shape, at least one number, as text."""
    shape, flat = [len(values)], list(values)
    while isinstance(flat[0], tuple):
        shape.append(len(flat[0]))
        flat = [x for inner in flat for x in inner]
    data = zlib.compress(struct.pack(f"<{len(flat)}d", *flat), 9)
    return f"{MARK}{'x'.join(map(str, shape))}_{base64.urlsafe_b64encode(data).decode().rstrip('=')}"


def unpack(text: str, most: int) -> tuple[Any, ...]:
    """The nested tuples of `text`, at most `most` numbers. Raises ValueError for anything else."""
    sizes, _, data = text.removeprefix(MARK).partition("_")
    parts = sizes.split("x")
    if len(parts) > _MOST_AXES or not all(part.isascii() and part.isdigit() and len(part) < 8 for part in parts):
        raise ValueError("no shape")
    shape = [int(part) for part in parts]
    cells = math.prod(shape)
    if not 1 <= cells <= most:
        raise ValueError(f"{cells} numbers")
    try:
        packed = base64.urlsafe_b64decode(data + "=" * (-len(data) % 4))
        # One byte more than wanted, so that a longer stream is noticed without being unfolded.
        raw = zlib.decompressobj().decompress(packed, cells * 8 + 1)
        values: list[Any] = list(struct.unpack(f"<{cells}d", raw))
    except (zlib.error, struct.error) as error:
        raise ValueError(str(error)) from None
    for n in reversed(shape[1:]):
        values = [tuple(values[i : i + n]) for i in range(0, len(values), n)]
    return tuple(values)
