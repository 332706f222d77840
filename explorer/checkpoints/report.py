"""What a checkpoint holds and what is wrong with it, in words.

Knows names and shapes only; must not know torch, files on disk or how a model is built.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

SHOWN = 12  # lines of one kind before the rest is counted


class CheckpointError(ValueError):
    """A checkpoint that cannot be used. Nothing has been built or changed; the message says what to do next.

    `report` is the comparison of names and shapes, where reading came that far.
    """

    def __init__(self, message: str, report: Report | None = None) -> None:
        super().__init__(message)
        self.report = report


@dataclass(frozen=True)
class Misshaped:
    """A weight whose stored shape is not the one that the configuration gives."""

    name: str
    found: tuple[int, ...]
    expected: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.name}: stored {_shape(self.found)}, the configuration gives {_shape(self.expected)}"


@dataclass(frozen=True)
class Report:
    """The outcome of comparing the stored weights with what the configuration asks for.

    missing and the names in misshaped are MiniMind's names, unexpected ones are as stored. unreadable holds sentences,
    one for each weight whose number format is not a plain float. notes hold what was assumed or left out, in sentences.
    """

    source: str
    layout: str
    files: tuple[str, ...] = ()
    parameters: int = 0  # of the model the configuration describes; a tied head counts once
    stored_bytes: int = 0
    dtypes: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    misshaped: tuple[Misshaped, ...] = ()
    unreadable: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def ok(self) -> bool:
        """Every weight is there once, in the right shape, and nothing is left over."""
        return not (self.missing or self.unexpected or self.misshaped or self.unreadable)

    def problems(self) -> list[str]:
        """One paragraph for each kind of problem; empty when there is none."""
        kinds = (
            ("missing from the file", grouped(self.missing)),
            ("in the file but not in the model", grouped(self.unexpected)),
            ("of the wrong shape", grouped(map(str, self.misshaped))),
            ("in a number format that cannot be read here", grouped(self.unreadable)),
        )
        counts = (len(self.missing), len(self.unexpected), len(self.misshaped), len(self.unreadable))
        return [
            f"{_weights(count)} {what}:\n{_listed(lines)}"
            for count, (what, lines) in zip(counts, kinds, strict=True)
            if count
        ]

    def text(self) -> str:
        """The whole report, ready to print."""
        head = [
            f"Checkpoint   {self.source}",
            f"Layout       {self.layout}",
            f"Files        {', '.join(self.files)} ({human_bytes(self.stored_bytes)}, {', '.join(self.dtypes)})",
            f"Parameters   {human_count(self.parameters)}",
        ]
        verdict = "Every weight is there and fits." if self.ok else "It cannot be loaded."
        notes = [f"Note: {note}" for note in self.notes]
        return "\n".join([*head, *notes, *self.problems(), verdict])


def grouped(names: Iterable[str]) -> list[str]:
    """Names that differ only in their layer or expert number become one line with the count."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(re.sub(r"\b(layers|experts)\.\d+\.", r"\1.*.", name), []).append(name)
    return [members[0] if len(members) == 1 else f"{key}  ({len(members)} of them)" for key, members in groups.items()]


def human_bytes(count: int) -> str:
    """1536 -> "1.5 KiB"."""
    size, unit = float(min(count, 10**30)), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"


def human_count(count: int) -> str:
    """64000000 -> "64,000,000"; past a million billions only that."""
    return f"{count:,}" if count < 10**15 else "over a million billion"


def _listed(lines: list[str]) -> str:
    shown = [f"  {line}" for line in lines[:SHOWN]]
    rest = len(lines) - SHOWN
    return "\n".join([*shown, f"  and {rest} more"] if rest > 0 else shown)


def _weights(count: int) -> str:
    return "1 weight is" if count == 1 else f"{count} weights are"


def _shape(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) if shape else "a single number"
