"""Query string -> RunSpec, view, and one sentence for each part that was ignored.

Purpose: read as much of a link as is valid here. Never raises, whatever the text is.
Must not know: how a link is written.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl

from explorer.limits import LIMITS
from explorer.link.keys import COMPARE, FIELDS, LANGUAGES, MOST_CELLS, RESERVED, VERSION, View
from explorer.link.packing import MARK, count, unpack
from explorer.link.repair import Parts
from explorer.messages import said, say
from explorer.quantities import LONGEST_NAME, QUANTITIES
from explorer.spec import Edit, RunSpec, SpecError
from explorer.switches import parse_switch
from explorer.typed import shown
from explorer.validation import MOST_SWITCHES

MOST_PARTS = 80
MOST_NOTES = 12


def decode(query: str) -> tuple[RunSpec, View, list[str]]:
    """The spec and view that a query string holds, and one sentence for each part that was ignored. Never raises."""
    query = query.encode("utf-8", "replace").decode("utf-8")  # half characters cannot travel further
    if len(query) > LIMITS.link:
        note = say(
            "The link has {length:,} characters; at most {most:,} are read. All of it was ignored.",
            length=len(query), most=LIMITS.link,
        )  # fmt: skip
        return RunSpec(), View(), [note]
    try:
        pairs = dict(parse_qsl(query.lstrip("?"), keep_blank_values=True, max_num_fields=MOST_PARTS))
    except ValueError:
        return RunSpec(), View(), [say("The link has more than {most} parts. All of it was ignored.", most=MOST_PARTS)]
    for key in RESERVED:
        pairs.pop(key, None)
    notes: list[str] = []
    if (version := pairs.pop("v", VERSION)) != VERSION:
        notes.append(
            say(
                "The link is of version {given}; this program reads version {own}, "
                "and took from the link what it knows.",
                given=shown(version), own=VERSION,
            )
        )  # fmt: skip
    typed = {FIELDS[key]: text for key, text in pairs.items() if key in FIELDS}
    edits = _decode_edits(typed.pop("edits", ""), notes)
    switches = [s for s in typed.pop("switches", "").split("!") if s]
    spec = Parts(typed, edits, switches, notes).largest_valid()
    view = _decode_view({key: text for key, text in pairs.items() if key not in FIELDS}, spec, notes)
    return spec, view, _shortened(notes)


def _shortened(notes: list[str]) -> list[str]:
    distinct = list(dict.fromkeys(notes))
    if len(distinct) <= MOST_NOTES:
        return distinct
    return [*distinct[: MOST_NOTES - 1], say("{count} more parts were ignored.", count=len(distinct) - MOST_NOTES + 1)]


def _decode_edits(text: str, notes: list[str]) -> list[Edit]:
    parts = text.split("!") if text else []
    if len(parts) > LIMITS.edits:
        notes.append(
            say(
                "The link has {count:,} edits; the first {most} were taken, the others ignored.",
                count=len(parts), most=LIMITS.edits,
            )
        )  # fmt: skip
    edits: list[Edit] = []
    cells = MOST_CELLS
    for part in parts[: LIMITS.edits]:
        try:
            edits.append(_decode_edit(part, cells))
            cells -= count(edits[-1].value)
        except (ValueError, OverflowError):
            notes.append(say("The edit {edit} could not be read. It was ignored.", edit=shown(part)))
    return edits


def _decode_edit(text: str, most_cells: int) -> Edit:
    on = not text.startswith("-")
    where, tilde, value = text.removeprefix("-").partition("~")
    target, at, index = where.partition("@")
    if not (tilde and at and len(target) <= LONGEST_NAME):
        raise ValueError(text)
    cells = tuple(None if i == "*" else _whole(i) for i in index.split(".")) if index else ()
    return Edit(target, cells, unpack(value, most_cells) if value.startswith(MARK) else float(value), on)


def _whole(text: str) -> int:
    """A plain whole number; "+1", "1_0" and digits of other scripts are none."""
    if not (text.isascii() and text.isdigit() and len(text) < 8):
        raise ValueError(text)
    return int(text)


def _decode_view(rest: dict[str, str], spec: RunSpec, notes: list[str]) -> View:
    readers: dict[str, Callable[[str], dict[str, Any]]] = {
        "stage": lambda text: {"stage": _within(text, 1, 8)},
        "cell": lambda text: {"cell": _decode_cell(text, spec)},
        "show": lambda text: {"compare": COMPARE[COMPARE.index(text)]},
        "row": lambda text: {"row": _within(text, 0, spec.B - 1)},
        "head": lambda text: {"head": _within(text, 0, spec.h - 1)},
        "token": lambda text: {"token": _within(text, 0, spec.T - 1)},
        "expert": lambda text: {"expert": _within(text, 0, spec.experts - 1)},
        "off": lambda text: {"idle": _decode_idle(text, spec)},
        "lang": lambda text: {"lang": LANGUAGES[LANGUAGES.index(text)]},
        "present": lambda text: {"present": bool(_within(text, 0, 1))},
    }
    values: dict[str, Any] = {}
    for key, text in rest.items():
        if key not in readers:
            notes.append(say("The link's part {key} is unknown. It was ignored.", key=shown(key)))
            continue
        try:
            values |= readers[key](text)
        except _OutOfRange as error:
            low, high = error.args
            notes.append(
                say(
                    "The link's {key} = {value} does not fit here: it goes from {low} to {high}. It was ignored.",
                    key=key, value=shown(text), low=low, high=high,
                )
            )  # fmt: skip
        except ValueError:
            notes.append(
                say("The link's {key} = {value} does not fit here. It was ignored.", key=key, value=shown(text))
            )
    return View(**values)


class _OutOfRange(ValueError):
    """Not a whole number between the two that this holds."""


def _within(text: str, low: int, high: int) -> int:
    """Raises ValueError, which names the range where there is one."""
    with suppress(ValueError):
        if low <= (number := _whole(text)) <= high:
            return number
    raise _OutOfRange(low, high) if low <= high else ValueError(text)


def _decode_idle(text: str, spec: RunSpec) -> tuple[str, ...]:
    """What-ifs that are out of force; one that is in force as well is in force."""
    names = tuple(dict.fromkeys(text.split("!")))
    if len(names) > MOST_SWITCHES:
        raise ValueError(text)
    for name in names:
        parse_switch(name).check({"h": spec.h, "experts": spec.experts})
    return tuple(name for name in names if name not in spec.switches)


def _decode_cell(text: str, spec: RunSpec) -> tuple[str, tuple[int, ...]]:
    name, _, index = text.partition("@")
    cell = tuple(map(_whole, index.split(".")))
    declared = QUANTITIES.get(name)
    if declared is None:
        _check_weight_cell(name, cell, spec)
        return name, cell
    if declared.only and (declared.only == "moe") != bool(spec.experts):
        raise ValueError(text)
    shape = spec.shape(name)
    if len(cell) != len(shape) or any(i >= n for i, n in zip(cell, shape, strict=True)):
        raise ValueError(text)
    return name, cell


def _check_weight_cell(name: str, cell: tuple[int, ...], spec: RunSpec) -> None:
    """A cell exists where it could be edited."""
    try:
        spec.unedited().with_edit(Edit(name, cell, 0.0))
    except SpecError as error:
        raise ValueError(said(error)) from None
