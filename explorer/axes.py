"""The letters that name tensor axes, used alike in code, ledger, hover texts and prose.

Purpose: one glossary, so that "Tk" means the same thing everywhere.
Must not know: torch, quantities, the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Axis:
    """One axis letter.

    letter:  the name used in axes tuples, for example "Tk"
    symbol:  how prose and formulas write it, for example "T_k"
    meaning: what one step along this axis is
    counts:  what its length is made of, in terms of other letters ("" when it is chosen freely)
    """

    letter: str
    symbol: str
    meaning: str
    counts: str = ""


AXES: dict[str, Axis] = {
    axis.letter: axis
    for axis in (
        Axis("B", "B", "one sequence of the batch"),
        Axis("T", "T", "one token of this call"),
        Axis("Tq", "T_q", "one query: a token of this call that looks", "T"),
        Axis("Tk", "T_k", "one key: a token that can be looked at, cached ones first", "P + T"),
        Axis("P", "P", "one token that is already in the cache"),
        Axis("D", "d_model", "one feature of the residual stream"),
        Axis("H", "h", "one query head"),
        Axis("Hkv", "h_kv", "one key/value head, shared by h / h_kv query heads"),
        Axis("Dh", "d_h", "one feature of a head"),
        Axis("C", "h·d_h", "one feature of the concatenated heads", "H · Dh"),
        Axis("Ckv", "h_kv·d_h", "one feature of the key/value heads side by side", "Hkv · Dh"),
        Axis("F", "d_ff", "one hidden feature of the feed-forward"),
        Axis("E", "E", "one expert"),
        Axis("k", "k", "one of the experts that a token was sent to"),
    )
}


def symbolic_shape(axes: tuple[str, ...]) -> str:
    """("B", "T", "D") -> "B×T×d_model"."""
    return "×".join(AXES[letter].symbol for letter in axes)


def actual_shape(axes: tuple[str, ...], sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The lengths of `axes` under `sizes` (letter -> length)."""
    return tuple(sizes[letter] for letter in axes)
