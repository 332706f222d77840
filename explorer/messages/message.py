"""A sentence that is English text and can still be said in another language.

Purpose: `say` where a sentence is made, `in_language` where it is shown.
Must not know: who says what to whom.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache, reduce
from pathlib import Path

HERE = Path(__file__).parent
ENGLISH = "en"


class Message(str):
    """A finished English sentence, or a part of one, that remembers its template and what filled it.

    template: the English text with named placeholders; values: what stands in them, other messages included
    """

    template: str
    values: Mapping[str, object]

    def __new__(cls, template: str, values: Mapping[str, object]) -> Message:
        made = super().__new__(cls, template.format(**values))
        made.template, made.values = template, values
        return made

    def __getnewargs__(self) -> tuple[str, Mapping[str, object]]:  # type: ignore[override]
        return self.template, self.values


def say(template: str, /, **values: object) -> Message:
    """The sentence: `template`, a literal, with its placeholders filled in."""
    return Message(template, values)


def either(*choices: str) -> str:
    """ "a or b or c"."""
    return reduce(lambda before, last: say("{before} or {last}", before=before, last=last), choices)


def said(error: BaseException) -> str:
    """What an error says, as the Message that it was raised with, which `str(error)` would lose."""
    given = error.args[0] if error.args else None
    return given if isinstance(given, Message) else str(error)


def in_language(text: str, lang: str) -> str:
    """A message in a language, the messages inside it too; text that is no message, and what has no translation, as it
    is. Raises LookupError for a language without a file.
    """
    if not isinstance(text, Message):
        return text
    values = {name: in_language(v, lang) if isinstance(v, str) else v for name, v in text.values.items()}
    return templates(lang).get(text.template, text.template).format(**values)


@cache
def templates(lang: str) -> dict[str, str]:
    """English template -> template in `lang`; empty for English. Raises LookupError."""
    path = HERE / f"{lang}.json"
    if lang == ENGLISH:
        return {}
    if not path.is_file():
        known = ", ".join(sorted({ENGLISH, *(p.stem for p in HERE.glob("*.json"))}))
        raise LookupError(f"There are no messages in {lang!r}. Languages: {known}.")
    found: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    return found
