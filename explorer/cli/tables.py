"""Rows as an aligned table of text, and numbers as people read them.

Must not know: what the rows mean.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence


def width(text: str) -> int:
    """Columns that `text` takes on a terminal: wide East Asian letters take two, combining marks none."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Columns two blanks apart under a rule; those in `right` end flush. No line ends in blanks."""
    columns = list(zip(head, *rows, strict=True))
    widths = [max(map(width, column)) for column in columns]

    def line(cells: Sequence[str]) -> str:
        padded = [
            " " * (w - width(c)) + c if n in right else c + " " * (w - width(c))
            for n, (c, w) in enumerate(zip(cells, widths, strict=True))
        ]
        return "  ".join(padded).rstrip()

    return "\n".join([line(head), "  ".join("-" * w for w in widths), *map(line, rows)])


def bytes_text(count: int) -> str:
    """1536 -> "1.5 KiB"."""
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} GiB"
