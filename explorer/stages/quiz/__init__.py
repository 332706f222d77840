"""Questions that a run asks about itself: shapes, sums, stages, masks and single values, each with four answers.

Purpose: `questions`, made from the one table of quantities, with wrong answers that come from likely mistakes.
Must not know: the page, how answers are marked.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from explorer.stages.look import Look
from explorer.stages.quiz import cells, structure
from explorer.stages.quiz.question import Asker, Draft, Question, shuffled

__all__ = ["KINDS", "Question", "questions"]

KINDS: dict[str, Callable[[Asker], Draft | None]] = {
    "shape": structure.shape,
    "axis": structure.axis,
    "stage": structure.stage,
    "seen": cells.seen,
    "value": cells.value,
}


def questions(look: Look, stage: int, outputs: tuple[str, ...], seed: int = 0, lang: str = "en") -> list[Question]:
    """One question of each kind that this stage and run allow; the same seed gives the same ones in every language.

    stage: its number; outputs: the quantities it computes in this run
    """
    from explorer.stages.catalogue import STAGES  # here, since stages ask questions

    titles = tuple(each.text(lang).title for each in STAGES)
    asked = []
    for kind, make in KINDS.items():
        asker = Asker(look, stage, outputs, titles, lang, random.Random(f"{seed} {stage} {kind}"))
        draft = make(asker)
        if draft and (question := shuffled(draft, kind, asker)):
            asked.append(question)
    return asked
