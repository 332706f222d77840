"""The page's own words: each one that is used exists."""

from __future__ import annotations

import re

import pytest

from explorer.ui.controls import GROUPS, declarations
from explorer.ui.live_figure import ASSETS
from explorer.ui.words import words

SCRIPTS = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ASSETS / "js").glob("*.js")))
# Words that the script looks up under the name of a mark or a tool.
BY_NAME = {
    "masked",
    "padded",
    "edited",
    "changed",
    "clipped",
    "nan",
    "infinite",
    "undo",
    "redo",
    "table",
    "theme",
    "panel",
}


def test_unknown_language_is_refused_with_those_there_are() -> None:
    with pytest.raises(LookupError, match="en"):
        words("xx")


def test_every_word_that_a_script_asks_for_exists() -> None:
    asked = set(re.findall(r"\btexts\.([a-z_]+)", SCRIPTS)) | BY_NAME
    assert not asked - set(words("en"))


def test_every_field_has_its_words() -> None:
    groups = declarations(words("en"))
    assert [len(group["fields"]) for group in groups] == [len(group.fields) for group in GROUPS]
    assert all(field["label"] for group in groups for field in group["fields"])


def test_scripts_bring_no_sentences_of_their_own() -> None:
    code = re.sub(r"/\*.*?\*/|(?<!:)//[^\n]*", "", SCRIPTS, flags=re.DOTALL)
    assert len(code) > len(SCRIPTS) / 2
    assert not re.findall(r"[\"'`>][A-Z][a-z]+ [a-z]+ [a-z]+[^\"'`]*", code)


def test_an_equation_with_rounded_numbers_is_told_from_its_value() -> None:
    """0.5·1 + 0.5·1 = 1 is shown, 0.999999523 is meant: the sentence says that no digit was left out."""
    for key in ("check_equal", "check_rounding", "check_apart"):
        assert words("en")[key].startswith("With all digits: {exact}")
        assert words("zh")[key].startswith("用全部位数计算")
