"""The lines of code that ran for a stage, read from the source at run time.

Purpose: show MiniMind's and the course's code beside the numbers, without a copy that could drift.
Must not know: the stages, the page.
"""

from __future__ import annotations

import ast
import textwrap
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path


@dataclass(frozen=True)
class Excerpt:
    """Some lines of one function.

    model: "minimind" or "course"; name: for example "Attention.forward"; file: path inside the repository;
    line:  number of the first line in that file; text: the lines, indentation of the first removed
    """

    model: str
    name: str
    file: str
    line: int
    text: str


@dataclass(frozen=True)
class Lines:
    """Where an excerpt stands.

    module: below explorer, for example "model.block"; name: the function;
    first, last: text in the excerpt's first and last line, "" for the function's own;
    when: "" always, or what the run must be for these lines to have run: "dense", "moe", "explicit", "flash"
    """

    module: str
    name: str
    first: str = ""
    last: str = ""
    when: str = ""


@cache
def excerpt(lines: Lines) -> Excerpt:
    """The lines themselves. Raises LookupError when one is not found, so that a change of the models shows in tests.

    The file is read, not imported: one of them would bring in transformers, which takes seconds.
    """
    where = f"{lines.module}.{lines.name}"
    text, tree = _module(lines.module)
    start, end = _place(tree, lines.name, where)
    source = text.splitlines(keepends=True)[start - 1 : end]
    a = _find(source, lines.first, 0, where) if lines.first else 0
    b = _find(source, lines.last, a, where) if lines.last else len(source) - 1
    shown = textwrap.dedent("".join(source[a : b + 1])).rstrip()
    model = "course" if lines.module.startswith("course") else "minimind"
    return Excerpt(model, lines.name, f"explorer/{lines.module.replace('.', '/')}.py", start + a, shown)


@cache
def _module(name: str) -> tuple[str, ast.Module]:
    """Text and syntax tree of a module below explorer."""
    found = find_spec(f"explorer.{name}")
    text = Path(str(found.origin if found else name)).read_text(encoding="utf-8")
    return text, ast.parse(text)


def _place(tree: ast.AST, name: str, where: str) -> tuple[int, int]:
    """First and last line of a function or class, decorators included."""
    node = tree
    for part in name.split("."):
        inside = [n for n in ast.iter_child_nodes(node) if getattr(n, "name", None) == part]
        if not inside:
            raise LookupError(f"There is no {where}. Name a function that is there.")
        node = inside[0]
    if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        raise LookupError(f"{where} is no function. Name one.")
    return min((node, *node.decorator_list), key=lambda n: n.lineno).lineno, node.end_lineno or node.lineno


def _find(source: list[str], wanted: str, start: int, where: str) -> int:
    for i in range(start, len(source)):
        if wanted in source[i]:
            return i
    raise LookupError(f"No line of {where} contains {wanted!r}. Name a line that is there.")
