"""Weights as they lie in files: their names, shapes and number formats first, their numbers only when asked for.

Two kinds of file are read, .safetensors and the zip archives that torch.save writes; torch_file.py holds the second.
Must not know what the weights mean.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from explorer.checkpoints.limits import Limits
from explorer.checkpoints.report import CheckpointError, human_bytes

# safetensors' names of the number formats that can be computed with here
FLOATS: Mapping[str, torch.dtype] = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
}
# what one number takes in formats that are recognised but not computed with, in bytes
OTHERS: Mapping[str, int] = {
    name: bits // 8
    for bits, names in {
        8: ("I8", "U8", "BOOL", "F8_E4M3", "F8_E5M2", "F8_E8M0"),
        16: ("I16", "U16"),
        32: ("I32", "U32"),
        64: ("I64", "U64", "C64"),
    }.items()
    for name in names
}
_CHUNK = 1024**2


@dataclass(frozen=True)
class Stored:
    """One weight in a file: its shape, the name of its number format, its size in bytes."""

    shape: tuple[int, ...]
    dtype: str
    size: int


class Weights(Protocol):
    """A set of stored weights. `stored` is known at once; `read` fetches one weight's numbers, in their own memory."""

    files: tuple[str, ...]

    @property
    def stored(self) -> Mapping[str, Stored]: ...

    def read(self, name: str) -> Tensor:
        """The weight as stored. Raises CheckpointError if the file no longer holds what its header says."""
        ...

    def equal(self, one: str, other: str) -> bool:
        """Whether two weights hold the same numbers in the same shape and format."""
        ...


class SafetensorsFiles:
    """One or several .safetensors files read as one set."""

    def __init__(self, paths: Iterable[Path], limits: Limits) -> None:
        self.stored: dict[str, Stored] = {}
        self._places: dict[str, tuple[Path, int]] = {}
        names = []
        for path in paths:
            names.append(path.name)
            for name, (entry, start) in read_header(path, limits).items():
                if name in self.stored:
                    raise CheckpointError(
                        f'"{name}" is in {self._places[name][0].name} and again in {path.name}; '
                        "keep only the files of one checkpoint in the folder"
                    )
                self.stored[name], self._places[name] = entry, (path, start)
        self.files = tuple(names)

    def read(self, name: str) -> Tensor:
        entry = self.stored[name]
        data = bytearray(self._bytes(name, 0, entry.size))
        if not data:
            return torch.empty(entry.shape, dtype=FLOATS[entry.dtype])
        return torch.frombuffer(data, dtype=FLOATS[entry.dtype]).reshape(entry.shape)

    def equal(self, one: str, other: str) -> bool:
        if self.stored[one] != self.stored[other]:
            return False
        return all(
            self._bytes(one, start, _CHUNK) == self._bytes(other, start, _CHUNK)
            for start in range(0, self.stored[one].size, _CHUNK)
        )

    def _bytes(self, name: str, start: int, count: int) -> bytes:
        """Up to `count` bytes of a weight from its byte `start` on."""
        path, begin = self._places[name]
        count = min(count, self.stored[name].size - start)
        try:
            with path.open("rb") as file:
                file.seek(begin + start)
                data = file.read(count)
        except OSError as problem:
            raise CheckpointError(f"{path.name} can no longer be read: {problem.strerror}") from problem
        if len(data) != count:
            raise CheckpointError(f"{path.name} became shorter while it was read; copy it again and retry")
        return data


def read_header(path: Path, limits: Limits) -> dict[str, tuple[Stored, int]]:
    """Each weight of a .safetensors file and the byte at which its numbers start.

    Reads the header alone. Raises CheckpointError unless the weights fill the file exactly, without gap or overlap.
    """
    try:
        total = path.stat().st_size
        with path.open("rb") as file:
            length = struct.unpack("<Q", file.read(8).ljust(8, b"\xff"))[0]
            if 8 + length > total:
                raise CheckpointError(
                    f"{path.name} is not a complete .safetensors file: it is {total} bytes long, shorter than its own "
                    "header; download or save it again"
                )
            if length > limits.header_bytes:
                raise CheckpointError(
                    f"{path.name} has a header of {human_bytes(length)}; "
                    f"at most {human_bytes(limits.header_bytes)} are read"
                )
            text = file.read(length)
    except OSError as problem:
        raise CheckpointError(f"{path.name} cannot be read: {problem.strerror}") from problem
    entries = parse_json(text, f"the header of {path.name}")
    entries.pop("__metadata__", None)
    if len(entries) > limits.names:
        raise CheckpointError(f"{path.name} names {len(entries):,} weights; at most {limits.names:,} are read")
    placed = {name: _entry(path.name, name, entry) for name, entry in entries.items()}
    _check_cover(path.name, placed, total - 8 - length)
    return {name: (stored, 8 + length + start) for name, (stored, start) in placed.items()}


def parse_json(text: bytes, what: str) -> dict[str, object]:
    """A JSON object; CheckpointError for anything else, for a name given twice, and for NaN or infinity."""

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError("a name is given twice")
        return found

    def refuse(constant: str) -> object:
        raise ValueError(f"{constant} is not a JSON number")

    try:
        found = json.loads(text, object_pairs_hook=unique, parse_constant=refuse)
    except (ValueError, RecursionError) as problem:
        raise CheckpointError(f"{what} is not valid JSON ({problem}); the file is damaged") from problem
    if not isinstance(found, dict):
        raise CheckpointError(f"{what} is not a JSON object; the file is damaged")
    return found


def _entry(file: str, name: str, entry: object) -> tuple[Stored, int]:
    """One header entry, checked: its numbers must take exactly the bytes between its two offsets."""
    fields = entry if isinstance(entry, dict) else {}
    dtype, shape, offsets = fields.get("dtype"), _whole(fields.get("shape")), _whole(fields.get("data_offsets"))
    if not isinstance(dtype, str) or shape is None or offsets is None or len(offsets) != 2 or len(shape) > 8:
        raise CheckpointError(f'{file}: the header entry of "{name}" is not a weight; the file is damaged')
    each = FLOATS[dtype].itemsize if dtype in FLOATS else OTHERS.get(dtype)
    size = offsets[1] - offsets[0]
    if size < 0 or (each is not None and size != math.prod(shape) * each):
        raise CheckpointError(
            f'{file}: "{name}" is said to be {"×".join(map(str, shape))} numbers of {dtype}, '
            f"but {size} bytes are set aside for it; the file is damaged"
        )
    return Stored(shape, dtype, size), offsets[0]


def _whole(numbers: object) -> tuple[int, ...] | None:
    """A list of whole numbers from 0 to 2^63, or None."""
    if not isinstance(numbers, list) or not all(type(number) is int and 0 <= number < 2**63 for number in numbers):
        return None
    return tuple(numbers)


def _check_cover(file: str, placed: Mapping[str, tuple[Stored, int]], available: int) -> None:
    end = 0
    for name, (stored, start) in sorted(placed.items(), key=lambda item: (item[1][1], item[1][0].size)):
        if start != end:
            raise CheckpointError(f'{file}: "{name}" starts at byte {start} of the data, not at {end}; it is damaged')
        end = start + stored.size
    if end != available:
        state = "cut short" if end > available else "longer than its header says"
        raise CheckpointError(
            f"{file} is {state}: its header describes {end:,} bytes of numbers, the file holds {available:,}; "
            "download or save it again"
        )
