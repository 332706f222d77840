"""Telling Chinese text from English, and holding every message of an answer to its language."""

from __future__ import annotations

import re
from typing import Any

from explorer.ui.page import answer
from explorer.ui.words import words

CJK = re.compile(r"[一-鿿]")
QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|“[^”]*”")  # what was typed
ENGLISH = re.compile(r"[A-Za-z]{2,}(?: [a-z]{2,}){2,}")


def told(reply: dict[str, Any]) -> list[str]:
    """Every message of an answer."""
    share = reply.get("share") or {}
    texts = [*reply.get("errors", {}).values(), *reply.get("notes", []), reply.get("unlinked"), share.get("note")]
    return [text for text in texts if text]


def check(request: dict[str, Any], *, says: bool = False) -> None:
    """says: there must be a message."""
    chinese, english = (answer({**request, "lang": lang}) for lang in ("zh", "en"))
    assert chinese["ok"] == english["ok"]
    assert chinese.get("errors", {}).keys() == english.get("errors", {}).keys()
    assert len(told(chinese)) == len(told(english)) >= says
    for text in told(chinese):
        assert text != words("zh")["internal_error"], request
        assert is_chinese(text), (request, text)
    for text in told(english):
        assert not CJK.search(text), (request, text)


def is_chinese(text: str) -> bool:
    bare = QUOTED.sub("", text)
    return bool(CJK.search(bare)) and not ENGLISH.search(bare)
