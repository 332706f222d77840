"""One cell opened up: how it was made, with every number in place, down to single multiplications.

Purpose: the cell inspector's content. `inspect` gives the equation in symbols, the same with numbers as a tree whose
leaves are cells that can be opened in turn, and the check of the sum against what the block computed.
Must not know: gradio, figures. Everything is read from the one declaration in explorer.quantities.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from latex2mathml.converter import convert

from explorer.axes import AXES
from explorer.capture import Trace
from explorer.expression import Call, Expr, Index, Num, Product, Ratio, Ref, Sum
from explorer.quantities import QUANTITIES, UnknownName, weight_of

MOST_TERMS = 12  # of a sum with more terms, this many of the largest are written out
MOST_CELLS = 800  # that the page is told to light up
SUM_LETTERS = {"D": "d", "C": "c", "Dh": "j", "Tk": "s", "F": "f", "E": "e", "k": "n"}


@dataclass(frozen=True)
class Inspection:
    """One cell of one run.

    value:    what the block went on with
    computed: what the block computed before an edit replaced it (the same where none did)
    exact:    the expression's value in float64
    given:    True when nothing in the block computes the cell (an input or a weight), and when how it does is not known
              (Trace.explain): then there is the value alone, without an equation
    mathml:   the equation in symbols
    tree:     the equation with numbers; see `_tree`
    cells:    the cells it is made from, each as (name, index)
    """

    name: str
    index: Index
    title: str
    value: float
    computed: float
    exact: float
    given: bool
    mathml: str
    tree: dict[str, Any]
    cells: tuple[tuple[str, Index], ...]

    @property
    def edited(self) -> bool:
        """Whether this cell was set by hand (or by a switch) to something else than the block computed."""
        return self.value != self.computed and not (math.isnan(self.value) and math.isnan(self.computed))

    @property
    def difference(self) -> float:
        """|exact − computed| relative to the larger of the two and 1e-30; 0 where both are the same infinity."""
        if self.exact == self.computed or (math.isnan(self.exact) and math.isnan(self.computed)):
            return 0.0
        return abs(self.exact - self.computed) / max(abs(self.exact), abs(self.computed), 1e-30)

    def as_dict(self) -> dict[str, Any]:
        """For the page: plain data, non-finite numbers left as they are."""
        return {
            "q": self.name, "i": list(self.index), "title": self.title, "value": self.value,
            "computed": self.computed, "exact": self.exact, "edited": self.edited, "given": self.given,
            "difference": self.difference, "mathml": self.mathml, "tree": self.tree,
            "cells": [[name, list(index)] for name, index in self.cells[:MOST_CELLS]],
        }  # fmt: skip


def inspect(trace: Trace, name: str, index: Index) -> Inspection:
    """Open the cell `index` of a quantity or weight. Raises UnknownName, IndexError."""
    value = trace.value(name, index)
    if name not in QUANTITIES or QUANTITIES[name].formula is None or not trace.about.explains:
        return _given(trace, name, index, value)
    expression = trace.explain(name, index)
    cells = _cells(trace, expression)
    if not trace.sizes["P"]:
        expression = _as_shown(trace, expression)
    left = Ref(name, index)
    equation = f"{_latex(left, symbols=True)} = {_latex(expression, symbols=True)}"
    return Inspection(
        name, index, QUANTITIES[name].title, value, trace.computed(name, index), expression.value(trace.value),
        False, mathml(equation), _tree(trace, expression), cells,
    )  # fmt: skip


def _given(trace: Trace, name: str, index: Index, value: float) -> Inspection:
    try:
        title, base = QUANTITIES[name].title if name in QUANTITIES else weight_of(name).title, symbol(name)
    except UnknownName:  # a weight that only this block has
        title, base = name, rf"\text{{{name}}}"
    before = trace.computed(name, index)
    equation = mathml(_indexed(base, [str(i) for i in index]))
    return Inspection(name, index, title, value, before, before, True, equation, _tree(trace, Ref(name, index)), ())


@lru_cache(maxsize=4096)
def mathml(latex: str) -> str:
    """LaTeX -> MathML that browsers draw by themselves."""
    return str(convert(latex))


def symbol(name: str) -> str:
    """The LaTeX symbol of a quantity or weight. Raises UnknownName."""
    return QUANTITIES[name].latex if name in QUANTITIES else weight_of(name).latex


def _as_shown(trace: Trace, node: Expr) -> Expr:
    """Without a cache, "all keys" and "all values" are this call's own: those are named, unless an edit tells apart."""
    match node:
        case Ref(name, index) if own := QUANTITIES[name].alias if name in QUANTITIES else "":
            return Ref(own, index) if trace.value(own, index) == trace.value(name, index) else node
        case Call(function, argument):
            return Call(function, _as_shown(trace, argument))
        case Ratio(top, bottom):
            return Ratio(_as_shown(trace, top), _as_shown(trace, bottom))
        case Product(factors):
            return Product(tuple(_as_shown(trace, f) for f in factors))
        case Sum(terms, over):
            return Sum(tuple(_as_shown(trace, t) for t in terms), over)
    return node


def _cells(trace: Trace, expression: Expr) -> tuple[tuple[str, Index], ...]:
    """The cells read, each once; a cell of the keys or values without a cache counts under both of its names."""
    found: dict[tuple[str, Index], None] = {}
    for ref in expression.refs():
        found[ref.name, ref.index] = None
        quantity = QUANTITIES.get(ref.name)
        if quantity and quantity.alias and not trace.sizes["P"]:
            found[quantity.alias, ref.index] = None
    return tuple(found)


