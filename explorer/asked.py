"""What a person or a program asks for, in words -> a RunSpec.

Purpose: one reading of links, presets, settings by name and edits for the command line and the HTTP API, and a RunSpec
as plain data that reads back as the same RunSpec.
Must not know: torch, how a run is computed, gradio, argparse.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any
from urllib.parse import urlsplit

from explorer import link
from explorer.link import View
from explorer.offers import OFFERS
from explorer.spec import CHECKPOINT_PREFIX, PRESETS, Edit, RunSpec, SpecError
from explorer.typed import read_field, shown

EDIT = re.compile(
    r"\s*(?P<off>off\s+)?(?P<target>[\w.]+)\s*(?:\[(?P<index>[^\]]*)\])?\s*=\s*(?P<value>.+?)\s*", re.DOTALL
)
EVERY = (":", "*", "")
HOW_TO_EDIT = (
    'Write TARGET[INDEX]=VALUE, for example "resid_pre[0,0,1]=2", "probs[0,0,1,:]=0.5" for every key, or '
    '"resid_pre=[[[1,1],[1,-1]]]" for a whole tensor.'
)
SETTINGS = tuple(f.name for f in fields(RunSpec) if f.name not in ("edits", "switches"))
OF_TEXT = ("B", "T", "past", "padding")  # what says how much of a text is read
Fit = Callable[[str, str, Mapping[str, Any]], dict[str, Any]]
DEEPEST = 8  # lists inside lists; no tensor has so many axes


def read_edit(asked: object) -> Edit:
    """An Edit from text ("probs[0,0,1,:]=0.5", "off " before it to keep it without effect), or from a mapping
    {"target", "index", "value", "on"}. Raises SpecError."""
    if isinstance(asked, Edit):
        return asked
    if isinstance(asked, Mapping):
        return _edit_from_mapping(asked)
    match = EDIT.fullmatch(asked) if isinstance(asked, str) else None
    if match is None:
        raise SpecError({"edits": f"The edit {shown(asked)} could not be read. {HOW_TO_EDIT}"})
    index = [part.strip() for part in match["index"].split(",")] if match["index"] is not None else []
    return _edit(match[0], match["target"], index, match["value"].replace("−", "-"), not match["off"])


def _edit_from_mapping(asked: Mapping[str, object]) -> Edit:
    known = {"target", "index", "value", "on"}
    if unknown := [str(name) for name in asked if name not in known]:
        raise SpecError({"edits": f"An edit has no part {shown(unknown[0])}. Parts: target, index, value, on."})
    target, index, on = asked.get("target"), asked.get("index", []), asked.get("on", True)
    if not isinstance(target, str) or not isinstance(index, (list, tuple)) or not isinstance(on, bool):
        raise SpecError({"edits": f"The edit {shown(dict(asked))} needs a target (text), an index (list) and a value."})
    return _edit(str(dict(asked)), target, index, asked.get("value", math.nan), on)


def _edit(asked: str, target: str, index: Sequence[object], value: object, on: bool) -> Edit:
    try:
        cells = tuple(None if i is None or i in EVERY else _whole(i) for i in index)
        return Edit(target, cells, _value(value), on)
    except (ValueError, OverflowError, RecursionError):
        raise SpecError({"edits": f"The edit {shown(asked)} could not be read. {HOW_TO_EDIT}"}) from None


def _whole(entry: object) -> int:
    if isinstance(entry, bool) or not isinstance(entry, (int, str)):
        raise ValueError(entry)
    return int(entry)


def _value(value: object, depth: int = 0) -> Any:
    """A number or nested numbers; text is read as JSON or as a number, "-Inf" and "−∞" included."""
    if isinstance(value, str):
        text = value.strip().replace("∞", "inf")
        return _value(json.loads(text), depth) if text.startswith("[") else float(text)
    if isinstance(value, (list, tuple)) and depth < DEEPEST:
        return tuple(_value(v, depth + 1) for v in value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(value)
    return float(value)


def read_spec(
    *,
    link_or_address: str = "",
    preset: str = "",
    settings: Mapping[str, object] | None = None,
    edits: Iterable[object] = (),
    switches: Iterable[str] = (),
    fit: Fit | None = None,
) -> tuple[RunSpec, View, list[str]]:
    """The spec, the view of the link, and sentences about parts of the link and settings that were ignored.

    The link or preset comes first, settings (by RunSpec's field names, text or numbers; None for the default) replace
    what it says, edits and switches are added to it. fit: gives the sizes that a text among the settings asks for, from
    the checkpoint's name, the text and the sizes that are settings too. Raises SpecError naming every wrong field.
    """
    base, view, notes = _base(link_or_address, preset)
    typed = dict(settings or {})
    edits = (*_listed("edits", typed.pop("edits", ())), *edits)
    switches = (*_listed("switches", typed.pop("switches", ())), *switches)
    held = {name: value for name, value in base.given().items() if name not in typed}
    held |= {
        "edits": (*base.edits, *map(read_edit, edits)),
        "switches": (*base.switches, *(switch for switch in switches if switch not in base.switches)),
    }
    given = {name: value for name, value in typed.items() if value is not None}
    spec = RunSpec.parse(given | (_fitted(fit, given, base) if fit else {}), **held)
    return spec, view, [*notes, *_ignored(spec, given, base)]


def _fitted(fit: Fit, given: Mapping[str, object], base: RunSpec) -> dict[str, Any]:
    """The sizes that a text among the settings asks for; none where something wrong is given, to be named later."""
    text, weights = given.get("text"), str(given.get("weights") or base.weights).strip()
    if not (isinstance(text, str) and text.strip() and weights.startswith(CHECKPOINT_PREFIX)):
        return {}
    try:
        chosen = {name: read_field(name, given[name]) for name in OF_TEXT if _is_given(given.get(name))}
    except ValueError:
        return {}
    return fit(weights.removeprefix(CHECKPOINT_PREFIX), text, ({"past": base.past} if base.past else {}) | chosen)


def _is_given(value: object) -> bool:
    return value is not None and (not isinstance(value, str) or bool(value.strip()))


def _ignored(spec: RunSpec, given: Mapping[str, object], base: RunSpec) -> list[str]:
    """Sentences that name what was asked for and has no effect on this run."""
    asked = base.given() | {name: read_field(name, value) for name, value in given.items() if _is_given(value)}
    dictated = OFFERS[spec.checkpoint].fields if spec.checkpoint in OFFERS else {}
    without = {
        "The checkpoint has its own.": [name for name in dictated if asked.get(name, dictated[name]) != dictated[name]],
        "Only a checkpoint reads a text and has layers; choose one as weights.": [
            name for name in ("text", "layer") if asked.get(name) and not spec.checkpoint
        ],
        "Only random weights are drawn from it.": [
            name for name in ("seed",) if name in given and asked.get(name) and spec.weights != "random"
        ],
    }  # fmt: skip
    return [f"Ignored: {', '.join(names)}. {why}" for why, names in without.items() if names]


def _base(address: str, preset: str) -> tuple[RunSpec, View, list[str]]:
    if address and preset:
        raise SpecError({"link": "A link and a preset are given. Give one of the two, and settings beside it."})
    if preset and preset not in PRESETS:
        raise SpecError({"preset": f"There is no preset {shown(preset)}. Presets: {', '.join(PRESETS)}."})
    if preset:
        return PRESETS[preset], View(), []
    return link.decode(query_of(address)) if address else (RunSpec(), View(), [])


def query_of(address: str) -> str:
    """The query string of a whole address, or of what follows the question mark."""
    if "?" in address:
        try:
            return urlsplit(address).query
        except ValueError:
            return address.partition("?")[2]
    return address


def _listed(name: str, value: object) -> tuple[Any, ...]:
    """What stands under `edits` or `switches`: a list, or one entry by itself."""
    if isinstance(value, (str, Mapping)):
        return (value,) if value else ()
    if not isinstance(value, (list, tuple)):
        raise SpecError({name: f"{name} = {shown(value)} is not a list. Give a list, for example []."})
    return tuple(value)


def as_settings(spec: RunSpec) -> dict[str, Any]:
    """The spec as plain data for JSON: what differs from the defaults, and how much of a text is read;
    `read_spec(settings=…)` gives it back."""
    plain: dict[str, Any] = {name: value for name, value in spec.given().items() if name not in ("edits", "switches")}
    if spec.checkpoint and spec.text:
        plain |= {name: getattr(spec, name) for name in OF_TEXT}
    if "padding" in plain:
        plain["padding"] = list(spec.padding)
    if spec.edits:
        plain["edits"] = [
            {"target": e.target, "index": list(e.index), "value": plain_number(e.value), "on": e.on} for e in spec.edits
        ]
    if spec.switches:
        plain["switches"] = list(spec.switches)
    return plain


def plain_number(value: Any) -> Any:
    """A number, or nested tuples of numbers, for JSON: what is not finite becomes "NaN", "Inf" or "-Inf"."""
    if isinstance(value, (tuple, list)):
        return [plain_number(v) for v in value]
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Inf" if value > 0 else "-Inf"
