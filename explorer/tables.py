"""Rows as an aligned table of text or as HTML, and numbers as people read them.

Purpose: how ledgers and traces show themselves in terminals and notebooks.
Must not know: what the rows mean.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence
from html import escape

Rows = Sequence[Sequence[str]]


def width(text: str) -> int:
    """Columns that `text` takes on a terminal: wide East Asian letters take two, combining marks none."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def text_table(head: Sequence[str], rows: Rows, right: Collection[int] = ()) -> str:
    """Columns two blanks apart under a rule; those in `right` end flush. No line ends in blanks."""
    widths = [max(map(width, column)) for column in zip(head, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = [
            " " * (w - width(c)) + c if n in right else c + " " * (w - width(c))
            for n, (c, w) in enumerate(zip(cells, widths, strict=True))
        ]
        return "  ".join(padded).rstrip()

    return "\n".join([line(head), "  ".join("-" * w for w in widths), *map(line, rows)])


def html_table(head: Sequence[str], rows: Rows, right: Collection[int] = ()) -> str:
    """The same as an HTML table that needs no style sheet; every cell is escaped."""

    def line(cells: Sequence[str], tag: str) -> str:
        written = [
            f'<{tag} style="text-align:{"right" if n in right else "left"}">{escape(cell)}</{tag}>'
            for n, cell in enumerate(cells)
        ]
        return f"<tr>{''.join(written)}</tr>"

    return f"<table><thead>{line(head, 'th')}</thead><tbody>{''.join(line(r, 'td') for r in rows)}</tbody></table>"


def bytes_text(count: int) -> str:
    """1536 -> "1.5 KiB"."""
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} GiB"
