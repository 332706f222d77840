"""Expression trees: value, text and cells say the same thing, at the edges of float64 too."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.expression import Call, Expr, Num, Product, Ratio, Ref, Sum, dot, minus
from tests.core.arithmetic import evaluate
from tests.core.cases import many

CELLS = {("x", (n,)): value for n, value in enumerate([2.0, -3.0, 0.5, 0.0, -0.0, 1e-30, -1e30])}


def look(name: str, index: tuple[int, ...]) -> float:
    return CELLS[name, index]


LEAVES = st.one_of(
    st.integers(0, len(CELLS) - 1).map(lambda n: Ref("x", (n,))),
    st.floats(-1e3, 1e3, allow_nan=False).map(Num),
)
TREES: st.SearchStrategy[Expr] = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda t: Sum(tuple(t), "D")),
        st.lists(inner, min_size=1, max_size=3).map(lambda f: Product(tuple(f))),
        st.tuples(inner, inner).map(lambda p: Ratio(*p)),
        st.tuples(inner, inner).map(lambda p: minus(*p)),
        inner.map(lambda e: Call("sqrt", Product((e, e)))),
        inner.map(lambda e: Call("exp", Ratio(e, Sum((Num(1.0), Call("sqrt", Product((e, e)))))))),
    ),
    max_leaves=12,
)


@many(400)
@given(TREES)
def test_the_text_read_by_another_parser_gives_the_value(tree: Expr) -> None:
    value, read = tree.value(look), evaluate(tree.substituted(look))
    sizes = [abs(CELLS[r.name, r.index]) for r in tree.refs()]
    if math.isfinite(value) and math.isfinite(read) and max(sizes, default=0) < 1e9:
        assert read == pytest.approx(value, rel=1e-6, abs=1e-6)
    else:
        assert math.isnan(read) == math.isnan(value) or not math.isfinite(value) or not math.isfinite(read)


@many(100)
@given(TREES)
def test_cells_come_in_reading_order(tree: Expr) -> None:
    texts: list[str] = []

    def number(leaf: Expr) -> str:
        if isinstance(leaf, Ref):
            texts.append(str(leaf.index))
        return "1"

    tree.text(number)
    assert texts == [str(ref.index) for ref in tree.refs()]


def test_a_dot_product() -> None:
    expression = dot([Ref("x", (0,)), Ref("x", (1,))], [Ref("x", (2,)), Ref("x", (0,))], "D")
    assert expression.value(look) == 2 * 0.5 - 3 * 2
    assert expression.substituted(look) == "2.0 * 0.5 + (-3.0) * 2.0"
    with pytest.raises(ValueError):
        dot([Ref("x", (0,))], [], "D")


def test_parentheses_stand_where_they_must() -> None:
    a, b, c = Num(2.0), Num(3.0), Num(5.0)
    assert Product((Sum((a, b)), c)).substituted(look) == "(2.0 + 3.0) * 5.0"
    assert Ratio(a, Product((b, c))).substituted(look) == "2.0 / (3.0 * 5.0)"
    assert Ratio(Sum((a, b)), Ratio(b, c)).substituted(look) == "(2.0 + 3.0) / (3.0 / 5.0)"
    assert minus(a, Sum((b, c))).substituted(look) == "2.0 + (-1.0) * (3.0 + 5.0)"
    assert Product((a, Ratio(b, c))).value(look) == evaluate(Product((a, Ratio(b, c))).substituted(look)) == 1.2
    assert Sum(()).substituted(look) == "0.0" and Sum(()).value(look) == 0
    assert Num(-0.0).substituted(look) == "(-0.0)"


def test_edges_of_float64() -> None:
    infinity, zero = Num(math.inf), Num(0.0)
    assert Sum((infinity, Num(1.0))).value(look) == math.inf
    assert math.isnan(Sum((infinity, Num(-math.inf))).value(look))
    assert Ratio(Num(-1.0), zero).value(look) == -math.inf and math.isnan(Ratio(zero, zero).value(look))
    assert Call("exp", Num(1e4)).value(look) == math.inf and Call("exp", Num(-math.inf)).value(look) == 0
    assert math.isnan(Call("sqrt", Num(-1.0)).value(look))
    assert Sum(tuple(Num(x) for x in (1e16, 1.0, -1e16))).value(look) == 1.0, "summed without losing digits"
    assert Sum((Num(0.25), Num(-math.inf, "M"))).substituted(look) == "0.25 + (-inf)"


def test_the_tests_parser_takes_arithmetic_alone() -> None:
    assert evaluate("-(1 + 2) * 3 / exp(0.0) + sqrt(16.0)") == -5
    for text in ("__import__('os')", "2 ** 3", "x", "exp(1, 2)", "[1]", "1 if 1 else 2", "'a'", "True + lambda: 1"):
        with pytest.raises((ValueError, SyntaxError)):
            evaluate(text)
