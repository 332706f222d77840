"""What an exercise is, and what marking an answer gives.

Must not know: which exercises there are, the page.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from explorer.studio.texts import Texts

Task = dict[str, Any]
Item = TypeVar("Item")


@dataclass(frozen=True)
class Marked:
    """How good an answer is.

    marks:   one a part of the answer: right, wrong, or None where there was nothing to mark
    hints:   as many; HTML, "" where there is nothing to say
    verdict: one sentence about the whole, HTML; done: whether the exercise is
    more:    what may be shown only now
    """

    marks: tuple[bool | None, ...]
    hints: tuple[str, ...]
    verdict: str
    done: bool
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Exercise:
    """An exercise by its name, which is also that of its texts.

    task: (seed, texts) -> what the learner is shown; holds nothing that is right or wrong
    mark: (answer as it came, seed, texts) -> Marked; takes any answer, never raises for one
    """

    name: str
    task: Callable[[int, Texts], Task]
    mark: Callable[[Any, int, Texts], Marked]

    def title(self, lang: str) -> str:
        """What it is called, HTML."""
        return Texts(self.name, lang).say("title")

    def ask(self, seed: int, lang: str) -> Task:
        """Its task with title and lead."""
        texts = Texts(self.name, lang)
        return {"title": texts.say("title"), "lead": texts.say("lead"), **self.task(seed, texts)}

    def judge(self, answer: Any, seed: int, lang: str) -> Marked:
        """An answer, marked."""
        return self.mark(answer, seed, Texts(self.name, lang))


def shuffled(items: Iterable[Item], seed: int, name: str) -> list[Item]:
    """The items in an order that seed and name decide."""
    mixed = list(items)
    random.Random(f"{name} {seed}").shuffle(mixed)
    return mixed


def summed_up(marks: Iterable[bool | None], texts: Texts) -> str:
    """The sentence about several parts: all right, some, or nothing answered yet."""
    marks = tuple(marks)
    if all(mark is None for mark in marks):
        return texts.say("nothing")
    if all(marks):
        return texts.say("all")
    return texts.say("some", right=sum(mark is True for mark in marks), of=len(marks))
