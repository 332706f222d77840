"""Messages as the page says them: a setting is called what its field shows, θ and not angle_step, a switch a what-if.

Purpose: `on_page` and `errors_on_page`. The command line, the HTTP API and Python say the same with code names.
Must not know: who says what, the browser.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from explorer.messages import Message, in_language, say
from explorer.messages.message import ENGLISH, templates
from explorer.ui.controls import FIELDS
from explorer.ui.symbols import symbol_text
from explorer.ui.words import words

BESIDE = {"gamma": "γ", "beta": "β"}  # fields that are no settings
CODE = re.compile(r"_|^past$|^dtype$")  # what no English sentence has as a word
WHAT_IF = {"switches": "what-ifs", "Switches": "What-ifs", "switch": "what-if", "Switch": "What-if"}


def errors_on_page(errors: Mapping[str, str], lang: str) -> dict[str, str]:
    """Field -> its message; one that begins with the field's name without being a Message begins with what it shows."""
    said = {}
    for field, message in errors.items():
        plain = not isinstance(message, Message) and field in FIELDS and message.startswith(f"{field} ")
        said[field] = names(lang)[field] + message[len(field) :] if plain else on_page(message, lang)
    return said


def on_page(text: str, lang: str) -> str:
    """As `in_language`, in the page's names. Text that is no message stays as it is."""
    if not isinstance(text, Message):
        return in_language(text, lang)
    message = _of_one_choice(text)
    values = {key: _shown(key, value, lang) for key, value in message.values.items()}
    template = templates(lang).get(message.template, message.template)
    return _renamed(template, lang).format(**values)


@cache
def names(lang: str) -> dict[str, str]:
    """Setting -> its symbol on the page, or its label where it has none, in quotes where that is another word."""
    texts, found = words(lang), dict(BESIDE)
    for name, field in FIELDS.items():
        label = str(texts[f"field_{name}"])
        found[name] = symbol_text(field.symbol) or (label if label.lower() == name else f"“{label}”")
    return found


def _shown(key: str, value: object, lang: str) -> object:
    if key in ("name", "field") and isinstance(value, str) and not isinstance(value, Message):
        return names(lang).get(value, value)
    return on_page(value, lang) if isinstance(value, str) else value


@cache
def _renamed(template: str, lang: str) -> str:
    """The template with settings in the page's names. In English, words such as "text" are names only before " = "."""

    def renamed(match: re.Match[str]) -> str:
        word, before_sign = match[0], match.string.startswith(" = ", match.end())
        if word in WHAT_IF:
            return WHAT_IF[word] if lang == ENGLISH else str(words(lang)["effects_part"])
        is_name = lang != ENGLISH or before_sign or CODE.search(word)
        return names(lang)[word] if is_name else word

    known = "|".join(sorted({*FIELDS, *WHAT_IF}, key=len, reverse=True))
    return re.sub(rf"(?<![\w{{])(?:{known})(?!\w)", renamed, template, flags=re.ASCII)


def _of_one_choice(message: Message) -> Message:
    """The message in another form where it would offer a choice from 1 to 1."""
    v = message.values
    if v.keys() == {"name", "value", "low", "high"}:
        if v["low"] == v["high"]:
            return say("{name} = {value} is out of range. Here it must be {low}.",
                       name=v["name"], value=v["value"], low=v["low"])  # fmt: skip
    elif "Use h from {near}" in message.template and "," not in str(v["near"]):
        return say("h = {h} does not divide d_model = {width}. Use h = {near}, another d_model, or set d_h.",
                   h=v["h"], width=v["width"], near=v["near"])  # fmt: skip
    return message
