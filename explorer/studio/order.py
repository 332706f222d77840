"""Exercise 1: the eight stages in order.

Must not know: the page.
"""

from __future__ import annotations

from typing import Any

from explorer.stages import STAGES
from explorer.studio.exercise import Marked, Task, shuffled
from explorer.studio.texts import Texts
from explorer.studio.typed import choice, parts

MOST_AT_HOME = 1  # stages that may stand at their place from the start


def _mixed(seed: int) -> list[int]:
    """The stages, from 0, in the order in which they are handed out."""
    places = list(range(len(STAGES)))
    for attempt in range(50):
        mixed = shuffled(places, seed, f"order {attempt}")
        if sum(a == b for a, b in zip(mixed, places, strict=True)) <= MOST_AT_HOME:
            return mixed
    return places[::-1]


def task(seed: int, texts: Texts) -> Task:
    return {"items": [STAGES[n].text(texts.lang).title for n in _mixed(seed)]}


def mark(answer: Any, seed: int, texts: Texts) -> Marked:
    """answer: the items' numbers in the order in which they stand now."""
    count = len(STAGES)
    given = [choice(part, count) for part in parts(answer, count)]
    if sorted(-1 if n is None else n for n in given) != list(range(count)):
        return Marked((None,) * count, ("",) * count, texts.say("unread"), False)
    mixed = _mixed(seed)
    marks = tuple(mixed[n] == place for place, n in enumerate(given) if n is not None)
    done = all(marks)
    verdict = texts.say("done") if done else texts.say("not_yet", right=sum(marks), of=count)
    return Marked(marks, ("",) * count, verdict, done)