def _tree(trace: Trace, node: Expr) -> dict[str, Any]:
    """The expression as plain data.

    {"op": "cell", "q", "i", "x"}, {"op": "number", "x", "s"}, {"op": "call", "f", "of"}, {"op": "ratio", "top",
    "bottom"}, {"op": "product", "of"}, and {"op": "sum", "over", "axis", "n", "of", "rest"}: "of" holds at most
    MOST_TERMS terms, the largest, in order, and "rest" what the others come to (None when there are none). Every node
    but a leaf carries its value "x".
    """
    match node:
        case Ref(name, index):
            return {"op": "cell", "q": name, "i": list(index), "x": trace.value(name, index)}
        case Num(number, sign):
            return {"op": "number", "x": number, "s": sign}
        case Call(function, argument):
            return {"op": "call", "f": function, "of": _tree(trace, argument), "x": node.value(trace.value)}
        case Ratio(top, bottom):
            parts = {"top": _tree(trace, top), "bottom": _tree(trace, bottom)}
            return {"op": "ratio", **parts, "x": node.value(trace.value)}
        case Product(factors):
            return {"op": "product", "of": [_tree(trace, f) for f in factors], "x": node.value(trace.value)}
        case Sum(terms, over):
            return _sum_tree(trace, node, terms, over)
    raise TypeError(f"no tree for {type(node).__name__}")


def _sum_tree(trace: Trace, node: Sum, terms: tuple[Expr, ...], over: str) -> dict[str, Any]:
    values = [term.value(trace.value) for term in terms]
    shown = list(range(len(terms)))
    if len(terms) > MOST_TERMS:
        by_size = sorted(shown, key=lambda n: -abs(values[n]) if not math.isnan(values[n]) else -math.inf)
        shown = sorted(by_size[: MOST_TERMS - 1])
    written = set(shown)
    rest = [v for n, v in enumerate(values) if n not in written]
    return {
        "op": "sum",
        "over": AXES[over].symbol if over else "",
        "axis": over,
        "n": len(terms),
        "of": [_tree(trace, terms[n]) for n in shown],
        "rest": {"n": len(rest), "x": math.fsum(rest) if all(map(math.isfinite, rest)) else sum(rest)}
        if rest
        else None,
        "x": node.value(trace.value),
    }


def _latex(node: Expr, symbols: bool, at_least: int = 0) -> str:
    text = _latex_of(node, symbols)
    return text if node.precedence >= at_least else rf"\left({text}\right)"


def _latex_of(node: Expr, symbols: bool) -> str:
    match node:
        case Ref(name, index):
            return _indexed(symbol(name), [str(i) for i in index])
        case Num(number, sign):
            return _NUMBER_SYMBOLS.get(sign, sign) if sign else f"{number:g}".replace("inf", r"\infty")
        case Call("sqrt", argument):
            return rf"\sqrt{{{_latex(argument, symbols)}}}"
        case Call("exp", argument):
            return rf"e^{{{_latex(argument, symbols)}}}"
        case Ratio(top, bottom):
            return rf"\frac{{{_latex(top, symbols)}}}{{{_latex(bottom, symbols)}}}"
        case Product((Num(number=-1.0), *factors)):
            return "-" + r"\,".join(_latex(f, symbols, 2) for f in factors)
        case Product(factors):
            if len(factors) == 2 and factors[0] == factors[1]:
                return f"{_latex(factors[0], symbols, 3)}^2"
            return r"\,".join(_latex(f, symbols, 2) for f in factors)
        case Sum(terms, over) if over and len(terms) > 1:
            return _latex_sum(terms, over)
        case Sum(terms):
            return " + ".join(_latex(t, symbols, 1) for t in terms).replace("+ -", "- ")
    raise TypeError(f"no LaTeX for {type(node).__name__}")


def _latex_sum(terms: tuple[Expr, ...], over: str) -> str:
    r"""Σ over one letter: the index positions in which the first two terms differ become that letter."""
    letter = SUM_LETTERS.get(over, "n")
    first, second = (list(t.refs()) for t in terms[:2])
    text = _latex(terms[0], symbols=True, at_least=2)
    for a, b in zip(first, second, strict=True):
        generic = [letter if i != j else str(i) for i, j in zip(a.index, b.index, strict=True)]
        base = symbol(a.name)
        text = text.replace(_indexed(base, [str(i) for i in a.index]), _indexed(base, generic))
    return rf"\sum_{{{letter}}} {text}"


def _indexed(base: str, index: list[str]) -> str:
    """A symbol with an index; one with a subscript of its own stands in parentheses, or γ₁ at 0 would read as γ₁₀."""
    where = ",".join(index)
    if any(mark in base for mark in ("_", "\\odot", "(")):
        return rf"{{\left({base}\right)}}_{{{where}}}"
    return rf"{{{base}}}_{{{where}}}" if "^" in base else rf"{base}_{{{where}}}"


_NUMBER_SYMBOLS = {
    "ε": r"\varepsilon", "d_h": "d_h", "D": r"d_{\text{model}}", "Dh": "d_h", "S": "S", "M": "M", "m": "m",
    "exp(−∞)": r"e^{-\infty}", "arg max": r"\arg\max",
}  # fmt: skip
