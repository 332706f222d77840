"""What a token is called in a drawing: its position, and its text where a text was read.

Purpose: short labels from a visitor's text that cannot do harm: cut, printable, and no markup for Plotly or HTML.
Must not know: torch, Trace, which figure uses them.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any

LONGEST = 10  # Latin characters of a token that are shown, or half as many East Asian ones
VISIBLE = {" ": "␣", "\n": "↵", "\r": "↵", "\t": "⇥"}
PLOTLY = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;"})
BARE = str.maketrans({"<": "‹", ">": "›"})
SLANT = 40  # degrees
CHARACTER = 7  # pixels of a Latin character in a label; East Asian ones take two


@dataclass(frozen=True)
class Positions:
    """The tokens of one batch row.

    past:  how many come from the cache; the first token of this call stands at position `past`
    texts: the text of each, cached ones first; () where no text was read. Any character may be in it.
    """

    past: int = 0
    texts: Sequence[str] = ()

    def text(self, position: int) -> str:
        """The token's text, ready to be shown but not escaped; "" where there is none."""
        return shortened(self.texts[position]) if 0 <= position < len(self.texts) else ""

    def label(self, position: int) -> str:
        """For Plotly, which reads a little HTML: "3 ball", or "3"."""
        return f"{position} {self.text(position).translate(PLOTLY)}".rstrip()

    def called(self, position: int) -> str | int:
        """For sentences: 3 “ball”, or 3. HTML in it is not escaped."""
        text = self.text(position)
        return f"{position} “{text}”" if text else position

    def spoken(self, position: int) -> str | int:
        """For a figure in words, which is plain text: as `called`, with ‹ and › in place of angle brackets."""
        called = self.called(position)
        return called if isinstance(called, int) else called.translate(BARE)

    def labels(self, positions: Iterable[int]) -> list[Any]:
        """What hover texts show: labels, or the numbers alone."""
        return [self.label(int(p)) if self.texts else int(p) for p in positions]

    def axis(self, shown: Iterable[int], across: bool = True) -> dict[str, Any]:
        """What to add to a Plotly axis so that its ticks and hover texts show the tokens at the positions `shown`.

        across: whether the axis runs across the figure, where labels that would touch are slanted.
        """
        if not self.texts:
            return {}
        aliases = {str(p): self.label(p) for p in shown if self.text(p)}
        return {"labelalias": aliases} | ({"autotickangles": [0, -SLANT]} if across else {})

    @property
    def left(self) -> int:
        """Pixels that labels of rows take beyond bare numbers."""
        return max((CHARACTER * _width(self.text(p)) for p in range(len(self.texts))), default=0)

    @property
    def below(self) -> int:
        """Pixels that labels of columns take beyond bare numbers, slanted."""
        return round(self.left * math.sin(math.radians(SLANT)))


NUMBERED = Positions()


@lru_cache(maxsize=4096)
def shortened(text: str) -> str:
    """As much as LONGEST allows, on one line; blanks alone are made visible, what cannot be printed becomes "·".

    Right-to-left marks and other invisible characters are among the latter: they could turn the text around them.
    """
    stripped = text[: 20 * LONGEST].strip() or "".join(VISIBLE.get(c, "·") for c in text[: LONGEST + 1])
    shown = "".join(c if c.isprintable() else VISIBLE.get(c, "·") for c in stripped)
    if _width(shown) <= LONGEST:
        return shown
    fits = accumulate(_width(c) for c in shown)
    return shown[: sum(width < LONGEST for width in fits)] + "…"


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
