"""What one row of the bridge is, and what its check finds.

Purpose: Row, Found and Point.
Must not know: which rows there are, what they check, the page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from explorer.bridge.text import Text, text
from explorer.spec import RunSpec
from explorer.stages.source import Excerpt, Lines, excerpt


@dataclass(frozen=True)
class Point:
    """One thing that was looked at.

    key:     the sentence that says it, in the row's text
    holds:   whether it is as it must be
    values:  what fills the sentence, the numbers that were found among it
    nearest: it cannot be looked at in the run itself; this is the nearest case in which it can
    """

    key: str
    holds: bool
    values: Mapping[str, Any]
    nearest: bool = False


@dataclass(frozen=True)
class Found:
    """Everything that one check looked at, in order."""

    points: tuple[Point, ...]

    @property
    def holds(self) -> bool:
        """Whether all of it is as it must be."""
        return all(point.holds for point in self.points)


@dataclass(frozen=True)
class Row:
    """One step from the course's block to MiniMind.

    number, key: 1–6 and the name of its texts
    check:       runs the block that a spec describes and says what it found. Raises SpecError where that is more work
                 than one request may ask for, and allowance.Stopped
    lines:       which lines of the model do what the row adds
    slow:        the check imports transformers, which takes seconds the first time
    """

    number: int
    key: str
    check: Callable[[RunSpec], Found] = field(repr=False)
    lines: tuple[Lines, ...] = field(repr=False)
    slow: bool = False

    def text(self, lang: str = "en") -> Text:
        """Title, what it adds, what must hold, and the sentences of its points. Raises LookupError."""
        return text(self.key, lang)

    @property
    def code(self) -> tuple[Excerpt, ...]:
        """The lines themselves, read from the source."""
        return tuple(excerpt(lines) for lines in self.lines)

    def sentences(self, found: Found, lang: str = "en") -> list[str]:
        """One sentence a point, with its numbers, as safe HTML."""
        words = self.text(lang)
        return [words.say(point.key, point.values) for point in found.points]
