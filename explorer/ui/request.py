"""What the browser asks for -> a RunSpec and a View.

Purpose: read an untrusted request; every wrong field gets its message.
Must not know: how a run is computed or shown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from explorer import link
from explorer.link import COMPARE, LANGUAGES, View
from explorer.link.keys import MOST_CELLS
from explorer.link.packing import MARK, count, unpack
from explorer.messages import in_language, say
from explorer.quantities import QUANTITIES, UnknownName
from explorer.spec import PRESETS, Edit, RunSpec, SpecError
from explorer.ui import whatif
from explorer.ui.controls import FIELDS, Field
from explorer.ui.inspect import chosen
from explorer.ui.reading import settle
from explorer.validation import MOST_SWITCHES

STAGE_COUNT = 8
DEPENDED_ON = {"d_model", "h", "h_kv", "d_h"}  # while one of them is wrong, others cannot be judged


@dataclass(frozen=True)
class Asked:
    """A request that can be run. notes: sentences for the visitor; slots: which batch row, head and token is shown."""

    spec: RunSpec
    view: View
    notes: tuple[str, ...]
    slots: Mapping[str, int]

    def showing(self, slots: Mapping[str, int]) -> Asked:
        """The same with these slots, which the view holds as well, for the link."""
        row, head, token, expert = (slots.get(name, 0) for name in "bhte")
        return replace(self, slots=slots, view=replace(self.view, row=row, head=head, token=token, expert=expert))


def read(request: Mapping[str, Any], texts: Mapping[str, Any]) -> Asked:
    """Raises SpecError with messages by field; "" is the request as a whole."""
    notes: list[str] = []
    view = _view(request)
    base: RunSpec | None = None
    if isinstance(query := request.get("query"), str):
        base, view, notes = link.decode(query)
    elif (preset := request.get("preset")) is not None:
        base = _preset(preset)
    typed = settle(_typed(request, base), request.get("fit") is True)
    spec = _spec_without_edits(typed, notes, texts)
    spec = replace(spec, switches=_fitting(_switches(request, base), spec, notes, texts))
    idle = _fitting(view.idle, spec, notes, texts)
    edits = [*(base.edits if base else ()), *_edits(request)]
    spec = _with_edits(spec, edits, notes, texts)
    slots = _slots(request, view, spec)
    cell = view.cell if isinstance(request.get("query"), str) else chosen(request, spec)
    view = replace(view, cell=cell, idle=tuple(name for name in idle if name not in spec.switches))
    return Asked(spec, view, tuple(notes), {}).showing(slots)


def _preset(name: Any) -> RunSpec:
    if not isinstance(name, str) or name not in PRESETS:
        message = say("There is no preset {name!r}. Presets: {known}.", name=str(name)[:40], known=", ".join(PRESETS))
        raise SpecError({"": message})
    return PRESETS[name]


def _typed(request: Mapping[str, Any], base: RunSpec | None) -> dict[str, Any]:
    """What stands in the fields: the preset's or link's values below, what was typed above."""
    given = request.get("spec")
    typed = {str(name): value for name, value in given.items()} if isinstance(given, Mapping) else {}
    for name in ("edits", "switches"):
        typed.pop(name, None)
    below = {k: v for k, v in base.given().items() if k not in ("edits", "switches")} if base else {}
    return {**below, **typed}


def _spec_without_edits(typed: dict[str, Any], notes: list[str], texts: Mapping[str, Any]) -> RunSpec:
    missing = {
        name: texts[_needed(field)].format(name=name)
        for name, field in FIELDS.items()
        if not field.optional and isinstance(typed.get(name), str) and not typed[name].strip()
    }
    try:
        spec = _parse({k: v for k, v in typed.items() if k not in missing})
    except SpecError as error:
        wants_toy = typed.get("weights", "toy") == "toy"
        if missing or not wants_toy:
            raise SpecError(missing | error.errors) from None
        spec = _parse({**typed, "weights": "random"})
        notes.append(texts["note_random_experts" if set(error.errors) == {"experts"} else "note_random"])
    if missing:
        raise SpecError(missing)
    return spec


def _needed(field: Field) -> str:
    """Which text says that a field may not be empty."""
    return {"choice": "needed_choice", "flag": "needed_choice", "real": "needed_real"}.get(field.kind, "needed_whole")


def _parse(typed: dict[str, Any]) -> RunSpec:
    """RunSpec.parse that also looks at the fields that can be read when others cannot, so that all messages appear."""
    try:
        return RunSpec.parse(typed)
    except SpecError as error:
        if DEPENDED_ON & error.errors.keys():
            raise
        rest = {k: v for k, v in typed.items() if k not in error.errors}
        if len(rest) < len(typed):
            try:
                RunSpec.parse(rest)
            except SpecError as more:
                raise SpecError({**more.errors, **error.errors}) from None
        raise


def _fitting(switches: tuple[str, ...], spec: RunSpec, notes: list[str], texts: Mapping[str, Any]) -> tuple[str, ...]:
    """The what-ifs without those whose head or expert does not exist at these sizes; those are named."""
    sorted_out = whatif.sort(switches, spec)
    if sorted_out.gone:
        labels = "; ".join(whatif.label(switch, texts) for switch in sorted_out.gone)
        notes.append(texts["note_switches_gone"].format(switches=labels))
    return sorted_out.fit


def _with_edits(spec: RunSpec, edits: list[Edit], notes: list[str], texts: Mapping[str, Any]) -> RunSpec:
    """`spec` with the edits; those whose cell does not exist at these sizes are left out and named."""
    fit = [edit for edit in edits if _exists(spec, edit)]
    if gone := [in_language(edit.label(), texts["lang"]) for edit in edits if edit not in fit]:
        notes.append(texts["note_gone"].format(edits="; ".join(gone[:5]) + (" …" if len(gone) > 5 else "")))
    return replace(spec, edits=tuple(fit))


def _exists(spec: RunSpec, edit: Edit) -> bool:
    try:
        shape = spec.shape(edit.target)
    except UnknownName:
        return True  # the spec's own check says what is wrong with the name
    only = QUANTITIES[edit.target].only if edit.target in QUANTITIES else ""
    if only and (only == "moe") != bool(spec.experts):
        return False
    if len(edit.index) != len(shape):
        return True
    return all(i is None or 0 <= i < n for i, n in zip(edit.index, shape, strict=True))


def _edits(request: Mapping[str, Any]) -> list[Edit]:
    """Whole tensors come packed as in a link, and all together hold no more numbers than a link's."""
    edits, wrong, cells = [], {}, MOST_CELLS
    given = request.get("edits") or []
    for n, item in enumerate(given if isinstance(given, list) else []):
        try:
            edits.append(_edit(item, cells))
            cells -= count(edits[-1].value)
        except (KeyError, TypeError, ValueError, OverflowError):
            wrong[f"edits.{n}"] = say("This edit cannot be read. Type a finite number, or remove it.")
    if wrong:
        raise SpecError(wrong)
    return edits


