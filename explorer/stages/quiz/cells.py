"""Questions about numbers: what one small cell comes to, and how many keys a query may see.

Must not know: other kinds of questions, the page.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape
from typing import TypeAlias

from explorer.draw.numbers import number, row
from explorer.expression import Call, Expr, Lookup, Num, Product, Ratio, Sum
from explorer.quantities import QUANTITIES
from explorer.stages.look import agrees
from explorer.stages.quiz.question import Asker, Draft

MOST_GIVEN = 4  # numbers of one tensor that a question gives
TRIES = 40  # cells that are looked at to find one that can be asked about
APART = 0.02  # how far a wrong value is from the right one and from other wrong ones, relative
Given: TypeAlias = dict[str, list[tuple[int, ...]]]


def value(asker: Asker) -> Draft | None:
    """What is this cell, given the cells it is made from? Only where they are few and no edit stepped in."""
    names = [name for name in asker.outputs if QUANTITIES[name].scale != "index"]
    trace = asker.look.trace
    for _ in range(TRIES):
        if not names:
            return None
        name = asker.chance.choice(names)
        index = _some_cell(asker, name)
        expression = asker.expression(name, index)
        given = _given(expression) if expression else {}
        count = sum(map(len, given.values()))
        if expression is None or not count or max(map(len, given.values())) > MOST_GIVEN:
            names.remove(name)
            continue
        right, found = expression.value(trace.value), trace.value(name, index)
        untouched = found == trace.computed(name, index) and agrees(found, right, size=0.0)
        if count > 1 and math.isfinite(right) and untouched:  # one number alone would only be copied
            return _value(asker, name, index, expression, given)
    return None


def _some_cell(asker: Asker, name: str) -> tuple[int, ...]:
    """A cell of the batch row and head that are looked at; where keys are many, of an early query, which sees few."""
    look, letters = asker.look, QUANTITIES[name].axes
    at = {"B": look.b, "H": look.h, "Hkv": look.kv}
    most = {"Tq": MOST_GIVEN - look.past} if look.n["Tk"] > MOST_GIVEN and name in ("probs", "heads") else {}
    index = []
    for letter in letters:
        n = look.n[letter]
        index.append(at[letter] if letter in at else asker.chance.randrange(max(1, min(n, most.get(letter, n)))))
    if letters[-2:] == ("Tq", "Tk"):  # a key that comes later would be hidden
        index[-1] = min(index[-1], look.past + index[-2])
    return tuple(index)


def _given(expression: Expr) -> Given:
    """Name -> the cells of it that are read, each once, in order."""
    found: Given = {}
    for ref in expression.refs():
        cells = found.setdefault(ref.name, [])
        if ref.index not in cells:
            cells.append(ref.index)
        if len(cells) > MOST_GIVEN:
            return found
    return {name: sorted(cells) for name, cells in found.items()}


def _value(asker: Asker, name: str, index: tuple[int, ...], expression: Expr, given: Given) -> Draft:
    lookup = asker.look.trace.value
    right = expression.value(lookup)
    told = []
    for source, cells in given.items():
        values = [lookup(source, cell) for cell in cells]
        written = row(list(map(_clean, values))) if len(values) > 1 else number(_clean(values[0]))
        told.append(asker.say("value.given", symbol=asker.symbol(source), row=written))
    cell = f"{asker.symbol(name)}[{', '.join(map(str, index))}]"
    text = asker.say("value", given=asker.listed(told), cell=cell, title=asker.title(name))
    why = asker.say("value.why", calculation=calculation(expression, lookup), value=number(right))
    wrong = _wrong_values(asker, name, index, expression)
    return Draft(name, text, number(right), wrong, why, asker.say("value.hint"), index)


def _clean(x: float, scale: float = 1e-12) -> float:
    """0 for what is only the rounding of 0."""
    return 0.0 if abs(x) < scale else x


def calculation(expression: Expr, lookup: Lookup) -> str:
    """The expression with its numbers: (1·1 + 1·(−1)) / √(2), and 1 − 2 for what is stored as 1 + −1 · 2."""

    def leaf(node: Expr) -> str:
        if isinstance(node, Num) and node.number == -1 and not node.symbol:
            return "~"
        written = number(_clean(node.value(lookup)))
        return f"({written})" if written.startswith("−") else written

    text = expression.text(leaf).replace(" * ", "·").replace("sqrt(", "√(")
    return text.replace(" + ~·", " − ").replace("~·", "−")


def _wrong_values(asker: Asker, name: str, index: tuple[int, ...], expression: Expr) -> Iterator[str]:
    """Values that a likely mistake gives, then cells nearby, then others; all well apart."""
    lookup = asker.look.trace.value
    right = expression.value(lookup)
    length = asker.look.n[QUANTITIES[name].axes[-1]]
    nearby = [lookup(name, (*index[:-1], j)) for j in range(min(length, 4)) if j != index[-1]]
    others = [-right, 2 * right, right / 2, right + 1, right - 1, 3 * right + 1]
    taken = [right]
    for value in [*mistakes(expression, lookup), *nearby, *others]:
        candidate = _clean(value, 1e-5 * max(1.0, abs(right)))
        if math.isfinite(candidate) and all(_apart(candidate, x) for x in taken):
            taken.append(candidate)
            yield number(candidate)


def _apart(a: float, b: float) -> bool:
    return abs(a - b) > APART * max(abs(a), abs(b), 1e-3)


def mistakes(node: Expr, lookup: Lookup) -> Iterator[float]:
    """What comes out when a part is forgotten, added where it should be multiplied, and the like."""
    match node:
        case Ratio(top, Call("sqrt", inside) as bottom):
            yield from (top.value(lookup), _over(top.value(lookup), inside.value(lookup)))
            yield top.value(lookup) * bottom.value(lookup)
        case Ratio(top, bottom):
            yield top.value(lookup)
            yield from (_over(x, bottom.value(lookup)) for x in mistakes(top, lookup))
        case Sum(terms) if len(terms) > 1:
            values = [term.value(lookup) for term in terms]
            yield from (sum(values) - 2 * values[-1], sum(values) - values[-1], sum(values) / len(values))
            yield sum(values) - values[0]
        case Product((Ratio() as first, *rest)):
            factor = math.prod(x.value(lookup) for x in rest)
            yield from (factor * x for x in mistakes(first, lookup))
        case Product(factors):
            values = [factor.value(lookup) for factor in factors]
            yield from (sum(values), values[0])
        case Call("exp", inside):
            yield inside.value(lookup)


def _over(top: float, bottom: float) -> float:
    return top / bottom if bottom else math.nan


def seen(asker: Asker) -> Draft | None:
    """How many keys may the query see? For the stage that adds the mask, while no edit has opened it."""
    look = asker.look
    if "masked_scores" not in asker.outputs or "masked_scores" in look.trace.edited:
        return None
    t = asker.chance.randrange(look.n["Tq"])
    hidden, keys = int(look.masked[t].sum()), look.n["Tk"]
    future = int(look.future[t].sum())
    right = keys - hidden
    wrong = [x for x in (right + 1, hidden, keys, right - 1, t, right + 2, right + 3) if x >= 0]
    told = {"keys": keys, "future": future, "padded": hidden - future, "seen": right}
    query = escape(str(look.tokens.called(look.past + t)), quote=False)
    text = asker.say("seen", query=query, b=look.b)
    why, hint = asker.say("seen.why", **told), asker.say("seen.hint")
    return Draft("masked_scores", text, str(right), map(str, wrong), why, hint)
