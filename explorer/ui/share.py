"""A state as a link, as a QR code, and as the reason why it has neither.

Purpose: what the page's share dialog shows and what its address holds.
Must not know: gradio; where the server can be reached (the page says that, and it is not trusted).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import segno

from explorer import link
from explorer.link import View
from explorer.messages import in_language, said
from explorer.spec import RunSpec

LONGEST_BASE = 500  # characters of an address without its query
LONGEST_CODE = 1000  # characters of a link that a phone still reads from a screen: 105 modules across
HERE_ONLY = re.compile(r"https?://(localhost|127\.\d+\.\d+\.\d+|\[::1\])([:/]|$)", re.IGNORECASE)
BASE = re.compile(r"https?://[^\s?#\"'<>`\\]+")


def query(spec: RunSpec, view: View, lang: str) -> tuple[str, str]:
    """(the query string, "") or, where a link cannot hold the state, ("", why and what to do)."""
    try:
        return link.encode(spec, view), ""
    except link.LinkTooLong as error:
        return "", in_language(said(error), lang)


def shared(spec: RunSpec, view: View, asked: Any, texts: Mapping[str, Any]) -> dict[str, str]:
    """{"query", "code", "note"}: the link's query, its QR code as an SVG element, and what there is to say instead.

    asked: {"base": the page's own address without query, "present": whether the link opens in present mode}
    """
    given = asked if isinstance(asked, Mapping) else {}
    view = replace(view, present=given.get("present") is True)
    text, trouble = query(spec, view, texts["lang"])
    if trouble:
        return {"query": "", "code": "", "note": trouble}
    base = given.get("base")
    if not isinstance(base, str) or len(base) > LONGEST_BASE or not BASE.fullmatch(base):
        return {"query": text, "code": "", "note": ""}
    address = f"{base}?{text}"
    here = texts["share_here_only"] if HERE_ONLY.match(base) else ""
    if len(address) > LONGEST_CODE:
        note = texts["share_no_code"].format(n=len(address), most=LONGEST_CODE)
        return {"query": text, "code": "", "note": f"{note} {here}".rstrip()}
    return {"query": text, "code": code(address), "note": here}


def code(address: str) -> str:
    """An <svg> of black on white with the quiet zone that readers need, in every theme."""
    made = segno.make_qr(address, error="m" if len(address) <= LONGEST_CODE // 2 else "l")
    return made.svg_inline(omitsize=True, border=4, dark="#000", light="#fff", svgclass=None, lineclass=None)
