"""The stages' texts: Markdown files with named placeholders, one a stage and language.

Purpose: load a stage's prose and fill it with the numbers of a run, as safe HTML.
Must not know: where the numbers come from.

Form of a file (`en/normalize.md`):

    # Title
    ## Facts
    - A sentence with {placeholders}, or {length:.3g}; numbers have four significant digits otherwise.
    - [moe] A sentence that is shown only when the value `moe` is true; `[!moe]` only when it is false.
    ## Mixes
    One sentence: which axes mix and which do not.
    ## Notice
    What to notice.

Marks: **strong**, `code`, d~h~ for a subscript, and [Q](q) for a word in the colour of role q. Everything else is
text; HTML in it is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from explorer.draw.numbers import WRITER
from explorer.draw.scales import ROLES

HERE = Path(__file__).parent
MARKS = (
    (re.compile(r"\*\*(.+?)\*\*"), r"<b>\1</b>"),
    (re.compile(r"`(.+?)`"), r"<code>\1</code>"),
    (re.compile(r"~(.+?)~"), r"<sub>\1</sub>"),
    (re.compile(rf"\[([^\]]+)\]\(({'|'.join(ROLES)})\)"), r'<span class="role-\2">\1</span>'),
)
Values = Mapping[str, Any]


class ProseError(ValueError):
    """A text and the values that fill it do not fit, or a file lacks a part."""


@dataclass(frozen=True)
class Fact:
    """One sentence; shown when `condition` ("", "moe" or "!moe") holds. template: HTML with placeholders."""

    condition: str
    template: str

    def shown(self, values: Values) -> bool:
        """Whether the condition holds. Raises ProseError when `values` does not say."""
        if not self.condition:
            return True
        name = self.condition.removeprefix("!")
        if name not in values:
            raise ProseError(f"No value {name!r} decides about: {self.template}")
        return bool(values[name]) != self.condition.startswith("!")


@dataclass(frozen=True)
class Prose:
    """One stage in one language; `mixes` and `notice` are HTML."""

    title: str
    facts: tuple[Fact, ...]
    mixes: str
    notice: str

    def fill(self, values: Values) -> list[str]:
        """The sentences that hold, as HTML. Raises ProseError for a placeholder that no value fills."""
        safe = {name: escape(v, quote=False) if isinstance(v, str) else v for name, v in values.items()}
        told = []
        for fact in self.facts:
            if not fact.shown(values):
                continue
            wanted = WRITER.fields(fact.template)
            if missing := wanted - safe.keys():
                raise ProseError(f"No value fills {', '.join(sorted(missing))} in: {fact.template}")
            told.append(WRITER.write(fact.template, {name: safe[name] for name in wanted}))
        return told

    def names(self) -> set[str]:
        """Every value name the text asks for, conditions included."""
        asked = {fact.condition.removeprefix("!") for fact in self.facts if fact.condition}
        return asked.union(*(WRITER.fields(fact.template) for fact in self.facts))


def languages(folder: Path = HERE) -> tuple[str, ...]:
    """The languages that have texts: the folders of Markdown files."""
    return tuple(sorted(p.name for p in folder.iterdir() if p.is_dir() and any(p.glob("*.md"))))


@cache
def prose(key: str, lang: str = "en") -> Prose:
    """The text of the stage `key`. Raises LookupError for a language without texts, ProseError for a bad file."""
    if lang not in languages():
        raise LookupError(f"There are no stage texts in {lang!r}. Languages: {', '.join(languages())}.")
    return parse((HERE / lang / f"{key}.md").read_text(encoding="utf-8"), f"{lang}/{key}.md")


def parse(text: str, name: str = "text") -> Prose:
    """Markdown of the form above -> Prose. Raises ProseError naming what is missing."""
    title, parts = sections(text, name, ("Facts", "Mixes", "Notice"))
    facts = [_fact(item) for item in re.split(r"^- ", parts["Facts"], flags=re.MULTILINE) if item.strip()]
    return Prose(escape(title), tuple(facts), marked(parts["Mixes"]), marked(parts["Notice"]))


def sections(text: str, name: str, wanted: tuple[str, ...]) -> tuple[str, dict[str, str]]:
    """The title of a Markdown text, and part -> its body. Raises ProseError unless its parts are those wanted."""
    head, *rest = re.split(r"^## ", text, flags=re.MULTILINE)
    parts = {title.strip(): body for title, _, body in (part.partition("\n") for part in rest)}
    title = head.strip().removeprefix("# ").strip()
    if not title or set(parts) != set(wanted):
        raise ProseError(f"{name} needs a title and the parts {', '.join(wanted)}; it has {title!r}, {list(parts)}.")
    return title, parts


def marked(text: str) -> str:
    """Our small Markdown as HTML, on one line; placeholders pass through."""
    html = escape(" ".join(text.split()), quote=False)
    for pattern, replacement in MARKS:
        html = pattern.sub(replacement, html)
    return html


def _fact(item: str) -> Fact:
    match = re.match(r"\[(!?\w+)\] (.*)", item.strip(), flags=re.DOTALL)
    return Fact(match[1], marked(match[2])) if match else Fact("", marked(item))
