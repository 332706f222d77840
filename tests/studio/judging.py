"""Exercises by name, an answer marked, and the shapes of a run reckoned from its sizes alone."""

from __future__ import annotations

from typing import Any

from explorer import RunSpec
from explorer.studio import EXERCISES, Marked

BY_NAME = {exercise.name: exercise for exercise in EXERCISES}
LANGUAGES = ("en", "zh")


def judge(name: str, answer: Any, seed: int = 0, lang: str = "en") -> Marked:
    return BY_NAME[name].judge(answer, seed, lang)


def reckoned(spec: RunSpec) -> list[tuple[int, ...]]:
    """The shapes from the sizes alone."""
    b, t, d, h, kv = spec.B, spec.T, spec.d_model, spec.h, spec.h_kv or spec.h
    return [(b, h, t, d // h), (b, kv, t, d // h), (b, h, t, t), (t, t), (b, t, d), (b, t, d)]


def written(shape: tuple[int, ...], how: str = "{}×") -> str:
    return "×".join(map(str, shape)) if how == "{}×" else how.join(map(str, shape))
