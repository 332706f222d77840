"""The questions of a stage on the page: about the run that is shown, so they change with every edit.

Purpose: `quiz`. Questions and their marks are explorer.stages.quiz's; which stage computes a thing is not asked, since
the page that asks is that stage's.
Must not know: gradio, how a question is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from explorer.run import run
from explorer.stages import STAGES
from explorer.ui.request import Asked

LARGEST_SEED = 10**6
LEFT_OUT = ("stage",)


def quiz(asked: Asked, given: Any, lang: str) -> dict[str, Any]:
    """{"stage", "questions": [{"kind", "about", "index", "text", "options", "answer", "why", "hint"}]}; texts are HTML.

    given: {"seed": which of the possible questions}; the same seed asks the same in every language.
    """
    seed = given.get("seed") if isinstance(given, Mapping) else 0
    seed = seed if isinstance(seed, int) and 0 <= seed <= LARGEST_SEED else 0
    view, trace = asked.view, run(asked.spec)
    found = STAGES[view.stage - 1].questions(trace, view.row, view.head, lang=lang, seed=seed)
    return {"stage": view.stage, "questions": [asdict(q) for q in found if q.kind not in LEFT_OUT]}
