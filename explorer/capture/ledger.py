"""The shape ledger: what every quantity's shape is declared to be, and what it was.

Must not know: torch, figures, the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from explorer.axes import actual_shape, symbolic_shape
from explorer.messages import say
from explorer.quantities import QUANTITIES, near_names
from explorer.tables import bytes_text, html_table, text_table


class ShapeMismatch(ValueError):
    """A captured tensor does not have the shape that its quantity declares."""


@dataclass(frozen=True)
class LedgerRow:
    """One quantity: symbolic ("B×h×T_q×T_k") and actual shape, dtype, bytes, FLOPs.

    agrees: whether the observed shape is the declared one (record refuses a trace where it is not)
    note:   "" or what is special: an alias, an edit, or that it was computed on demand
    shares: the quantity whose memory this is as well, "" for memory of its own
    """

    name: str
    symbol: str
    title: str
    stage: int
    axes: tuple[str, ...]
    symbolic: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    flops: int
    agrees: bool
    note: str
    shares: str = ""


class Ledger(list[LedgerRow]):
    """The rows of one run: a list that shows itself as a table, in notebooks too."""

    HEAD = ("stage", "quantity", "axes", "shape", "dtype", "memory", "FLOPs", "note")
    RIGHT = (5, 6)

    @property
    def bytes(self) -> int:
        """What all quantities take together; memory that two of them share counts once."""
        return sum(row.bytes for row in self if not row.shares)

    @property
    def flops(self) -> int:
        return sum(row.flops for row in self)

    def cells(self) -> list[tuple[str, ...]]:
        """Each row as text."""
        return [
            (
                str(row.stage or "in"), row.name, row.symbolic, "×".join(map(str, row.shape)), row.dtype,
                bytes_text(row.bytes), f"{row.flops:,}", row.note if row.agrees else "not the declared shape",
            )
            for row in self
        ]  # fmt: skip

    def total(self) -> str:
        return f"total: {bytes_text(self.bytes)}, {self.flops:,} FLOPs"

    def __str__(self) -> str:
        return f"{text_table(self.HEAD, self.cells(), self.RIGHT)}\n{self.total()}"

    def _repr_html_(self) -> str:
        return f"{html_table(self.HEAD, self.cells(), self.RIGHT)}<p>{self.total()}</p>"


class Recorded(Protocol):
    """What the ledger reads of a trace."""

    sizes: dict[str, int]
    recomputed: frozenset[str]

    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def edited(self) -> tuple[str, ...]: ...
    @property
    def qk_norm(self) -> bool: ...
    def dtype(self, name: str) -> str: ...
    def shape(self, name: str) -> tuple[int, ...]: ...
    def shares(self, name: str, other: str) -> bool: ...


PASSED_ON = {"q_norm": "q", "k_norm": "k"}  # what these are when there is no norm of queries and keys
ITEM_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "float64": 8, "int64": 8, "int32": 4}


def check_axes(name: str, shape: tuple[int, ...]) -> None:
    """Compare the number of axes alone. Raises ShapeMismatch."""
    axes = QUANTITIES[name].axes
    if len(shape) != len(axes):
        raise ShapeMismatch(
            f"{name} is declared {symbolic_shape(axes)}, which is {len(axes)} axes, "
            f"but {'×'.join(map(str, shape))} was observed."
        )


@lru_cache(maxsize=64)
def _declared(sizes: tuple[tuple[str, int], ...]) -> dict[str, tuple[int, ...]]:
    lengths = dict(sizes)
    return {name: actual_shape(quantity.axes, lengths) for name, quantity in QUANTITIES.items()}


def check_shapes(observed: Mapping[str, tuple[int, ...]], sizes: Mapping[str, int]) -> None:
    """Compare every observed shape with the declared one. Raises ShapeMismatch naming axes and sizes."""
    declared = _declared(tuple(sizes.items()))
    for name, shape in observed.items():
        if name not in declared:
            near = near_names(name, list(QUANTITIES))
            meant = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
            raise ShapeMismatch(f"A tap is named {name!r}, which explorer/quantities.py does not declare.{meant}")
        if shape != declared[name]:
            raise ShapeMismatch(
                f"{name} is declared {symbolic_shape(QUANTITIES[name].axes)} = {'×'.join(map(str, declared[name]))}, "
                f"but {'×'.join(map(str, shape))} was observed."
            )


def ledger(trace: Recorded) -> Ledger:
    """One row for each quantity of the run, in the block's order."""
    rows = Ledger()
    for name in trace.names:
        quantity = QUANTITIES[name]
        shape, declared = trace.shape(name), actual_shape(quantity.axes, trace.sizes)
        dtype = trace.dtype(name)
        cells = 1
        for n in shape:
            cells *= n
        note: str = ""
        if name in trace.edited:
            note = say("edited")
        elif name in trace.recomputed:
            note = say("computed on demand")
        alias = PASSED_ON.get(name, quantity.alias)
        shares = alias if not note and trace.shares(name, alias) else ""
        if shares:
            note = say("same memory as {name}", name=shares)
        flops = 0 if name in PASSED_ON and not trace.qk_norm else quantity.flops(trace.sizes)
        rows.append(
            LedgerRow(
                name, quantity.latex, quantity.title, quantity.stage, quantity.axes, symbolic_shape(quantity.axes),
                shape, dtype, cells * ITEM_BYTES.get(dtype, 4), flops, shape == declared, note, shares,
            )
        )  # fmt: skip
    return rows
