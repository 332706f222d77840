"""Reading what a learner typed or chose; it is not trusted.

Purpose: text -> a shape or a number, and choices out of a list; None for whatever is not one.
Must not know: what would be right.
"""

from __future__ import annotations

import math
import re
from typing import Any

from explorer.typed import NARROW

LONGEST = 60  # characters of one field
MOST_AXES = 6
LARGEST = 10**6

_NUMBER = r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+"
_TERM = rf"({_NUMBER})?(?:√\(?({_NUMBER})\)?)?"
_VALUE = re.compile(rf"([+-]?){_TERM}(?:/{_TERM})?")


def parts(answer: Any, count: int, name: str | None = None) -> list[Any]:
    """The answer's parts, as many as asked for; None where one is missing. name: where in a mapping the list stands."""
    given = answer.get(name) if name is not None and isinstance(answer, dict) else answer
    listed = given[:count] if isinstance(given, list) else []
    return [*listed, *[None] * (count - len(listed))]


def blank(text: Any) -> bool:
    """Whether nothing was answered."""
    return text is None or (isinstance(text, str) and not text.strip())


def shape(text: Any) -> tuple[int, ...] | None:
    """ "2x3x5", "[2, 3, 5]", "2 × 3 * 5" -> (2, 3, 5)."""
    if not isinstance(text, str) or len(text) > LONGEST:
        return None
    plain = text.translate(NARROW).strip().removeprefix("torch.Size").strip("()[]{} \t")
    lengths = re.split(r"\s*[x×X✕*·∙,;]\s*|\s+", plain)
    if len(lengths) > MOST_AXES or not all(re.fullmatch(r"[0-9]{1,6}", n) for n in lengths):
        return None
    return tuple(map(int, lengths))


def number(text: Any) -> float | None:
    """ "−1", "0,5", "1/2", "√2", "2√2/3" -> its value; a number itself is taken as it is."""
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        return float(text) if abs(text) <= LARGEST else None
    if not isinstance(text, str) or len(text) > LONGEST:
        return None
    plain = re.sub(r"\s", "", text.translate(NARROW).replace("−", "-").replace("–", "-").lower())
    plain = re.sub(r"sqrt|根号", "√", plain).replace("½", "1/2")
    plain = re.sub(r"[*·×]√", "√", plain)
    plain = plain.replace(",", ".") if plain.count(",") == 1 and "." not in plain else plain
    match = _VALUE.fullmatch(plain)
    if not match or not (match[2] or match[3]) or ("/" in plain and not (match[4] or match[5])):
        return None
    sign, *terms = match.groups()
    top, bottom = (float(n or 1) * math.sqrt(float(root or 1)) for n, root in (terms[:2], terms[2:]))
    if not bottom or not abs(top / bottom) <= LARGEST:
        return None
    return -top / bottom if sign == "-" else top / bottom


def whole(text: Any, low: int, high: int) -> int | None:
    """A whole number of a range, typed or chosen."""
    value = number(text)
    if value is None or value != int(value) or not low <= value <= high:
        return None
    return int(value)


def choice(value: Any, count: int) -> int | None:
    """Which of `count` options was chosen, from 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < count else None