def _edit(item: Mapping[str, Any], most_cells: int) -> Edit:
    value = item["x"]
    if isinstance(value, str) and value.startswith(MARK):
        value = unpack(value, most_cells)
    elif isinstance(value, (str, int, float)) and not isinstance(value, bool):
        value = float(value)
        if math.isnan(value):
            raise ValueError(value)
    elif not isinstance(value, list):
        raise TypeError(value)
    index = tuple(None if i is None else int(i) for i in item["i"])
    return Edit(str(item["t"]), index, value, bool(item.get("on", True)))


def _switches(request: Mapping[str, Any], base: RunSpec | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*(base.switches if base else ()), *_names(request, "switches")]))


def _names(request: Mapping[str, Any], key: str) -> tuple[str, ...]:
    given = request.get(key) or []
    return tuple(str(s) for s in given) if isinstance(given, list) else ()


def _view(request: Mapping[str, Any]) -> View:
    compare, lang = request.get("compare"), request.get("chosen_lang")
    return View(
        stage=_whole(request.get("stage"), 1, 1, STAGE_COUNT), compare=compare if compare in COMPARE else COMPARE[0],
        lang=lang if lang in LANGUAGES else "", present=request.get("present") is True,
        idle=_names(request, "off")[:MOST_SWITCHES],
    )  # fmt: skip


def _slots(request: Mapping[str, Any], view: View, spec: RunSpec) -> dict[str, int]:
    """Which batch row, head, token and expert is shown where not all are."""
    given = request.get("slice")
    wanted = given if isinstance(given, Mapping) else {}
    by_link = isinstance(request.get("query"), str)
    if by_link:
        wanted = {"b": view.row, "h": view.head, "t": view.token, "e": view.expert}
    counts = {"b": spec.B, "h": spec.h, "t": spec.T} | ({"e": spec.experts} if spec.experts else {})
    return {name: _whole(wanted.get(name), 0, 0, count - 1) for name, count in counts.items()}


def _whole(value: Any, default: int, low: int, high: int) -> int:
    number = value if isinstance(value, int) and not isinstance(value, bool) else default
    return min(max(number, low), high)
