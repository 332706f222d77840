"""Exercise 5: the two places where features mix, and the one where tokens mix.

What is right is measured: one number that an operation reads is changed, and what it gives is compared.
Must not know: the page.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from explorer.capture import Trace
from explorer.run import run
from explorer.spec import Edit, RunSpec
from explorer.studio.exercise import Marked, Task, shuffled, summed_up
from explorer.studio.texts import Texts, symbol_of
from explorer.studio.typed import choice, parts, whole

KINDS = ("features", "tokens", "neither")
FEATURE_AXES = ("D", "Dh", "C", "F")
PAIR = (
    2  # RoPE turns two features into each other, by an angle that is the position's: the course counts more as mixing
)
TOKEN, FEATURE, BY = 1, 2, 1.0  # what is changed, and by how much

# Each operation: (what it reads, what it gives), each pair looked at by itself.
OPERATIONS: dict[str, tuple[tuple[str, str], ...]] = {
    "rms": (("resid_pre", "attn_norm"),),
    "projections": (("attn_norm", "q"), ("concat", "attn_out")),
    "rope": (("q_norm", "q_rot"),),
    "scores": (("k_rot", "scores"),),
    "mask": (("scores", "masked_scores"),),
    "blend": (("v", "heads"),),
    "residual": (("attn_out", "resid_mid"),),
    "ffn": (("ffn_norm", "ffn_out"),),
}


@dataclass(frozen=True)
class Proof:
    """One number changed and what moved: before and after are [tokens, features] or, of scores, [queries, keys]."""

    source: str
    result: str
    was: float
    before: NDArray[np.float64]
    after: NDArray[np.float64]
    features: bool

    @property
    def moved(self) -> NDArray[np.bool_]:
        same: NDArray[np.bool_] = np.isclose(self.before, self.after, rtol=1e-5, atol=1e-6)
        return ~same


def _spec() -> RunSpec:
    return RunSpec(T=4, d_model=12, h=3, weights="random")


@cache
def proof(source: str, result: str, token: int = TOKEN, feature: int = FEATURE) -> Proof:
    """Change one number of `source`, at a token and a feature (heads side by side), and look at `result`."""
    spec = _spec()
    trace, head, inside = run(spec), *divmod(feature, spec.head_dim)
    index = {3: (0, token, feature), 4: (0, head, token, inside)}[len(trace.axes(source))]
    if trace.axes(source)[-1] == "Tk":
        index = (0, head, token, 0)
    was = float(trace[source][index])
    edited = run(spec.with_edit(Edit(source, index, was + BY)))
    features = trace.axes(result)[-1] in FEATURE_AXES
    return Proof(source, result, was, _flat(trace, result, head), _flat(edited, result, head), features)


def _flat(trace: Trace, name: str, head: int) -> NDArray[np.float64]:
    """The batch row's [tokens, features], heads side by side; of scores the head that the change is in."""
    values: NDArray[np.float64] = trace[name][0].astype(np.float64)
    if values.ndim == 2:
        return values
    if trace.axes(name)[-1] == "Tk":
        values = values[head]
    else:
        values = values.transpose(1, 0, 2).reshape(values.shape[1], -1)
    return values


@cache
def kind(operation: str) -> str:
    """What the operation mixes, from what moved."""
    found = {_kind(proof(*pair)) for pair in OPERATIONS[operation]}
    return next(name for name in ("tokens", "features", "neither") if name in found)


def _kind(seen: Proof) -> str:
    """Tokens mix when a result that has features moves at other tokens; features, when others move at the same token
    in another way than by one common factor.
    """
    moved = seen.moved
    if not seen.features:
        return "neither"
    if set(np.flatnonzero(moved.any(1))) != {TOKEN}:
        return "tokens"
    others = np.delete(np.stack([seen.before[TOKEN], seen.after[TOKEN]]), FEATURE, axis=1)
    factor = (others[0] @ others[1]) / (others[0] @ others[0])
    scaled = bool(np.allclose(others[1], factor * others[0], rtol=1e-3, atol=1e-5))
    return "neither" if scaled or moved[TOKEN].sum() <= PAIR else "features"


