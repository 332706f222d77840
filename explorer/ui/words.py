"""The page's own words, by language.

Purpose: every text that the page shows and that no quantity, stage or error brings along.
Must not know: where a text is shown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "texts"
ENGLISH = "en"


@cache
def words(lang: str = ENGLISH) -> dict[str, Any]:
    """Key -> text, and "lang" -> the language. Raises LookupError for a language without a file."""
    path = HERE / f"{lang}.json"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in HERE.glob("*.json")))
        raise LookupError(f"There are no texts in {lang!r}. Languages: {known}.")
    texts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return texts | {"lang": lang}


@cache
def languages() -> tuple[str, ...]:
    """The languages that have texts."""
    return tuple(sorted(path.stem for path in HERE.glob("*.json")))


def language(request: Mapping[str, Any]) -> str:
    """The language that a request asks for, English where it asks for none that there is."""
    lang = request.get("lang")
    return lang if isinstance(lang, str) and lang in languages() else ENGLISH
