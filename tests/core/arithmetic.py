"""A parser for plain arithmetic, so that the text of an explanation is judged by something else than what wrote it.

Knows numbers, inf, nan, + - * /, unary minus, parentheses, sqrt and exp, in float64. Knows nothing of `explorer`.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable

_BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}
_NAMES = {"inf": math.inf, "nan": math.nan}


def evaluate(text: str) -> float:
    """The value of `text`. Raises ValueError for anything that is not plain arithmetic."""
    return _value(ast.parse(text, mode="eval").body)


def _value(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=float() | int() as number):
            return float(number)
        case ast.Name(id=name) if name in _NAMES:
            return _NAMES[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            top, bottom = _value(left), _value(right)
            return top / bottom if bottom else math.nan if top == 0 or math.isnan(top) else math.copysign(math.inf, top)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](_value(left), _value(right))
        case ast.Call(func=ast.Name(id="sqrt"), args=[argument], keywords=[]):
            return math.sqrt(x) if (x := _value(argument)) >= 0 else math.nan
        case ast.Call(func=ast.Name(id="exp"), args=[argument], keywords=[]):
            return math.exp(_value(argument))
    raise ValueError(f"not plain arithmetic: {ast.dump(node)}")
