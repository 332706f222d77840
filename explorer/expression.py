"""How one number was made: a small expression tree over cells of tensors.

Purpose: say once how a cell follows from other cells, then read that statement in four ways: its value in
float64, its substituted text, its MathML, and the set of cells it reads.
Must not know: torch, which quantities exist, the page.

The text form is plain arithmetic (`+ - * / ( ) sqrt exp` and decimal numbers), so any independent parser can
evaluate it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

Index: TypeAlias = tuple[int, ...]
Lookup: TypeAlias = Callable[[str, Index], float]


class Expr:
    """A node. Subclasses are immutable; `value` and `text` take a lookup for the cells they read."""

    precedence = 9

    def value(self, lookup: Lookup) -> float:
        """The node's value in float64."""
        raise NotImplementedError

    def text(self, number: Callable[[Expr], str]) -> str:
        """Plain arithmetic; `number` writes the leaves (Ref and Num)."""
        raise NotImplementedError

    def children(self) -> tuple[Expr, ...]:
        """The nodes directly below this one."""
        return ()

    def refs(self) -> Iterator[Ref]:
        """Every cell read, in reading order, repeats included."""
        for child in self.children():
            yield from child.refs()

    def wrapped(self, number: Callable[[Expr], str], at_least: int) -> str:
        """The text, in parentheses when its outermost operator binds weaker than `at_least`."""
        text = self.text(number)
        return text if self.precedence >= at_least else f"({text})"

    def substituted(self, lookup: Lookup) -> str:
        """The text with every cell replaced by its number, exact to float64."""

        def number(leaf: Expr) -> str:
            x = leaf.value(lookup)
            return f"({x!r})" if x < 0 or math.copysign(1, x) < 0 else repr(x)

        return self.text(number)


@dataclass(frozen=True)
class Ref(Expr):
    """One cell of a named tensor (a quantity, or a weight by its state_dict name)."""

    name: str
    index: Index

    def value(self, lookup: Lookup) -> float:
        return lookup(self.name, self.index)

    def text(self, number: Callable[[Expr], str]) -> str:
        return number(self)

    def refs(self) -> Iterator[Ref]:
        yield self


@dataclass(frozen=True)
class Num(Expr):
    """A constant with the symbol that prose uses for it, for example Num(1e-6, "ε")."""

    number: float
    symbol: str = ""

    def value(self, lookup: Lookup) -> float:
        return self.number

    def text(self, number: Callable[[Expr], str]) -> str:
        return number(self)


@dataclass(frozen=True)
class Sum(Expr):
    """A sum. `over` names the axis letter that is summed away ("" for a plain addition)."""

    terms: tuple[Expr, ...]
    over: str = ""
    precedence = 1

    def value(self, lookup: Lookup) -> float:
        return math.fsum(values) if _finite(values := [t.value(lookup) for t in self.terms]) else sum(values)

    def text(self, number: Callable[[Expr], str]) -> str:
        return " + ".join(t.wrapped(number, 1) for t in self.terms) or "0.0"

    def children(self) -> tuple[Expr, ...]:
        return self.terms


@dataclass(frozen=True)
class Product(Expr):
    """A product of factors."""

    factors: tuple[Expr, ...]
    precedence = 2

    def value(self, lookup: Lookup) -> float:
        result = 1.0
        for factor in self.factors:
            result *= factor.value(lookup)
        return result

    def text(self, number: Callable[[Expr], str]) -> str:
        return " * ".join(f.wrapped(number, 2) for f in self.factors)

    def children(self) -> tuple[Expr, ...]:
        return self.factors


@dataclass(frozen=True)
class Ratio(Expr):
    """top / bottom."""

    top: Expr
    bottom: Expr
    precedence = 2

    def value(self, lookup: Lookup) -> float:
        return _divide(self.top.value(lookup), self.bottom.value(lookup))

    def text(self, number: Callable[[Expr], str]) -> str:
        return f"{self.top.wrapped(number, 2)} / {self.bottom.wrapped(number, 3)}"

    def children(self) -> tuple[Expr, ...]:
        return (self.top, self.bottom)


@dataclass(frozen=True)
class Call(Expr):
    """sqrt(x) or exp(x)."""

    function: str
    argument: Expr

    def value(self, lookup: Lookup) -> float:
        x = self.argument.value(lookup)
        if self.function == "sqrt":
            return math.sqrt(x) if x >= 0 else math.nan
        try:
            return math.exp(x)
        except OverflowError:
            return math.inf

    def text(self, number: Callable[[Expr], str]) -> str:
        return f"{self.function}({self.argument.text(number)})"

    def children(self) -> tuple[Expr, ...]:
        return (self.argument,)


def minus(left: Expr, right: Expr) -> Expr:
    """left − right, written as a sum so that one node type covers both."""
    return Sum((left, Product((Num(-1.0), right))))


def dot(left: list[Ref], right: list[Ref], over: str) -> Expr:
    """Σ left·right over the axis letter `over`."""
    return Sum(tuple(Product(pair) for pair in zip(left, right, strict=True)), over)


def _finite(values: list[float]) -> bool:
    return all(map(math.isfinite, values))


def _divide(top: float, bottom: float) -> float:
    if bottom != 0:
        return top / bottom
    return math.nan if top == 0 or math.isnan(top) else math.copysign(math.inf, top)
