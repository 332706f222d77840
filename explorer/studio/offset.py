"""Exercise 4: why R_mᵀR_n = R_{n−m} matters inside stage 4, first in words and then with the real block.

The block runs on a query and a key whose rows are chosen from its own RoPE tables, so that the query stands at any
position m and the key at any n (Su et al. 2021, section 3.2.2, equation 16).
Must not know: the page.
"""

from __future__ import annotations

from typing import Any

import torch

from explorer.capture import record
from explorer.model.rope import rope_tables
from explorer.run import config_of, prepare
from explorer.spec import RunSpec
from explorer.studio import typed
from explorer.studio.exercise import Marked, Task, shuffled
from explorer.studio.texts import Texts

REASONS = ("offset", "lengths", "values", "mask")
RIGHT = "offset"
FURTHEST = 500  # positions; float32 still tells their scores apart from rounding
SAME = 1e-3  # scores of these sizes that differ by less are the same but for rounding
HEAD, KEY, QUERY = 0, 0, 1


def _block() -> RunSpec:
    """Two tokens: the first is looked at as a key, the second asks."""
    return RunSpec(T=2, d_model=12, h=3, weights="random")


def score(m: int, n: int) -> float:
    """What the block scores for its query at position m and its key at position n, before the mask."""
    spec = _block()
    ready = prepare(spec)
    cos, sin = rope_tables(config_of(spec), max(m, n) + 1)
    rows = torch.tensor([n, m])
    place = ready.hidden_states.device
    tables = cos[rows].to(place), sin[rows].to(place)
    trace = record(ready.block, ready.hidden_states, tables)
    return float(trace["scores"][0, HEAD, QUERY, KEY])


def _reasons(seed: int) -> list[str]:
    return shuffled(REASONS, seed, "offset")


def task(seed: int, texts: Texts) -> Task:
    return {
        "options": [texts.say(f"option.{name}") for name in _reasons(seed)],
        "check": texts.say("check", most=FURTHEST),
        "fields": [texts.say(f"field.{name}") for name in ("m", "n", "shift")],
        "start": ["3", "1", "10"],
    }


def mark(answer: Any, seed: int, texts: Texts) -> Marked:
    """answer: {"choice": which reason, "numbers": [m, n, shift] once they are checked}."""
    reasons = _reasons(seed)
    chosen = typed.choice(answer.get("choice") if isinstance(answer, dict) else None, len(reasons))
    if chosen is None:
        return Marked((None,), ("",), texts.say("choose"), False)
    right = reasons[chosen] == RIGHT
    marks, hints = (right,), (texts.say(f"feedback.{reasons[chosen]}"),)
    if not right:
        return Marked(marks, hints, texts.say("wrong"), False)
    if not answer.get("numbers"):
        return Marked(marks, hints, texts.say("now_check"), False, {"reason": True})
    return _checked(typed.parts(answer, 3, "numbers"), marks, hints, texts)


def _checked(given: list[Any], marks: tuple[bool, ...], hints: tuple[str, ...], texts: Texts) -> Marked:
    lows = (0, 0, 1)
    m, n, shift = (typed.whole(text, low, FURTHEST) for text, low in zip(given, lows, strict=True))
    if m is None or n is None or shift is None:
        read = [value is not None for value in (m, n, shift)]
        told = [
            "" if ok else texts.say("hint.whole", low=low, most=FURTHEST) for ok, low in zip(read, lows, strict=True)
        ]
        return Marked((*marks, *read), (*hints, *told), texts.say("hint.numbers"), False, {"reason": True})
    places = {"plain": (m, n), "both": (m + shift, n + shift), "one": (m, n + shift)}
    scores = {name: score(*place) for name, place in places.items()}
    stays = abs(scores["both"] - scores["plain"]) < SAME
    changes = abs(scores["one"] - scores["plain"]) >= SAME
    key = "stays" if stays and changes else "stays_both" if stays else "moves"
    more = {
        "reason": True,
        "scores": [
            {"label": texts.say(f"row.{name}"), "m": places[name][0], "n": places[name][1],
             "offset": places[name][1] - places[name][0], "score": scores[name]}
            for name in places
        ],
        "columns": [texts.say(f"column.{name}") for name in ("m", "n", "offset", "score")],
    }  # fmt: skip
    said = texts.say(key, offset=n - m, other=n + shift - m, difference=abs(scores["both"] - scores["plain"]))
    return Marked((*marks, True, True, True), (*hints, "", "", ""), said, stays, more)
