"""Puts the page together: head, what was run, the eight stages, the ledger.

Purpose: `page`. Text that comes from a visitor is escaped; the page forbids itself every request.
Must not know: how a stage, a figure or a table of numbers is made.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

from explorer import link
from explorer.answers import traced
from explorer.asked import as_settings
from explorer.capture import Trace
from explorer.draw.scales import PALETTE, ROLES
from explorer.export.grids import Place, tensor
from explorer.export.texts import TEXTS, Texts
from explorer.link import View
from explorer.messages import in_language
from explorer.spec import RunSpec
from explorer.stages import STAGES, Stage
from explorer.stages.terms import title

HERE = Path(__file__).parent
CSS = HERE.parents[1] / "assets" / "css"
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:; "
    "base-uri 'none'; form-action 'none'"
)
LOCALES = {"en": "en", "zh": "zh-Hans"}
Progress = Callable[[Iterable[Any], str], Iterable[Any]]


def page(
    spec: RunSpec,
    row: int = 0,
    head: int = 0,
    lang: str = "en",
    progress: Progress = lambda items, what: items,
    view: View | None = None,
) -> str:
    """One HTML document: the run of `spec` through all eight stages, for one batch row and head.

    lang: "en" or "zh". progress: wraps the stages while they are written, for example to show a bar. view: what else
    the link holds that opens the run again, its stage among it.
    Raises SpecError, LookupError for another language.
    """
    if lang not in TEXTS:
        raise LookupError(f"There is no page in {lang!r}. Languages: {', '.join(TEXTS)}.")
    done, base, texts = traced(spec), traced(spec.unedited()), TEXTS[lang]
    place = Place(min(max(row, 0), spec.B - 1), min(max(head, 0), spec.h - 1), lang)
    shown = replace(view or View(), row=place.row, head=place.head, lang=lang if lang != "en" else "", present=False)
    figures: list[dict[str, Any]] = []
    sections = [_stage(stage, done, base, place, figures) for stage in progress(STAGES, "stages")]
    drawings = json.dumps({"figures": figures, "palette": PALETTE}, ensure_ascii=False).replace("<", "\\u003c")
    contents = "".join(f'<li><a href="#stage-{s.number}">{s.text(lang).title}</a></li>' for s in STAGES)
    return f"""<!DOCTYPE html>
<html lang="{LOCALES[lang]}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{texts.title}</title>
<style>{_faces()}{_colours()}{(HERE / "style.css").read_text(encoding="utf-8")}</style>
</head>
<body>
<header><h1>{texts.title}</h1>
<p>{texts.opening}</p>
{_run(spec, shown, lang)}
<nav><ol>{contents}</ol></nav></header>
<main>
{"".join(sections)}
{_ledger(done, texts, lang)}
</main>
<script type="application/json" id="drawings">{drawings}</script>
<script>{_plotly()}</script>
<script>{(HERE / "draw.js").read_text(encoding="utf-8")}</script>
</body>
</html>
"""


def _faces() -> str:
    """The page's typefaces, as @font-face rules that hold the fonts themselves."""
    rules = (
        line for line in (CSS / "page.css").read_text(encoding="utf-8").splitlines() if line.startswith("@font-face")
    )
    return "\n".join(re.sub(r'url\("([^"]+)"\)', _inline, rule) for rule in rules) + "\n"


def _inline(address: re.Match[str]) -> str:
    return f"url(data:font/woff2;base64,{b64encode((CSS / address[1]).read_bytes()).decode()})"


def _colours() -> str:
    """The colours of roles and of cells, from the palette of figures and page, as CSS variables in both themes."""
    light, dark = (" ".join(f"--{name}: {colour};" for name, colour in _named(theme)) for theme in ("light", "dark"))
    roles = "".join(f".role-{role} {{ --role: var(--{role}); }} span.role-{role}, mi.role-{role}, mrow.role-{role} "
                    f"{{ color: var(--{role}); }}\n" for role in ROLES)  # fmt: skip
    return f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n{roles}"


