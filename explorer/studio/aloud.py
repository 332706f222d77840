"""Exercise 6: tell the block aloud in under two minutes; what goes in and out of each stage is shown only afterwards.

Must not know: the page, which keeps the time. Nothing that is said is heard or kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from explorer.quantities import QUANTITIES
from explorer.run import run
from explorer.stages import STAGES, Stage
from explorer.studio.exercise import Marked, Task
from explorer.studio.shapes import case
from explorer.studio.texts import Texts, axis, symbol_of, times
from explorer.studio.typed import number, parts

SECONDS = 120
LEAST = 20  # less counts only for who named everything


def task(seed: int, texts: Texts) -> Task:
    return {"seconds": SECONDS, "lines": [stage.text(texts.lang).title for stage in STAGES]}


def mark(answer: Any, seed: int, texts: Texts) -> Marked:
    """answer: {"seconds": how long it took} shows the self-check; {"seconds", "named": [bool, …]} ends it, unless that
    was too short to have told anything and something was left out."""
    given = answer if isinstance(answer, dict) else {}
    seconds = number(given.get("seconds"))
    if seconds is None or seconds < 0:
        return Marked((), (), texts.say("tell_first"), False)
    lines = [{"in": _written(a), "out": _written(b)} for a, b in map(_in_and_out, STAGES)]
    more = {"lines": lines, "warning": texts.say("just_learns")}
    within = texts.say("within" if seconds <= SECONDS else "over", seconds=round(seconds), most=SECONDS)
    if not isinstance(given.get("named"), list):
        return Marked((), (), f"{within} {texts.say('check_yourself')}", False, more)
    named = tuple(part is True for part in parts(given, len(STAGES), "named"))
    if seconds < LEAST and not all(named):
        return Marked((), (), texts.say("too_short", seconds=round(seconds), least=LEAST), False, more)
    missed = [STAGES[n].text(texts.lang).title for n, ok in enumerate(named) if not ok]
    said = texts.say("missed", count=sum(named), titles=texts.listed(missed)) if missed else texts.say("named_all")
    return Marked(named, ("",) * len(named), f"{within} {said}", True, more)


def _in_and_out(stage: Stage) -> tuple[list[str], list[str]]:
    """What a stage reads, and those of its results that a later stage reads or the block returns."""
    trace = run(case(0))
    read = {name for later in STAGES[stage.number :] for name in later.panels(trace)["input"]}
    panels = stage.panels(trace)
    out = [name for name in panels["output"] if name in read or name == "resid_post"]
    return list(panels["input"]), out


def _written(names: Iterable[str]) -> str:
    """Symbols with their axes; those of one shape together."""
    groups = groupby(names, key=lambda name: QUANTITIES[name].axes)
    return "; ".join(
        f"{', '.join(map(symbol_of, members))} <small>{times(map(axis, axes))}</small>" for axes, members in groups
    )
