"""The exercises' texts: the same entries in every language, each with the same places for numbers, none left over."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from explorer.draw.numbers import WRITER
from explorer.draw.words import entries
from explorer.stages.prose import languages
from explorer.studio import EXERCISES
from explorer.studio.mixing import KINDS, OPERATIONS, kind
from explorer.studio.offset import REASONS
from explorer.studio.reading_code import DECODE, STEPS
from explorer.studio.texts import COMMON, HERE, known
from explorer.studio.where import CLAIMS

CJK = re.compile(r"[一-鿿]")
SENTENCE = re.compile(r"[A-Za-z]{2,} [a-z]{2,} [a-z]{2,}")
FILES = [COMMON, *(exercise.name for exercise in EXERCISES)]
NO_WORDS = {"given", "operation.rope", "operation.blend", "asked.", "step.", "column."}


def test_two_languages_and_eight_exercises() -> None:
    assert languages(HERE) == ("en", "zh")
    assert len({exercise.name for exercise in EXERCISES}) == len(EXERCISES) == 8


@pytest.mark.parametrize("name", FILES)
def test_both_languages_say_the_same(name: str) -> None:
    english, chinese = (entries(HERE / lang / f"{name}.md") for lang in ("en", "zh"))
    assert list(english) == list(chinese)
    for key, text in english.items():
        assert WRITER.fields(text) == WRITER.fields(chinese[key]), key
        assert not CJK.search(text), key
        assert not SENTENCE.search(re.sub(r"`[^`]*`|\{[^}]*\}", "0", chinese[key])), key
        assert CJK.search(chinese[key]) or any(key.startswith(part) for part in NO_WORDS) or text == chinese[key], key
        assert not re.search(r"[一-鿿][,;:?!]", chinese[key]), key
        for open_, close in ("()", "[]"):
            assert chinese[key].count(open_) == chinese[key].count(close), key


def test_no_entry_is_idle() -> None:
    """Each key stands in the code, or begins with a part that does."""
    code = "\n".join(path.read_text(encoding="utf-8") for path in Path(HERE).glob("*.py"))
    asked = set(re.findall(r"[\"']([a-z_.]+)[\"']", code)) | {f"hint.{key}" for key in re.findall(r'"([a-z_]+)"', code)}
    begun = tuple(re.findall(r'f"([a-z]+\.)\{', code))
    for name in FILES:
        for key in entries(HERE / "en" / f"{name}.md"):
            assert key in asked or key.startswith(begun), (name, key)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_choice_has_its_feedback(lang: str) -> None:
    assert {f"feedback.{claim}" for claim in CLAIMS} <= known("where", lang).keys()
    assert {f"feedback.{reason}" for reason in REASONS} <= known("offset", lang).keys()
    assert {f"hint.{step}" for step in (*STEPS, *DECODE[:2])} <= known("reading_code", lang).keys()
    for operation in OPERATIONS:
        wrong = {f"feedback.{operation}.{other}" for other in KINDS if other != kind(operation)}
        assert wrong | {f"reason.{operation}"} <= known("mixing", lang).keys(), operation
