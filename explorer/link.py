"""RunSpec and view <-> the query string of a link.

Purpose: a versioned, readable, size-limited address that any server of this program opens alike.
Must not know: torch, the page. Whatever a query string holds, decoding never raises and never exceeds the limits.

    v=1&B=2&T=5&d=12&h=3&w=random&e=probs@0.0.1.0~0.5&stage=5

Edits are `target@index~value`, joined by `!`; a leading `-` marks one that is switched off, `*` stands for every
position, an empty index for the whole tensor. Values of whole tensors travel as `z<shape>_<base64 of packed float64>`.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from explorer.limits import LIMITS
from explorer.quantities import QUANTITIES, WEIGHTS
from explorer.spec import Edit, RunSpec, SpecError
from explorer.typed import shown

VERSION = "1"
RESERVED = ("view", "__theme", "deep_link", "__sign", "logs")  # what Gradio and Spaces read from an address
KEYS = {
    "B": "B", "T": "T", "d_model": "d", "h": "h", "h_kv": "hkv", "d_h": "dh", "d_ff": "dff", "weights": "w",
    "seed": "seed", "layer": "layer", "text": "text", "past": "past", "padding": "pad", "angle_step": "step",
    "rope_theta": "theta", "yarn": "yarn", "qk_norm": "qk", "norm_eps": "eps", "experts": "E",
    "experts_per_token": "k", "norm_topk": "topk", "attention": "att", "dtype": "dtype", "device": "dev",
    "edits": "e", "switches": "s",
}  # fmt: skip
FIELDS = {key: field for field, key in KEYS.items()}
COMPARE = ("value", "change", "both")
LANGUAGES = ("en", "zh")
_SAFE = "@~!*.:,-_"


@dataclass(frozen=True)
class View:
    """What of a run is looked at.

    stage: 1–8; cell: the selected cell as (quantity or weight, index), or None; compare: what cells show;
    row, head: the batch row and head shown where not all fit; lang: "" for the browser's; present: classroom mode
    """

    stage: int = 1
    cell: tuple[str, tuple[int, ...]] | None = None
    compare: str = "value"
    row: int = 0
    head: int = 0
    lang: str = ""
    present: bool = False


class LinkTooLong(ValueError):
    """The state does not fit into a link."""


def encode(spec: RunSpec, view: View | None = None) -> str:
    """The query string, without "?". Raises LinkTooLong."""
    pairs = [("v", VERSION)]
    pairs += [(KEYS[name], _field_text(name, value)) for name, value in spec.given().items()]
    pairs += _view_pairs(view or View())
    query = urlencode(pairs, quote_via=quote, safe=_SAFE)
    if len(query) > LIMITS.link:
        raise LinkTooLong(
            f"This state needs a link of {len(query)} characters; at most {LIMITS.link} are allowed. "
            "Remove edits or use a smaller matrix."
        )
    return query


def decode(query: str) -> tuple[RunSpec, View, list[str]]:
    """The spec and view that a query string holds, and one sentence for each part that was ignored. Never raises."""
    if len(query) > LIMITS.link:
        return RunSpec(), View(), [f"The link has {len(query)} characters; at most {LIMITS.link} are read. Ignored."]
    try:
        pairs = dict(parse_qsl(query.lstrip("?"), keep_blank_values=True, max_num_fields=80))
    except ValueError:
        return RunSpec(), View(), ["The link has too many parts. It was ignored."]
    for key in RESERVED:
        pairs.pop(key, None)
    notes: list[str] = []
    if (version := pairs.pop("v", VERSION)) != VERSION:
        notes.append(f"The link is of version {shown(version)}; this program reads version {VERSION}.")
    typed: dict[str, str] = {}
    rest: dict[str, str] = {}
    for key, text in pairs.items():
        (typed if key in FIELDS else rest)[FIELDS.get(key, key)] = text
    edits = _decode_edits(typed.pop("edits", ""), notes)
    switches = tuple(s for s in typed.pop("switches", "").split("!") if s)
    spec = _largest_valid(typed, edits, switches, notes)
    return spec, _decode_view(rest, spec, notes), notes


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
    short = repr(value).replace("e+", "e")
    return short.removesuffix(".0")


def _edit_text(edit: Edit) -> str:
    index = ".".join("*" if i is None else str(i) for i in edit.index)
    value = _number_text(edit.value) if isinstance(edit.value, (int, float)) else _pack(edit.value)
    return f"{'' if edit.on else '-'}{edit.target}@{index}~{value}"


def _pack(values: tuple[Any, ...]) -> str:
    shape, flat = [len(values)], list(values)
    while isinstance(flat[0], tuple):
        shape.append(len(flat[0]))
        flat = [x for inner in flat for x in inner]
    data = zlib.compress(struct.pack(f"<{len(flat)}d", *flat), 9)
    return f"z{'x'.join(map(str, shape))}_{base64.urlsafe_b64encode(data).decode().rstrip('=')}"


def _unpack(text: str) -> tuple[Any, ...]:
    sizes, _, data = text[1:].partition("_")
    shape = [int(n) for n in sizes.split("x")]
    count = math.prod(shape)
    if not 1 <= len(shape) <= 4 or min(shape) < 1 or count > LIMITS.link:
        raise ValueError("shape")
    raw = zlib.decompressobj().decompress(base64.urlsafe_b64decode(data + "=" * (-len(data) % 4)), count * 8 + 1)
    values: list[Any] = list(struct.unpack(f"<{count}d", raw))
    for n in reversed(shape[1:]):
        values = [tuple(values[i : i + n]) for i in range(0, len(values), n)]
    return tuple(values)


def _decode_edits(text: str, notes: list[str]) -> list[Edit]:
    edits = []
    for part in text.split("!")[: LIMITS.edits + 1] if text else ():
        try:
            edits.append(_decode_edit(part))
        except (ValueError, struct.error, zlib.error, binascii.Error, OverflowError):
            notes.append(f"The edit {shown(part)} could not be read. It was ignored.")
    return edits


def _decode_edit(text: str) -> Edit:
    on = not text.startswith("-")
    where, tilde, value = text.removeprefix("-").partition("~")
    target, at, index = where.partition("@")
    if not (tilde and at):
        raise ValueError(text)
    cells = tuple(None if i == "*" else int(i) for i in index.split(".")) if index else ()
    return Edit(target, cells, _unpack(value) if value.startswith("z") else float(value), on)


def _largest_valid(typed: dict[str, str], edits: list[Edit], switches: tuple[str, ...], notes: list[str]) -> RunSpec:
    """The spec with every wrong part left out and noted, one round of errors after another."""
    for _ in range(len(fields(RunSpec)) + 2):
        try:
            return RunSpec.parse(typed, edits=tuple(edits), switches=switches)
        except SpecError as error:
            wrong = error.errors
        dropped = {int(name.partition(".")[2]) for name in wrong if name.startswith("edits.")}
        edits = [e for n, e in enumerate(edits) if n not in dropped and "edits" not in wrong]
        switches = () if "switches" in wrong else switches
        for name, message in wrong.items():
            notes.append(f"Ignored from the link: {message}")
            typed.pop(name, None)
        if not any(n in wrong for n in ("edits", "switches")) and not dropped and not (set(wrong) & set(KEYS)):
            break
    return RunSpec()


def _view_pairs(view: View) -> list[tuple[str, str]]:
    pairs = [("stage", str(view.stage))]
    if view.cell:
        pairs.append(("cell", f"{view.cell[0]}@{'.'.join(map(str, view.cell[1]))}"))
    if view.compare != "value":
        pairs.append(("show", view.compare))
    pairs += [(key, str(n)) for key, n in (("row", view.row), ("head", view.head)) if n]
    if view.lang:
        pairs.append(("lang", view.lang))
    if view.present:
        pairs.append(("present", "1"))
    return pairs


def _decode_view(rest: dict[str, str], spec: RunSpec, notes: list[str]) -> View:
    readers: dict[str, Callable[[str], dict[str, Any]]] = {
        "stage": lambda text: {"stage": _within(text, 1, 8)},
        "cell": lambda text: {"cell": _decode_cell(text, spec)},
        "show": lambda text: {"compare": COMPARE[COMPARE.index(text)]},
        "row": lambda text: {"row": _within(text, 0, spec.B - 1)},
        "head": lambda text: {"head": _within(text, 0, spec.h - 1)},
        "lang": lambda text: {"lang": LANGUAGES[LANGUAGES.index(text)]},
        "present": lambda text: {"present": bool(_within(text, 0, 1))},
    }
    values: dict[str, Any] = {}
    for key, text in rest.items():
        if key not in readers:
            notes.append(f"The link's part {shown(key)} is unknown. It was ignored.")
            continue
        try:
            values |= readers[key](text)
        except ValueError:
            notes.append(f"The link's {key} = {shown(text)} does not fit here. It was ignored.")
    return View(**values)


def _within(text: str, low: int, high: int) -> int:
    if not low <= (number := int(text)) <= high:
        raise ValueError(text)
    return number


def _decode_cell(text: str, spec: RunSpec) -> tuple[str, tuple[int, ...]]:
    name, _, index = text.partition("@")
    if name not in QUANTITIES and name not in WEIGHTS and not name.startswith("mlp.experts."):
        raise ValueError(text)
    cell = tuple(int(i) for i in index.split("."))
    try:
        shape = spec.shape(name)
    except KeyError:
        raise ValueError(text) from None
    if len(cell) != len(shape) or any(not 0 <= i < n for i, n in zip(cell, shape, strict=True)):
        raise ValueError(text)
    return name, cell
