"""The rows' texts: Markdown files with named placeholders, one a row and language.

Purpose: load a row's text and fill its sentences with what a check found, as safe HTML.
Must not know: what is checked.

Form of a file (`en/decode.md`); marks and numbers are those of the stages' texts (explorer.stages.prose):

    # Title
    ## Adds
    What MiniMind adds here.
    ## Check
    What must hold before the next row.
    ## Points
    - [cached] A sentence with {placeholders} for the point `cached`.

What a comparison found is said in the same words everywhere: `phrases.md` has them for the placeholders of FOUND.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from explorer.draw.numbers import WRITER
from explorer.draw.words import entries
from explorer.stages.prose import ProseError, marked, sections
from explorer.stages.prose import languages as languages_in

HERE = Path(__file__).parent
# Placeholders that a phrase of `phrases.md` fills, and the value that is 0 where what was compared is equal.
FOUND = {
    "apart": "gap", "away": "gap", "exactly": "gap", "scored": "gap", "matching": "wrong", "kept": "changed",
}  # fmt: skip


class Html(str):
    """A value that is HTML of our own and goes into a sentence as it is."""


@dataclass(frozen=True)
class Text:
    """One row in one language; `adds`, `check` and the templates of `points` are HTML."""

    title: str
    adds: str
    check: str
    points: Mapping[str, str]
    phrases: Mapping[str, str] = field(default_factory=dict)

    def say(self, key: str, values: Mapping[str, Any]) -> str:
        """The sentence of a point, filled. Raises ProseError for a point without one, KeyError for a missing value."""
        if key not in self.points:
            raise ProseError(f"{self.title} has no sentence {key!r}. Sentences: {', '.join(self.points)}.")
        template = self.points[key]
        wanted = WRITER.fields(template)
        safe = {name: _safe(v) for name, v in values.items()}
        safe |= {name: self._phrase(name, values) for name in wanted & FOUND.keys()}
        return WRITER.write(template, {name: safe[name] for name in wanted})

    def _phrase(self, name: str, values: Mapping[str, Any]) -> str:
        """What a comparison found: that all is equal, or by how much it is not."""
        key = f"{name}.same" if not values[FOUND[name]] else f"{name}.dtype" if "dtype" in values else name
        template = self.phrases.get(key, self.phrases[name])
        return WRITER.write(template, {part: values[part] for part in WRITER.fields(template)})


def _safe(value: Any) -> Any:
    return escape(value, quote=False) if isinstance(value, str) and not isinstance(value, Html) else value


def languages() -> tuple[str, ...]:
    """The languages that have texts."""
    return languages_in(HERE)


@cache
def text(key: str, lang: str = "en") -> Text:
    """The text of the row `key`. Raises LookupError for a language without texts, ProseError for a bad file."""
    if lang not in languages():
        raise LookupError(f"There are no texts of the bridge in {lang!r}. Languages: {', '.join(languages())}.")
    found = parse((HERE / lang / f"{key}.md").read_text(encoding="utf-8"), f"{lang}/{key}.md")
    return replace(found, phrases=entries(HERE / lang / "phrases.md"))


def parse(whole: str, name: str = "text") -> Text:
    """Markdown of the form above -> Text. Raises ProseError naming what is missing."""
    title, parts = sections(whole, name, ("Adds", "Check", "Points"))
    points = dict(re.findall(r"^- \[(\w+)\] (.*?)(?=^- |\Z)", parts["Points"], re.MULTILINE | re.DOTALL))
    return Text(
        escape(title),
        marked(parts["Adds"]),
        marked(parts["Check"]),
        {key: marked(said) for key, said in points.items()},
    )
