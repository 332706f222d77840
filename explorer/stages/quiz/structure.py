"""Questions about structure: the shape of a quantity, the axis that a sum runs along, the stage that computes it.

Must not know: other kinds of questions, the page.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any

from explorer.expression import Sum
from explorer.quantities import QUANTITIES
from explorer.stages.quiz.question import Asker, Draft, axis_symbol, nodes
from explorer.stages.terms import meaning

Axes = tuple[str, ...]
MISTAKEN = {
    "H": "Hkv", "Hkv": "H", "Dh": "D", "D": "F", "F": "D", "Tk": "Tq", "Tq": "Tk", "E": "k", "k": "E", "C": "Dh",
}  # fmt: skip
SUMMED = ("D", "Dh", "Tk", "H", "F", "C", "B", "")


def shape(asker: Asker) -> Draft:
    """What shape has it in this run?"""
    name = asker.chance.choice(asker.outputs)
    sizes, axes = asker.look.n, QUANTITIES[name].axes
    right = _times(sizes[letter] for letter in axes)
    why = asker.say("shape.why", axes=_times(axis_symbol(letter) for letter in axes), shape=right)
    text = asker.say("shape", symbol=asker.symbol(name), title=asker.title(name))
    hint = asker.say("shape.hint", count=len(axes))
    return Draft(name, text, right, _wrong_shapes(axes, sizes, asker.chance), why, hint)


def _times(parts: Iterable[Any]) -> str:
    return "×".join(map(str, parts))


def _wrong_shapes(axes: Axes, sizes: dict[str, int], chance: random.Random) -> Iterator[str]:
    mistaken = [other for other in _mistaken_axes(axes) if all(sizes[letter] for letter in other)]
    chance.shuffle(mistaken)
    yield from (_times(sizes[letter] for letter in other) for other in mistaken)
    lengths = [sizes[letter] for letter in axes]
    for step in (1, 2, 3):  # where lengths coincide, mistakes look right: take other lengths
        at = chance.randrange(len(lengths))
        yield _times(n + step * (i == at) for i, n in enumerate(lengths))


def _mistaken_axes(axes: Axes) -> list[Axes]:
    """Axes as somebody might mix them up."""
    found = [(*axes[:-2], axes[-1], axes[-2])]
    found += [(*axes[:i], MISTAKEN[a], *axes[i + 1 :]) for i, a in enumerate(axes) if a in MISTAKEN]
    if len(axes) == 4:
        found += [(axes[0], axes[2], axes[1], axes[3]), (axes[0], *axes[2:])]
        found += [(axes[0], axes[2], "C")] if axes[-1] == "Dh" else []
    else:
        found += [axes[1:], ("B", "H", *axes[1:])]
    return found


def axis(asker: Asker) -> Draft | None:
    """Along which axis does the sum run that makes one cell?"""
    name = asker.chance.choice(asker.outputs)
    expression = asker.expression(name, asker.corner(name))
    if expression is None:
        return None
    count = len({(ref.name, ref.index) for ref in expression.refs()})
    sums = {
        node.over: sum(any(True for _ in term.refs()) for term in node.terms)
        for node in nodes(expression)
        if isinstance(node, Sum) and node.over
    }
    if not count or len(sums) > 1:
        return None  # a constant, or several sums at once
    letter = next(iter(sums), "")
    if letter:
        told = {"symbol": axis_symbol(letter), "meaning": meaning(letter, asker.lang)}
        why = asker.say("axis.why", terms=sums[letter], **told)
    else:
        why = asker.say("axis.why.none", count=count)
    others = [other for other in SUMMED if other != letter]
    asker.chance.shuffle(others)
    text = asker.say("axis", symbol=asker.symbol(name), title=asker.title(name))
    wrong = (_axis_option(asker, x) for x in others)
    return Draft(name, text, _axis_option(asker, letter), wrong, why, _axis_hint(asker, name, letter))


def _axis_hint(asker: Asker, name: str, letter: str) -> str:
    """Where no sum runs, the one that is easily taken for it: that of the quantity which this one is made from."""
    sources = [source for source in QUANTITIES[name].inputs if source in QUANTITIES and QUANTITIES[source].mixes]
    if letter or not sources:
        return asker.say("axis.hint")
    source = sources[0]
    return asker.say("axis.hint.before", summed=axis_symbol(QUANTITIES[source].mixes), source=asker.symbol(source),
                     symbol=asker.symbol(name))  # fmt: skip


def _axis_option(asker: Asker, letter: str) -> str:
    if not letter:
        return asker.say("axis.none")
    return asker.say("axis.option", symbol=axis_symbol(letter), meaning=meaning(letter, asker.lang))


def stage(asker: Asker) -> Draft:
    """Which stage computes it? Wrong answers are the stages around the right one."""
    name = asker.chance.choice(asker.outputs)
    near = sorted((n for n in range(1, 9) if n != asker.stage), key=lambda n: (abs(n - asker.stage), n))[:4]
    asker.chance.shuffle(near)
    expression = asker.expression(name, asker.corner(name))
    inputs = dict.fromkeys(ref.name for ref in expression.refs()) if expression else {}
    shown = asker.listed(asker.symbol(x) for x in inputs or QUANTITIES[name].inputs)
    text = asker.say("stage", symbol=asker.symbol(name), title=asker.title(name))
    why = asker.say("stage.why", number=asker.stage, inputs=shown)
    wrong = (_stage_option(asker, n) for n in near)
    return Draft(name, text, _stage_option(asker, asker.stage), wrong, why, asker.say("stage.hint"))


def _stage_option(asker: Asker, number: int) -> str:
    return asker.say("stage.option", number=number, title=asker.titles[number - 1])
