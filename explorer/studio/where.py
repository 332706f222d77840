"""Exercise 0: where does RoPE occur in this block? Answered once, before anything else.

What is right is measured: the block runs with and without rotation, and the first stage whose results differ, and
which of its results do, is where RoPE acts (Su et al. 2021, section 3.4.2).
Must not know: the page.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from explorer.quantities import QUANTITIES
from explorer.run import run
from explorer.spec import RunSpec
from explorer.studio.exercise import Marked, Task, shuffled
from explorer.studio.texts import Texts, symbol_of
from explorer.studio.typed import choice

# What each choice says is the first thing that RoPE touches.
CLAIMS: dict[str, frozenset[str]] = {
    "queries_keys": frozenset({"q_rot", "k_rot"}),
    "with_values": frozenset({"q_rot", "k_rot", "v"}),
    "projections": frozenset({"q", "k"}),
    "scores": frozenset({"scores"}),
    "stream": frozenset({"resid_pre"}),
}


@cache
def moved() -> tuple[str, ...]:
    """The quantities that differ between the toy and the toy without rotation, in the block's order."""
    plain, still = run(RunSpec()), run(RunSpec(switches=("no_rope",)))
    differ = (name for name in plain.names if not np.array_equal(plain[name], still[name]))
    return tuple(name for name in differ if not QUANTITIES[name].alias)


@cache
def touched() -> frozenset[str]:
    """Those of the first stage that differs."""
    first = min(QUANTITIES[name].stage for name in moved())
    return frozenset(name for name in moved() if QUANTITIES[name].stage == first)


def _options(seed: int) -> list[str]:
    return shuffled(CLAIMS, seed, "where")


def task(seed: int, texts: Texts) -> Task:
    return {"options": [texts.say(f"option.{name}") for name in _options(seed)]}


def mark(answer: Any, seed: int, texts: Texts) -> Marked:
    options = _options(seed)
    chosen = choice(answer, len(options))
    if chosen is None:
        return Marked((None,), ("",), texts.say("choose"), False)
    name = options[chosen]
    right = CLAIMS[name] == touched()
    stage = QUANTITIES[min(touched())].stage
    felt = next(name for name in moved() if QUANTITIES[name].stage > stage)
    more = {
        "right": next(n for n, name in enumerate(options) if CLAIMS[name] == touched()),
        "why": texts.say(
            "why", touched=texts.listed(symbol_of(n) for n in sorted(touched(), reverse=True)), stage=stage,
            felt=symbol_of(felt), later=QUANTITIES[felt].stage, values=symbol_of("v"),
        ),
        "stage": stage,
        "once": chosen,
    }  # fmt: skip
    return Marked((right,), (texts.say(f"feedback.{name}"),), texts.say("right" if right else "wrong"), True, more)