def _mixed(seed: int) -> list[str]:
    return shuffled(OPERATIONS, seed, "mixing")


def task(seed: int, texts: Texts) -> Task:
    spec = _spec()
    return {
        "items": [texts.say(f"operation.{name}") for name in _mixed(seed)],
        "kinds": [texts.say(f"kind.{name}") for name in KINDS],
        "tokens": spec.T, "features": spec.d_model, "token": TOKEN, "feature": FEATURE,
    }  # fmt: skip


def mark(answer: Any, seed: int, texts: Texts) -> Marked:
    """answer: {"kinds": one a listed operation}, or {"prove": which one, "token", "feature"} for an experiment."""
    names = _mixed(seed)
    if isinstance(answer, dict) and "prove" in answer:
        return _proven(answer, names, texts)
    marks: list[bool | None] = []
    hints = []
    for name, part in zip(names, parts(answer, len(names), "kinds"), strict=True):
        given = choice(part, len(KINDS))
        right = None if given is None else KINDS[given] == kind(name)
        marks.append(right)
        wrong = "" if right or given is None else texts.say(f"feedback.{name}.{KINDS[given]}")
        hints.append(texts.say(f"reason.{name}") if right else wrong)
    return Marked(tuple(marks), tuple(hints), summed_up(marks, texts), all(marks))


def _proven(answer: dict[str, Any], names: list[str], texts: Texts) -> Marked:
    spec = _spec()
    chosen = choice(answer["prove"], len(names))
    token, feature = whole(answer.get("token"), 0, spec.T - 1), whole(answer.get("feature"), 0, spec.d_model - 1)
    if chosen is None or token is None or feature is None:
        said = texts.say("hint.prove", tokens=spec.T - 1, features=spec.d_model - 1)
        return Marked((None,), ("",), said, False)
    shown = [_shown(proof(*pair, token, feature), token, feature, texts) for pair in OPERATIONS[names[chosen]]]
    return Marked((None,), ("",), "", False, {"proofs": shown, "about": chosen})


def _shown(seen: Proof, token: int, feature: int, texts: Texts) -> dict[str, Any]:
    moved = seen.moved
    rows, columns = np.flatnonzero(moved.any(1)), np.flatnonzero(moved.any(0))
    of_scores = seen.source == "scores"
    cell = texts.say("edited.score" if of_scores else "edited", symbol=symbol_of(seen.source), token=token,
                     was=seen.was, now=seen.was + BY, **({} if of_scores else {"feature": feature}))  # fmt: skip
    key = "moved" if seen.features else "moved.scores"
    if not rows.size:
        key = "still"
    names = ("token", "feature") if seen.features else ("query", "key")
    placed = {"rows": _places(names[0], rows, texts), "columns": _places(names[1], columns, texts)}
    told = {**placed, "count": int(moved.sum())} if rows.size else {}
    said = texts.say(key, cell=cell, symbol=symbol_of(seen.result), of=int(moved.size), **told)
    return {
        "said": said,
        "symbol": symbol_of(seen.result),
        "row": texts.say(f"axis.{names[0]}"),
        "column": texts.say(f"axis.{names[1]}"),
        "cells": moved.astype(int).tolist(),
    }


def _places(name: str, places: NDArray[np.int64], texts: Texts) -> str:
    """For example "token 1" or "features 0–11"."""
    several = {"query": "queries"}.get(name, f"{name}s")
    return texts.say(f"places.{name if len(places) == 1 else several}", places=_listed(places))


def _listed(places: Iterable[Any]) -> str:
    """0, 2–4: runs of places are drawn together."""
    runs: list[list[int]] = []
    for place in map(int, places):
        if runs and runs[-1][-1] == place - 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
