"""The page as a pure function: a request in, everything to paint out.

Purpose: `answer`, and `fixed`, the texts and declarations that never change.
Must not know: gradio, the browser. Nothing is kept between requests; nothing is raised to the page.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from html import escape
from typing import Any

from explorer import allowance, device, link
from explorer.axes import AXES
from explorer.capture import Trace
from explorer.capture.ledger import LedgerRow
from explorer.draw.scales import PALETTE
from explorer.link.packing import pack
from explorer.messages import in_language
from explorer.quantities import QUANTITIES, SCORE_TAPS, WEIGHTS, Quantity, Weight
from explorer.run import run
from explorer.spec import PRESETS, RunSpec, SpecError
from explorer.stages import STAGES
from explorer.stages.terms import title, title_in
from explorer.ui import asides, block_map, controls, inspect, matrix, reading, share, trials, whatif
from explorer.ui.request import Asked, read
from explorer.ui.symbols import shape_html, symbol_html, symbol_text
from explorer.ui.told import errors_on_page, on_page
from explorer.ui.words import language, words

log = logging.getLogger(__name__)
Payload = dict[str, Any]
BRANCHES = {7: "stream", 8: "ffn"}


@allowance.started()
def answer(request: Mapping[str, Any]) -> Payload:
    """The answer to one request of the page: {"ok": True, …} to paint, or {"ok": False, "errors": {field: message}}."""
    texts = words(language(request))
    seq = request.get("seq", 0)
    if request.get("want") == ["fixed"]:
        return {"ok": True, "seq": seq, "fixed": fixed(texts["lang"]), "first": first(texts["lang"])}
    try:
        asked = read(request, texts)
        if wanted := asides.wanted(request):
            return {"ok": True, "seq": seq, **asides.parts(wanted, asked, request, texts)}
        trace, base = _runs(asked.spec)
        asked = inspect.settled(asked, request, trace)
        return {"ok": True, "seq": seq, **_painted(asked, trace, base, texts)}
    except (SpecError, allowance.Stopped) as error:
        errors = errors_on_page(error.errors, texts["lang"])
        return {"ok": False, "seq": seq, "errors": errors, **_linked(request.get("query"))}
    except Exception:
        log.exception("a request could not be answered")
        return {"ok": False, "seq": seq, "errors": {"": texts["internal_error"]}}


def _linked(query: Any) -> Payload:
    """What a link asks for that cannot be run, to stand in the fields: {"linked": …}, or {} where there is no link."""
    if not isinstance(query, str):
        return {}
    spec, view, _ = link.decode(query)
    values = {"spec": controls.shown_values(spec), "derived": controls.derived(spec), "fields": controls.states(spec)}
    return {"linked": {**values, "stage": view.stage, "moe": bool(spec.experts)}}


def _runs(spec: RunSpec) -> tuple[Trace, Trace]:
    """The run, and the one without edits and switches (the same object where nothing is in force)."""
    trace = run(spec)
    in_force = any(edit.on for edit in spec.edits) or spec.switches
    return trace, run(spec.unedited()) if in_force else trace


def _painted(asked: Asked, trace: Trace, base: Trace, texts: Mapping[str, Any]) -> Payload:
    spec, view = asked.spec, asked.view
    stage = STAGES[view.stage - 1]
    shown = matrix.Shown(trace, base, tuple(e for e in spec.edits if e.on), view.compare, asked.slots)
    panels = [(n, group) for group, names in stage.panels(trace).items() for n in names if _of_expert(n, asked.slots)]
    query, unlinked = share.query(asked.spec, asked.view, texts["lang"])
    return {
        "query": query,
        "unlinked": unlinked,
        "present": view.present,
        "spec": controls.shown_values(spec),
        "derived": controls.derived(spec),
        "fields": controls.states(spec),
        "choices": whatif.choices(spec),
        "tokens": trace.tokens[asked.slots["b"]] if trace.tokens else None,
        "preset": next((name for name, preset in PRESETS.items() if preset == spec.unedited()), None),
        "edits": [{"t": e.target, "i": e.index, "x": _number(e.value), "on": e.on} for e in spec.edits],
        "switches": spec.switches,
        "off": view.idle,
        "stage": view.stage,
        "moe": trace.moe,
        "compare": view.compare,
        "slice": asked.slots,
        "slice_counts": matrix.hidden_slots(shown, [name for name, _ in panels]) | _experts(spec, panels),
        "map": {"thumbs": block_map.thumbnails(trace, asked.slots, base, view.compare)},
        "panels": [matrix.panel(shown, name, group, texts) for name, group in panels],
        "ran": stage.ran(trace),
        "facts": stage.facts(trace, view.row, view.head, inspect.token_of(trace, view.cell), texts["lang"]),
        "figures": stage.figures(trace, view.row, view.head, texts["lang"]),
        "ledger": [_ledger_row(row, trace, texts) for row in trace.ledger()],
        "parameters": sum(math.prod(trace.shape(name)) for name in trace.weights),
        "notes": [
            *(on_page(note, texts["lang"]) for note in asked.notes),
            *_path_notes(spec, trace, view.stage, texts),
            *_idle_notes(spec, trace, texts),
        ],
        "select": {"q": view.cell[0], "i": view.cell[1]} if view.cell else None,
        "inspect": inspect.opened(trace, spec, view.cell, texts["lang"]),
    }


def _of_expert(name: str, slots: Mapping[str, int]) -> bool:
    """Whether a weight is shown: of several experts, the chosen one's."""
    return not name.startswith("mlp.experts.") or int(name.split(".")[2]) == slots.get("e", 0)


