"""What to say of a name that a run does not have, and of an index outside of its shape.

Must not know: figures, the page.
"""

from __future__ import annotations

from collections.abc import Collection
from operator import index as whole
from typing import Any

from numpy.typing import NDArray

from explorer.quantities import EXPERT_WEIGHT, QUANTITIES, WEIGHTS, UnknownName, unknown_name
from explorer.typed import shown


class NotRecorded(UnknownName):
    """A quantity or weight that there is, but not in this run; the message says why, and what to do."""


def missing(
    name: object, recorded: Collection[str], weights: Collection[str], silent: Collection[str], own: bool
) -> UnknownName:
    """The error to raise for a name that is not among `recorded`.

    silent: taps of the block that did not fire; own: whether the block is one of the explorer's.
    """
    if name in WEIGHTS:
        return missing_weight(name, weights)
    if not isinstance(name, str) or name not in QUANTITIES:
        return unknown_name(_text(name), list(recorded), also=[*weights, *(() if own else QUANTITIES)])
    quantity, there = QUANTITIES[name], f"Recorded: {', '.join(recorded)}."
    if "P" in quantity.axes:
        return NotRecorded(
            f"This run has no cache, so there is no {name}. Give record past_key_value, or run a RunSpec with past. "
            f"{there}"
        )
    if own and quantity.only:
        kind, other = ("dense", "with") if quantity.only == "moe" else ("a mixture of experts", "without")
        return NotRecorded(
            f"This run's feed-forward is {kind}, so there is no {name}. Run a RunSpec {other} experts. {there}"
        )
    if name in silent:
        return NotRecorded(
            f"The tap {name!r} did not fire in this run, so there is no {name}. Let the value pass through it in the "
            f'forward pass, {name} = self.taps["{name}"]({name}), and record with keep_scores. {there}'
        )
    return NotRecorded(
        f"This block has no tap {name!r}, so there is no {name} of this run. Add nn.Identity() under that name to its "
        f"taps and let the value pass through it. {there}"
    )


def missing_weight(name: object, weights: Collection[str]) -> UnknownName:
    """The error to raise for a weight that is not among `weights`, those of the block."""
    if isinstance(name, str) and (name in WEIGHTS or EXPERT_WEIGHT.fullmatch(name)):
        return NotRecorded(f"This block has no weight {name}. It has {', '.join(weights) or 'none'}.")
    return unknown_name(_text(name), list(weights))


def outside(name: str, shape: tuple[int, ...], index: Any) -> IndexError:
    """The error to raise for an index that is not one cell of `shape`."""
    given = shown(list(index) if isinstance(index, tuple) else index).strip("'")
    return IndexError(
        f"{name} has shape {'×'.join(map(str, shape))}; index {given} is outside of it. "
        f"Give {len(shape)} numbers, each below its length."
    )


def inside(name: str, shape: tuple[int, ...], index: tuple[int, ...]) -> tuple[int, ...]:
    """The index, if it is that of one cell of `shape`. Raises IndexError in words."""
    try:
        if len(index) == len(shape) and all(0 <= whole(i) < n for i, n in zip(index, shape, strict=True)):
            return index
    except TypeError:  # no numbers
        pass
    raise outside(name, shape, index)


def cell(name: str, array: NDArray[Any], index: Any) -> float:
    """One number; index: a tuple or a list. Raises IndexError in words."""
    try:
        if len(index) == array.ndim and min(index) >= 0:
            return float(array.item(index))
    except (IndexError, TypeError):  # too large, or no whole number
        if isinstance(index, list):
            return cell(name, array, tuple(index))
    raise outside(name, array.shape, index)


def _text(name: object) -> str:
    return name if isinstance(name, str) else repr(name)
