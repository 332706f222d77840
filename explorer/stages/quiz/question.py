"""What a question is, and what its makers work with.

Purpose: Question, Draft (before its answers are shuffled) and Asker (the place, the language, chance).
Must not know: which kinds of questions there are, the page.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import Any

from explorer.axes import AXES
from explorer.draw.numbers import WRITER
from explorer.draw.words import Words, entries, join
from explorer.expression import Expr
from explorer.inspector import mathml, symbol
from explorer.quantities import QUANTITIES, weight_of
from explorer.stages.look import Look
from explorer.stages.prose import HERE
from explorer.stages.terms import title_in

OPTIONS = 4


@dataclass(frozen=True)
class Question:
    """One question with one right answer.

    kind:    "shape", "axis", "stage", "seen" or "value"
    about:   the quantity; index: the cell asked about, () where it is the whole quantity
    text, options, why, hint: HTML; answer: which option is right, from 0; why: one sentence that explains it;
             hint: what to look at after a wrong answer
    """

    kind: str
    stage: int
    about: str
    index: tuple[int, ...]
    text: str
    options: tuple[str, ...]
    answer: int
    why: str
    hint: str


@dataclass(frozen=True)
class Draft:
    """A question with its right answer and candidates for wrong ones, the likeliest mistakes first."""

    about: str
    text: str
    right: str
    wrong: Iterable[str]
    why: str
    hint: str
    index: tuple[int, ...] = ()


@dataclass(frozen=True)
class Asker:
    """look: the place; stage, outputs, titles: its number, what it computes here, all stages' titles; lang; chance."""

    look: Look
    stage: int
    outputs: tuple[str, ...]
    titles: tuple[str, ...]
    lang: str
    chance: random.Random

    def say(self, key: str, **values: Any) -> str:
        """An entry of the language's questions.md; values are HTML."""
        return WRITER.write(texts(self.lang)[key], values)

    def listed(self, parts: Iterable[str]) -> str:
        """Parts one after another, as this language separates them."""
        return join(self.lang, "items", list(parts))

    def symbol(self, name: str) -> str:
        """The symbol of a quantity or weight in its role's colour; without a cache, keys and values have but one."""
        if name in QUANTITIES and QUANTITIES[name].alias and not self.look.past:
            name = QUANTITIES[name].alias
        role = QUANTITIES[name].role if name in QUANTITIES else weight_of(name).role
        return f'<span class="role-{role}">{mathml(symbol(name))}</span>'

    def title(self, name: str) -> str:
        """What it is called."""
        return escape(title_in(self.look.trace, name, self.lang), quote=False)

    def expression(self, name: str, index: tuple[int, ...]) -> Expr | None:
        """How the cell is made; None for an activation that the formulas do not take apart."""
        try:
            return self.look.trace.explain(name, index)
        except ValueError:
            return None

    def corner(self, name: str) -> tuple[int, ...]:
        """The cell at the place that is looked at: its batch row, head and token, and the first of every other axis."""
        look = self.look
        at = {"B": look.b, "H": look.h, "Hkv": look.kv, "T": look.t, "Tq": look.t}
        return tuple(at.get(letter, 0) for letter in QUANTITIES[name].axes)


@cache
def texts(lang: str) -> Words:
    """Key -> template of one language."""
    return entries(HERE / lang / "questions.md")


def axis_symbol(letter: str) -> str:
    """An axis as HTML: "d_model" -> d<sub>model</sub>."""
    return re.sub(r"_([a-z]+)", r"<sub>\1</sub>", AXES[letter].symbol)


def nodes(expression: Expr) -> Iterator[Expr]:
    """The expression and everything in it."""
    yield expression
    for child in expression.children():
        yield from nodes(child)


def shuffled(draft: Draft, kind: str, asker: Asker) -> Question | None:
    """The question with three wrong answers, all different; None where there are not as many."""
    options = [draft.right]
    for candidate in draft.wrong:
        if candidate not in options:
            options.append(candidate)
        if len(options) == OPTIONS:
            break
    if len(options) < OPTIONS:
        return None
    asker.chance.shuffle(options)
    answer = options.index(draft.right)
    return Question(
        kind, asker.stage, draft.about, draft.index, draft.text, tuple(options), answer, draft.why, draft.hint
    )  # fmt: skip
