"""Equations as MathML, written by a few small functions.

Purpose: an equation whose symbols carry their role's colour as a class (`role-q`) and that needs no library to show.
Must not know: the stages, numbers of a run.
"""

from __future__ import annotations

from html import escape


def tag(name: str, *children: str, role: str = "", **attributes: str) -> str:
    """One element; `role` becomes class="role-…"."""
    given = {"class": f"role-{role}", **attributes} if role else attributes
    written = "".join(f' {key.replace("_", "-")}="{escape(value)}"' for key, value in given.items())
    return f"<{name}{written}>{''.join(children)}</{name}>"


def sym(text: str, role: str = "") -> str:
    """A symbol, for example Q; upright when it is a word."""
    return tag("mi", escape(text), role=role)


def num(text: str) -> str:
    """A number."""
    return tag("mn", escape(text))


def op(text: str) -> str:
    """An operator, bracket or comma."""
    return tag("mo", escape(text))


def word(text: str) -> str:
    """Words inside an equation."""
    return tag("mtext", escape(text))


def row(*parts: str, role: str = "") -> str:
    """Parts side by side."""
    return tag("mrow", *parts, role=role)


def sub(base: str, below: str) -> str:
    """base with a subscript."""
    return tag("msub", base, below)


def sup(base: str, above: str) -> str:
    """base with a superscript."""
    return tag("msup", base, above)


def frac(top: str, bottom: str) -> str:
    """A fraction."""
    return tag("mfrac", top, bottom)


def root(*parts: str) -> str:
    """A square root."""
    return tag("msqrt", *parts)


def bar(base: str, role: str = "") -> str:
    """base under a bar."""
    return tag("mover", base, tag("mo", "¯", stretchy="false"), role=role)


def hat(base: str, role: str = "") -> str:
    """base under a hat."""
    return tag("mover", base, tag("mo", "ˆ", stretchy="false"), role=role)


def transposed(base: str) -> str:
    """base with a small T."""
    return sup(base, sym("T"))


def cases(*rows: tuple[str, str]) -> str:
    """A brace over alternatives, each (value, condition)."""
    body = "".join(tag("mtr", tag("mtd", value), tag("mtd", condition)) for value, condition in rows)
    return row(op("{"), tag("mtable", body))


def gap() -> str:
    """A wide space between two equations on one line."""
    return tag("mspace", width="1.5em")


def equation(*parts: str, alt: str) -> str:
    """The whole, as its own paragraph; `alt` says it in plain text."""
    return tag("math", *parts, display="block", alttext=alt)


# The symbols that several stages share.
X, Y, F = sym("X", "resid"), sym("Y", "resid"), sym("F", "ffn")
X_BAR, Y_BAR = bar(sym("X"), "resid"), bar(sym("Y"), "resid")
Q, K, V = sym("Q", "q"), sym("K", "k"), sym("V", "v")
Q_HAT, K_HAT = hat(sym("Q"), "q"), hat(sym("K"), "k")
Q_ROT, K_ROT = sym("Q′", "q"), sym("K′", "k")
S, A, P = sym("S", "score"), sym("A", "score"), sym("P", "prob")
O = sym("O", "v")  # noqa: E741
O_ATTN = tag("msub", sym("O"), word("attn"), role="attn")
D_H = sub(sym("d"), sym("h"))


def weight(letter: str, role: str) -> str:
    """W with a subscript, transposed: weights are stored [out, in]."""
    return tag("msubsup", sym("W"), word(letter) if len(letter) > 1 else sym(letter), sym("T"), role=role)
