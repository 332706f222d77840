"""Words in figures: every language complete, no entry unused, no placeholder empty."""

from __future__ import annotations

import re

import pytest

from explorer.draw import words as module
from explorer.draw.numbers import WRITER
from explorer.draw.words import HERE, languages, say, words

LANGUAGES = languages()
SOURCES = "\n".join(path.read_text(encoding="utf-8") for path in HERE.glob("*.py"))


def test_english_is_there() -> None:
    assert "en" in LANGUAGES


@pytest.mark.parametrize("lang", LANGUAGES)
def test_same_entries_and_placeholders_in_every_language(lang: str) -> None:
    english, other = words("en"), words(lang)
    assert other.keys() == english.keys()
    for key, text in other.items():
        assert text, key
        assert WRITER.fields(text) == WRITER.fields(english[key]), key
        assert set(re.findall(r"%\{\{[^}]+\}\}", text)) == set(re.findall(r"%\{\{[^}]+\}\}", english[key])), key


def test_every_entry_is_named_in_the_code() -> None:
    """Keys are written out, or made of a family and a member that are."""
    families = {"state": r'f"state\.', "compare": r'f"compare\.', "rope.hover": r'f"rope\.hover\.', "join": r'f"join\.'}
    members = re.compile(r"\.(pooled|state|states)$")
    for key in words("en"):
        stem = members.sub("", key)
        family = key.rpartition(".")[0]
        named = f'"{key}"' in SOURCES or f'"{stem}"' in SOURCES or re.search(families.get(family, "$^"), SOURCES)
        assert (
            named or key in ("rope.before", "rope.after") or re.search(rf'f"{{key}}\.{key.split(".")[-1]}"', SOURCES)
        ), key


def test_unknown_language_says_which_exist() -> None:
    with pytest.raises(LookupError, match=r"'xx'.*en"):
        words("xx")


def test_say_is_strict() -> None:
    assert say("en", "head", head=3) == "head 3"
    with pytest.raises(KeyError):
        say("en", "head")
    with pytest.raises(ValueError, match="no placeholder uses"):
        say("en", "axis.key", head=3)


def test_double_entries_are_refused(tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "qq.md").write_text("# T\n\n## a\nx\n\n## a\ny\n", encoding="utf-8")
    monkeypatch.setattr(module, "HERE", tmp_path)
    with pytest.raises(LookupError, match="two entries 'a'"):
        words("qq")
