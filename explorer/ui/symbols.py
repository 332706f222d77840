"""How the page writes the symbol of a quantity, weight or axis: small HTML to look at, plain text to be read aloud.

Must not know: values, gradio. Equations are MathML and come from elsewhere; symbols stand inside lines of text, at
many sizes, where plain italics sit better.
"""

from __future__ import annotations

import html
import re
from functools import cache

from explorer.axes import AXES

_LETTERS = {r"\gamma": "γ", r"\theta": "θ", r"\varepsilon": "ε"}
_WORDS = {r"\odot": "⊙", r"\cos": "cos", r"\sin": "sin", r"\,": " "}
_ACCENTS = {r"\bar": ("bar", "\u0304"), r"\hat": ("hat", "\u0302")}
_TOKEN = re.compile(r"\\[a-zA-Z]+|\\,|[_^]|[{}()']|\s+|\d+|.")


@cache
def symbol_html(latex: str) -> str:
    r"""HTML of a symbol: "W_Q" -> "<i>W</i><sub><i>Q</i></sub>"; words of several letters stand upright."""
    tokens = [t for t in _TOKEN.findall(latex) if t.strip()]
    return _sequence(tokens, 0, len(tokens))


def _sequence(tokens: list[str], at: int, end: int) -> str:
    written = []
    while at < end:
        piece, at = _piece(tokens, at)
        written.append(piece)
    return "".join(written)


def _piece(tokens: list[str], at: int) -> tuple[str, int]:
    """The HTML of what starts at token `at`, and where the next piece starts."""
    token = tokens[at]
    if token in "_^":
        inner, after = _argument(tokens, at + 1)
        tag = "sub" if token == "_" else "sup"
        return f"<{tag}>{inner}</{tag}>", after
    if token in _ACCENTS:
        inner, after = _argument(tokens, at + 1)
        return f'<span class="{_ACCENTS[token][0]}">{inner}</span>', after
    if token in (r"\mathrm", r"\text"):
        close = _closing(tokens, at + 1)
        return html.escape("".join(tokens[at + 2 : close])), close + 1
    if token == "{":
        close = _closing(tokens, at)
        return _group(tokens, at + 1, close), close + 1
    if token == "'":
        return "′", at + 1
    if token in _WORDS:
        return f"{_WORDS[token]}\u2009" if token != r"\odot" else "\u2009⊙\u2009", at + 1
    letter = _LETTERS.get(token, token)
    return (f"<i>{letter}</i>" if letter.isalpha() else html.escape(letter)), at + 1


def _argument(tokens: list[str], at: int) -> tuple[str, int]:
    return _piece(tokens, at)


def _group(tokens: list[str], start: int, end: int) -> str:
    """A group: a word of several letters stands upright, anything else is set as usual."""
    text = "".join(tokens[start:end])
    return html.escape(text) if len(text) > 1 and text.isalpha() else _sequence(tokens, start, end)


def _closing(tokens: list[str], opening: int) -> int:
    depth = 0
    for at in range(opening, len(tokens)):
        depth += {"{": 1, "}": -1}.get(tokens[at], 0)
        if not depth:
            return at
    raise ValueError(f"unbalanced braces in {''.join(tokens)!r}")


@cache
def symbol_text(latex: str) -> str:
    r"""Plain text of a symbol: r"\bar X" -> "X̄", "W_{gate}" -> "W_gate"."""
    text = latex.replace(r"\mathrm", "").replace(r"\text", "")
    for command, (_, accent) in _ACCENTS.items():
        text = re.sub(re.escape(command) + r"\s*(\w)", rf"\1{accent}", text)
    for command, plain in (_LETTERS | _WORDS).items():
        text = text.replace(command, f" {plain} " if plain == "⊙" else plain)
    return " ".join(re.sub(r"[{}]", "", text).replace("'", "′").split())


@cache
def shape_html(axes: tuple[str, ...]) -> str:
    """("B", "T", "D") -> B×T×d with a lowered "model"."""
    return "×".join(symbol_html(re.sub(r"_(\w+)", r"_{\1}", AXES[letter].symbol)) for letter in axes)