def _experts(spec: RunSpec, panels: list[tuple[str, str]]) -> dict[str, int]:
    shows_one = spec.experts > 1 and any(name.startswith("mlp.experts.") for name, _ in panels)
    return {"e": spec.experts} if shows_one else {}


def _path_notes(spec: RunSpec, trace: Trace, stage: int, texts: Mapping[str, Any]) -> list[str]:
    typed = any(e.on and e.target in SCORE_TAPS for e in spec.edits)
    if spec.edits_scores and (typed or not spec.unedited().explicit):
        return [texts["note_explicit"]]
    return [texts["note_flash"]] if trace.recomputed and stage in (4, 5) else []


def _idle_notes(spec: RunSpec, trace: Trace, texts: Mapping[str, Any]) -> list[str]:
    idle = whatif.without_effect(trace, spec.switches)
    return [texts["note_no_effect"].format(whatif=whatif.label(switch, texts)) for switch in idle]


def _number(value: Any) -> Any:
    """JSON has no infinities: they travel as text. So do the values of a whole tensor, packed as in a link."""
    if isinstance(value, tuple):
        return pack(value)
    return str(value) if isinstance(value, float) and abs(value) == float("inf") else value


def _ledger_row(row: LedgerRow, trace: Trace, texts: Mapping[str, Any]) -> Payload:
    return {
        "name": row.name, "title": title_in(trace, row.name, texts["lang"]), "stage": row.stage,
        "axes": shape_html(row.axes), "shape": row.shape, "dtype": row.dtype,
        "bytes": row.bytes, "flops": row.flops, "agrees": row.agrees, "note": in_language(row.note, texts["lang"]),
        "shares": row.shares, "shown": row.stage or _first_shown(row.name),
    }  # fmt: skip


@cache
def _first_shown(name: str) -> int:
    """The first stage that shows what no stage computes."""
    return next(stage.number for stage in STAGES if name in stage.inputs)


@cache
def first(lang: str) -> Payload:
    """The first picture of somebody who asked for nothing."""
    return answer({"lang": lang})


@cache
def fixed(lang: str = "en") -> Payload:
    """What never changes: texts, stages, symbols, control declarations, colours."""
    texts = words(lang)
    known: list[tuple[str, Quantity | Weight]] = [*QUANTITIES.items(), *WEIGHTS.items()]
    return {
        "texts": texts,
        "palette": PALETTE,
        "axes": {letter: axis.symbol for letter, axis in AXES.items()} | _axis_words(texts),
        "letters": {letter: shape_html((letter,)) for letter in AXES},
        "quantities": {
            name: {
                "symbol": symbol_html(about.latex), "plain": symbol_text(about.latex), "title": title(name, lang),
                "role": about.role, "stage": about.stage, "scale": getattr(about, "scale", "signed"),
                "axes": about.axes,
            }
            for name, about in known
        },
        "stages": [
            {
                "number": stage.number, "title": stage.text(lang).title, "equation": stage.equation_in(lang),
                "equation_moe": stage.equation_in(lang, moe=True), "mixes": stage.text(lang).mixes,
                "notice": stage.text(lang).notice,
                "code": [asdict(excerpt) for excerpt in stage.code],
                "branch": texts[f"branch_{BRANCHES.get(stage.number, 'attention')}"],
            }
            for stage in STAGES
        ],
        "map": block_map.rows(
            [escape(name) for name in texts["map_titles"]],
            symbol_html(QUANTITIES["resid_pre"].latex), symbol_html(QUANTITIES["resid_post"].latex),
        ),
        "controls": controls.declarations(texts),
        "switches": whatif.declarations(texts),
        "examples": reading.examples(),
        "gpu": device.gpu_here(),
        "course_row": trials.course_row(),
        "presets": [{"name": name, "title": texts[f"preset_{name}"]} for name in PRESETS],
    }  # fmt: skip


def _axis_words(texts: Mapping[str, Any]) -> dict[str, str]:
    return {letter: texts[f"axis_{letter}"] for letter in AXES if f"axis_{letter}" in texts}
