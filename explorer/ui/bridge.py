"""The bridge on the page: its six rows, and what one row's check finds in the run that is shown.

Purpose: `bridge`. Rows, checks and sentences are explorer.bridge's.
Must not know: gradio, how a check works.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from typing import Any

from explorer.bridge import ROWS
from explorer.messages import say
from explorer.spec import SpecError
from explorer.ui.request import Asked


def bridge(asked: Asked, given: Any, lang: str) -> dict[str, Any]:
    """given: {"row": n} for what the check of row n finds: {"row", "holds", "points": [{"key", "holds", "nearest",
    "text"}]}, texts as HTML. Without a row, the rows themselves: {"rows": […]}.

    Raises SpecError for a row that is not there, and where a check is too much work.
    """
    number = given.get("row") if isinstance(given, Mapping) else None
    if number is None:
        return {"rows": rows(lang)}
    row = next((row for row in ROWS if isinstance(number, int) and row.number == number), None)
    if row is None or number is True:
        message = say("There is no such row. Choose one from 1 to {last}.", last=len(ROWS))
        raise SpecError({"bridge": message})
    found = row.check(asked.spec)
    points = [
        {"key": point.key, "holds": point.holds, "nearest": point.nearest, "text": text}
        for point, text in zip(found.points, row.sentences(found, lang), strict=True)
    ]
    return {"row": number, "holds": found.holds, "points": points}


@cache
def rows(lang: str) -> list[dict[str, Any]]:
    """What never changes: title, what the row adds, what must hold, and the lines that do it."""
    return [
        {"number": row.number, "title": row.text(lang).title, "adds": row.text(lang).adds,
         "check": row.text(lang).check, "slow": row.slow, "code": [asdict(lines) for lines in row.code]}
        for row in ROWS
    ]  # fmt: skip