def _named(theme: str) -> Iterator[tuple[str, str]]:
    colours = PALETTE[theme]
    yield from ((role, colours[role]) for role in ROLES)
    signed, unit = colours["cell_signed"], colours["cell_unit"]
    yield from {
        "at-zero": unit[0][1],
        "at-minus": signed[0][1],
        "at-plus": signed[-1][1],
        "at-unit": unit[-1][1],
    }.items()


def _run(spec: RunSpec, view: View, lang: str) -> str:
    """What was run: settings, edits, what-ifs, and how to open it again."""
    texts, settings = TEXTS[lang], as_settings(spec)
    settings.pop("edits", None), settings.pop("switches", None)
    said = ", ".join(f"{name} = {value}" for name, value in settings.items()) or texts.toy
    changes = [in_language(edit.label(), lang) + ("" if edit.on else f" ({texts.off})") for edit in spec.edits]
    changes += [_whatif(switch, lang) for switch in spec.switches]
    listed = "".join(f"<li>{escape(change)}</li>" for change in changes)
    try:
        query = f"<code>?{escape(link.encode(spec, view))}</code>"
        again = f"<p>{texts.again.format(query=query)}</p>"
    except link.LinkTooLong:
        again = ""
    return (
        f'<section id="run"><p>{texts.run.format(settings=escape(said))}</p>'
        f"{f'<p>{texts.changes}</p><ul>{listed}</ul><p>{texts.marks}</p>' if listed else ''}{again}</section>"
    )


def _whatif(switch: str, lang: str) -> str:
    """A what-if in words, with its head, expert or number."""
    argument = switch.partition(":")[2]
    return TEXTS[lang].whatif.format(title=title(switch, lang), argument=argument) if argument else title(switch, lang)


def _stage(stage: Stage, done: Trace, base: Trace, place: Place, figures: list[dict[str, Any]]) -> str:
    texts, prose = TEXTS[place.lang], stage.text(place.lang)
    facts = "".join(f"<p>{fact}</p>" for fact in stage.facts(done, place.row, place.head, lang=place.lang))
    tensors = "".join(
        f'<div class="group {group}"><h3>{getattr(texts, group)}</h3><div class="tensors">'
        f"{''.join(tensor(done, base, name, place) for name in names)}</div></div>"
        for group, names in stage.panels(done).items()
        if names
    )
    drawn = []
    for figure in stage.figures(done, place.row, place.head, place.lang):
        drawn.append(
            f'<figure class="drawing"><div data-figure="{len(figures)}"></div>'
            f"<figcaption><b>{escape(figure['title'])}</b> {escape(figure['text'])}</figcaption></figure>"
        )
        figures.append({part: figure[part] for part in ("id", "data", "layout")})
    code = "".join(
        f"<p>{escape(texts.place.format(file=part.file, line=part.line, name=part.name))}</p>"
        f"<pre>{escape(part.text)}</pre>"
        for part in stage.code_that_ran(done)
    )
    return f"""<section class="stage" id="stage-{stage.number}">
<h2>{stage.number}. {prose.title}</h2>
<div class="equation">{stage.equation_in(place.lang, done.moe)}</div>
<div class="groups">{tensors}</div>
<div class="facts">{facts}</div>
<div class="asides"><p><b>{texts.mixes}</b> {prose.mixes}</p><p><b>{texts.notice}</b> {prose.notice}</p></div>
{"".join(drawn)}
<details><summary>{texts.lines}</summary>{code}</details>
</section>
"""


def _ledger(done: Trace, texts: Texts, lang: str) -> str:
    head = "".join(f"<th>{name}</th>" for name in texts.columns)
    rows = "".join(
        f'<tr data-row="{row.name}"><td>{row.stage or texts.given}</td><td>{row.name}</td><td>{row.symbolic}</td>'
        f"<td>{'×'.join(map(str, row.shape))}</td><td>{row.dtype}</td><td class=n>{row.bytes:,}</td>"
        f"<td class=n>{row.flops:,}</td><td>{in_language(row.note, lang)}</td></tr>"
        for row in done.ledger()
    )
    return (
        f'<section id="ledger"><h2>{texts.ledger}</h2>'
        f'<table class="ledger" data-ledger><tr>{head}</tr>{rows}</table></section>'
    )


def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs()).replace("</script", "<\\/script")
