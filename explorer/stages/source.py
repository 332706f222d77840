"""The lines of code that ran for a stage, read from the source at run time.

Purpose: show MiniMind's and the course's code beside the numbers, without a copy that could drift.
Must not know: the stages, the page.
"""

from __future__ import annotations

import inspect
import textwrap
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any


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
    """The lines themselves. Raises LookupError when one is not found, so that a change of the models shows in tests."""
    target: Any = import_module(f"explorer.{lines.module}")
    for part in lines.name.split("."):
        target = getattr(target, part)
    source, start = inspect.getsourcelines(target)
    where = f"{lines.module}.{lines.name}"
    a = _find(source, lines.first, 0, where) if lines.first else 0
    b = _find(source, lines.last, a, where) if lines.last else len(source) - 1
    text = textwrap.dedent("".join(source[a : b + 1])).rstrip()
    model = "course" if lines.module.startswith("course") else "minimind"
    return Excerpt(model, lines.name, f"explorer/{lines.module.replace('.', '/')}.py", start + a, text)


def _find(source: list[str], wanted: str, start: int, where: str) -> int:
    for i in range(start, len(source)):
        if wanted in source[i]:
            return i
    raise LookupError(f"No line of {where} contains {wanted!r}. Name a line that is there.")
