"""RunSpec and view -> query string.

Must not know: how a link is read.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

from explorer.limits import LIMITS
from explorer.link.keys import KEYS, MOST_CELLS, VERSION, LinkTooLong, View
from explorer.link.packing import count, pack
from explorer.messages import say
from explorer.offers import OFFERS
from explorer.spec import Edit, RunSpec

_SAFE = "@~!*.:,-_"
# What to do when one part of a link takes most of its room, by field.
_ADVICE = {
    "edits": say("Remove edits, or set single cells instead of a whole tensor."),
    "text": say("Shorten the text."),
}


def encode(spec: RunSpec, view: View | None = None) -> str:
    """The query string, without "?". Raises LinkTooLong, saying what takes the room and what to do."""
    cells = sum(count(edit.value) for edit in spec.edits)
    if cells > MOST_CELLS:
        raise LinkTooLong(
            say(
                "The edits hold {cells:,} given values; a link carries at most {most:,}. {advice}",
                cells=cells, most=MOST_CELLS, advice=_ADVICE["edits"],
            )
        )  # fmt: skip
    texts = {name: _field_text(name, value) for name, value in _given(spec).items()}
    pairs = [("v", VERSION), *((KEYS[name], text) for name, text in texts.items()), *_view_pairs(view or View())]
    query = urlencode(pairs, quote_via=quote, safe=_SAFE, errors="replace")
    if len(query) > LIMITS.link:
        raise LinkTooLong(_too_long(len(query), texts))
    return query


def _given(spec: RunSpec) -> dict[str, Any]:
    """What differs from the defaults, less what a checkpoint dictates by itself."""
    offer = OFFERS.get(spec.checkpoint or "")
    return {name: value for name, value in spec.given().items() if offer is None or name not in offer.fields}


def _too_long(length: int, texts: dict[str, str]) -> str:
    sizes = {name: len(quote(text, safe=_SAFE, errors="replace")) for name, text in texts.items()}
    largest = max(sizes, key=lambda name: sizes[name])
    advice = _ADVICE.get(largest) or say("Choose a shorter {field}.", field=largest)
    return say(
        "This state needs a link of {length:,} characters; at most {most:,} are allowed. "
        "{part:,} of them are for {field}. {advice}",
        length=length, most=LIMITS.link, part=sizes[largest], field=largest, advice=advice,
    )  # fmt: skip


def _field_text(name: str, value: Any) -> str:
    if name == "edits":
        return "!".join(map(_edit_text, value))
    if name == "switches":
        return "!".join(value)
    if name == "padding":
        return ",".join(map(str, value))
    if isinstance(value, bool):
        return str(int(value))
    return _number_text(value) if isinstance(value, float) else str(value)


def _number_text(value: float) -> str:
    """The shortest text that reads back as the same number."""
    return repr(value).replace("e+", "e").removesuffix(".0")


def _edit_text(edit: Edit) -> str:
    index = ".".join("*" if i is None else str(i) for i in edit.index)
    value = pack(edit.value) if isinstance(edit.value, tuple) else _number_text(edit.value)
    return f"{'' if edit.on else '-'}{edit.target}@{index}~{value}"


def _view_pairs(view: View) -> list[tuple[str, str]]:
    pairs = [("stage", str(view.stage))]
    if view.cell:
        pairs.append(("cell", f"{view.cell[0]}@{'.'.join(map(str, view.cell[1]))}"))
    if view.compare != "value":
        pairs.append(("show", view.compare))
    shown = {"row": view.row, "head": view.head, "token": view.token, "expert": view.expert}
    pairs += [(key, str(n)) for key, n in shown.items() if n]
    if view.idle:
        pairs.append(("off", "!".join(view.idle)))
    if view.lang:
        pairs.append(("lang", view.lang))
    if view.present:
        pairs.append(("present", "1"))
    return pairs
