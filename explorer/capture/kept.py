"""Tensors kept by reference, and their read-only numpy copies.

Purpose: know when a kept tensor was changed in place afterwards, and refuse it; convert only what is asked for.
Must not know: quantities' meaning, blocks, the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from explorer.capture.names import missing_weight

Array = NDArray[Any]


class StaleValue(RuntimeError):
    """A captured tensor was changed in place after it was captured."""


class Kept:
    """A tensor by reference and the version it had."""

    __slots__ = ("tensor", "version")

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.version = 0 if tensor.is_inference() else tensor._version

    def read(self, name: str) -> Tensor:
        """The tensor. Raises StaleValue when it was changed since."""
        now = 0 if self.tensor.is_inference() else self.tensor._version
        if now != self.version:
            raise StaleValue(
                f"{name} was changed in place after it was captured (version {self.version}, now {now}). "
                "Record again, and read values before changing the model."
            )
        return self.tensor


@dataclass(frozen=True)
class Mask:
    """Which key a query may not see in MiniMind's order, kept as what it follows from.

    padded [B, P + T]: True for padding, or None.
    """

    batch: int
    tokens: int
    cached: int
    padded: Tensor | None
    device: torch.device

    @cached_property
    def hidden(self) -> Tensor:
        """True where a query may not see a key, [B, 1, Tq, Tk]."""
        keys = self.cached + self.tokens
        later = torch.ones(self.tokens, keys, dtype=torch.bool, device=self.device).triu(self.cached + 1)
        hidden = later[None, None].expand(self.batch, 1, -1, -1)
        return hidden if self.padded is None else hidden | self.padded[:, None, None, :]


class Weights(Mapping[str, Array]):
    """Weights by state_dict name, converted when asked for."""

    def __init__(self, kept: Mapping[str, Kept]) -> None:
        self._kept = kept
        self._arrays: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        if name not in self._kept:
            raise missing_weight(name, self._kept)
        if name not in self._arrays:
            self._arrays[name] = to_numpy(self._kept[name].read(name))
        return self._arrays[name]

    def __contains__(self, name: object) -> bool:
        return name in self._kept

    def __iter__(self) -> Iterator[str]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)


def to_numpy(tensor: Tensor) -> Array:
    tensor = tensor.detach()
    tensor = tensor.float() if tensor.is_floating_point() else tensor.long()
    return read_only(tensor.cpu().numpy().copy())


def read_only(array: Array) -> Array:
    array = np.ascontiguousarray(array)
    array.setflags(write=False)
    return array
