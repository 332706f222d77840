"""Puts the page together: head, what was run, the eight stages, the ledger.

Purpose: `page`. Text that comes from a visitor is escaped; the page forbids itself every request.
Must not know: how a stage, a figure or a table of numbers is made.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from html import escape
from pathlib import Path
from typing import Any

from explorer import link
from explorer.answers import traced
from explorer.asked import as_settings
from explorer.capture import Trace
from explorer.draw.scales import PALETTE, ROLES
from explorer.export.grids import tensor
from explorer.spec import RunSpec
from explorer.stages import STAGES, Stage
from explorer.switches import parse_switch

HERE = Path(__file__).parent
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)
Progress = Callable[[Iterable[Any], str], Iterable[Any]]


def page(spec: RunSpec, row: int = 0, head: int = 0, progress: Progress = lambda items, what: items) -> str:
    """One HTML document: the run of `spec` through all eight stages, for one batch row and head.

    progress: wraps the stages while they are written, for example to show a bar. Raises SpecError.
    """
    done, base = traced(spec), traced(spec.unedited())
    figures: list[dict[str, Any]] = []
    sections = [
        _stage(stage, done, base, min(row, spec.B - 1), min(head, spec.h - 1), figures)
        for stage in progress(STAGES, "stages")
    ]
    drawings = json.dumps({"figures": figures, "palette": PALETTE}, ensure_ascii=False).replace("<", "\\u003c")
    contents = "".join(f'<li><a href="#stage-{s.number}">{s.title}</a></li>' for s in STAGES)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>A Transformer block, stage by stage</title>
<style>{_colours()}{(HERE / "style.css").read_text(encoding="utf-8")}</style>
</head>
<body>
<header><h1>A Transformer block, stage by stage</h1>
<p>Every number on this page was computed by MiniMind's decoder block. Hover a number for its full value.</p>
{_run(spec)}
<nav><ol>{contents}</ol></nav></header>
<main>
{"".join(sections)}
{_ledger(done)}
</main>
<script type="application/json" id="drawings">{drawings}</script>
<script>{_plotly()}</script>
<script>{(HERE / "draw.js").read_text(encoding="utf-8")}</script>
</body>
</html>
"""


def _colours() -> str:
    """The role colours of figures and prose, as CSS variables in both themes."""
    light, dark = (" ".join(f"--{role}: {PALETTE[theme][role]};" for role in ROLES) for theme in ("light", "dark"))
    roles = "".join(f".role-{role} {{ --role: var(--{role}); }} span.role-{role}, mi.role-{role}, mrow.role-{role} "
                    f"{{ color: var(--{role}); }}\n" for role in ROLES)  # fmt: skip
    return f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n{roles}"


def _run(spec: RunSpec) -> str:
    """What was run: settings, edits, what-ifs, and how to open it again."""
    settings = as_settings(spec)
    settings.pop("edits", None), settings.pop("switches", None)
    said = ", ".join(f"{name} = {value}" for name, value in settings.items()) or "the toy, as it is"
    changes = [*(edit.label() + ("" if edit.on else " (off)") for edit in spec.edits)]
    changes += [f"{text}: {parse_switch(text).kind.title}" for text in spec.switches]
    listed = "".join(f"<li>{escape(change)}</li>" for change in changes)
    try:
        query = escape(link.encode(spec))
        again = f"<p>To open it again, put this behind the explorer's address: <code>?{query}</code></p>"
    except link.LinkTooLong:
        again = ""
    marks = (
        '<p>Changed numbers are <span class="changed">marked</span>, '
        'edited ones <span class="edited">framed</span>.</p>'
    )
    return (
        f'<section id="run"><p>Run: {escape(said)}</p>'
        f"{f'<p>Changes:</p><ul>{listed}</ul>{marks}' if listed else ''}{again}</section>"
    )


def _stage(stage: Stage, done: Trace, base: Trace, row: int, head: int, figures: list[dict[str, Any]]) -> str:
    equation = stage.equation_moe if done.moe and stage.equation_moe else stage.equation
    facts = "".join(f"<li>{fact}</li>" for fact in stage.facts(done, row, head))
    groups = stage.panels(done)
    tensors = "".join(
        f'<div class="group {group}">{"".join(tensor(done, base, name, row, head) for name in names)}</div>'
        for group, names in groups.items()
        if names
    )
    drawn = []
    for figure in stage.figures(done, row, head):
        drawn.append(
            f'<figure class="drawing"><div data-figure="{len(figures)}"></div>'
            f"<figcaption><b>{escape(figure['title'])}</b> {escape(figure['text'])}</figcaption></figure>"
        )
        figures.append({part: figure[part] for part in ("id", "data", "layout")})
    code = "".join(
        f"<p>{escape(part.file)}, line {part.line}, {escape(part.name)}</p><pre>{escape(part.text)}</pre>"
        for part in stage.code_that_ran(done)
    )
    return f"""<section class="stage" id="stage-{stage.number}">
<h2>{stage.number}. {stage.title}</h2>
<div class="equation">{equation}</div>
<ul class="facts">{facts}</ul>
{tensors}
{"".join(drawn)}
<p class="mixes">{stage.mixes}</p>
<p class="notice">{stage.notice}</p>
<details><summary>The lines that ran</summary>{code}</details>
</section>
"""


def _ledger(done: Trace) -> str:
    head = "".join(f"<th>{name}</th>" for name in ("stage", "quantity", "axes", "shape", "dtype", "bytes", "FLOPs", ""))
    rows = "".join(
        f'<tr data-row="{row.name}"><td>{row.stage or "in"}</td><td>{row.name}</td><td>{row.symbolic}</td>'
        f"<td>{'×'.join(map(str, row.shape))}</td><td>{row.dtype}</td><td class=n>{row.bytes:,}</td>"
        f"<td class=n>{row.flops:,}</td><td>{row.note}</td></tr>"
        for row in done.ledger()
    )
    return (
        '<section id="ledger"><h2>Shape ledger</h2>'
        f'<table class="ledger" data-ledger><tr>{head}</tr>{rows}</table></section>'
    )


def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs()).replace("</script", "<\\/script")
