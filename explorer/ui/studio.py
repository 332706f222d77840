"""The Studio on the page: a task, or an answer marked. Exercises and marking are explorer.studio's.

Purpose: {"exercise", "seed"} -> what to show; {"exercise", "seed", "answer"} -> marks and hints.
Must not know: gradio, how an exercise is marked. Nothing about a visitor is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from explorer.messages import say
from explorer.spec import SpecError
from explorer.studio import EXERCISES, Exercise
from explorer.typed import shown

LARGEST_SEED = 10**6
KNOWN = {exercise.name: exercise for exercise in EXERCISES}


def studio(given: Any, lang: str) -> dict[str, Any]:
    """{"exercise", "seed", …task} and the titles of all exercises, or {"exercise", "seed", …marked}; texts are HTML.

    Raises SpecError where no exercise has that name, or where the server's limits leave no room for its runs.
    """
    asked = given if isinstance(given, Mapping) else {}
    exercise, seed = _exercise(asked.get("exercise", EXERCISES[0].name)), asked.get("seed")
    seed = seed if isinstance(seed, int) and 0 <= seed <= LARGEST_SEED else 0
    about = {"exercise": exercise.name, "seed": int(seed)}
    if "answer" in asked:
        return about | asdict(exercise.judge(asked["answer"], seed, lang))
    titles = [{"name": each.name, "title": each.title(lang)} for each in EXERCISES]
    return about | {"exercises": titles, "task": exercise.ask(seed, lang)}


def _exercise(name: Any) -> Exercise:
    if isinstance(name, str) and name in KNOWN:
        return KNOWN[name]
    known = ", ".join(KNOWN)
    message = say("There is no exercise {name}. Exercises: {known}.", name=shown(name), known=known)
    raise SpecError({"studio": message})
