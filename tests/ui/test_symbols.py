"""Symbols: every quantity and weight has one that can be read, and none is left half written."""

from __future__ import annotations

import re

import pytest

from explorer.axes import AXES
from explorer.quantities import QUANTITIES, WEIGHTS
from explorer.ui.symbols import shape_html, symbol_html, symbol_text

ALL = [q.latex for q in (*QUANTITIES.values(), *WEIGHTS.values())]


@pytest.mark.parametrize(
    ("latex", "html", "text"),
    [
        ("X", "<i>X</i>", "X"),
        (r"\bar X", '<span class="bar"><i>X</i></span>', "X̄"),
        (r"\hat Q", '<span class="hat"><i>Q</i></span>', "Q̂"),
        ("Q'", "<i>Q</i>′", "Q′"),
        ("W_Q", "<i>W</i><sub><i>Q</i></sub>", "W_Q"),
        (r"\gamma_1", "<i>γ</i><sub>1</sub>", "γ_1"),
        (r"X_\text{next}", "<i>X</i><sub>next</sub>", "X_next"),
        (r"W_\text{gate}^{(2)}", "<i>W</i><sub>gate</sub><sup>(2)</sup>", "W_gate^(2)"),
        (r"\mathrm{SiLU}(G)\odot U", "SiLU(<i>G</i>)\u2009⊙\u2009<i>U</i>", "SiLU(G) ⊙ U"),
    ],
)
def test_symbol(latex: str, html: str, text: str) -> None:
    assert symbol_html(latex) == html
    assert symbol_text(latex) == text


@pytest.mark.parametrize("latex", ALL)
def test_nothing_of_latex_is_left(latex: str) -> None:
    assert not re.search(r"[\\{}]", symbol_html(latex) + symbol_text(latex))


def test_shape() -> None:
    assert shape_html(("B", "T", "D")) == "<i>B</i>×<i>T</i>×<i>d</i><sub>model</sub>"
    assert all("\\" not in shape_html((letter,)) for letter in AXES)
