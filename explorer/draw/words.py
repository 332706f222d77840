"""The words in figures: titles, axis names, hover texts and text equivalents, by language.

Purpose: keep every sentence out of the drawing code, in `en.md` and `zh.md` beside it.
Must not know: what is drawn.

Form of the file: `## key` opens an entry, the lines below it are its text, placeholders are written `{name}` or
`{name:.3g}`. Plotly's own hover placeholders are written `%{{x}}`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, reduce
from pathlib import Path
from typing import Any

from explorer.draw.numbers import WRITER

HERE = Path(__file__).parent
Words = Mapping[str, str]


def languages() -> tuple[str, ...]:
    """The languages that have a file."""
    return tuple(sorted(p.stem for p in HERE.glob("*.md")))


@cache
def words(lang: str = "en") -> Words:
    """Key -> template. Raises LookupError for a language without a file, naming those that exist."""
    path = HERE / f"{lang}.md"
    if lang not in languages():
        raise LookupError(f"There are no figure texts in {lang!r}. Languages: {', '.join(languages())}.")
    return entries(path)


def entries(path: Path) -> dict[str, str]:
    """Key -> text of a file in the form above. Raises LookupError for a key that stands there twice."""
    found: dict[str, str] = {}
    for part in path.read_text(encoding="utf-8").split("\n## ")[1:]:
        key, _, text = part.partition("\n")
        if key.strip() in found:
            raise LookupError(f"{path.name} has two entries {key.strip()!r}. Keep one.")
        found[key.strip()] = " ".join(text.split())
    return found


def say(lang: str, key: str, /, **values: Any) -> str:
    """The text of `key` with its placeholders filled; raises KeyError or ValueError when they do not match."""
    return WRITER.write(words(lang)[key], values)


def join(lang: str, kind: str, parts: Sequence[str]) -> str:
    """Parts one after another, as this language separates them. kind: "items", "rows" or "sentences"."""
    return reduce(lambda a, b: say(lang, f"join.{kind}", a=a, b=b), parts) if parts else ""
