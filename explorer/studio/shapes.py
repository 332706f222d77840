"""Exercise 2: the shapes of one block, as numbers; a wrong one is told which axis went wrong where that can be seen.

Must not know: the page.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from explorer.run import run
from explorer.spec import PRESETS, RunSpec, SpecError
from explorer.studio import typed
from explorer.studio.exercise import Marked, Task, summed_up
from explorer.studio.texts import Texts, symbol_of

Axes = tuple[str, ...]
DRAWS = 40


@dataclass(frozen=True)
class Part:
    """One shape that is asked for: of a quantity, or of its last `last` axes alone."""

    key: str
    quantity: str
    last: int | None = None


PARTS = (
    Part("q", "q"), Part("k", "k"), Part("scores", "scores"), Part("one_head", "scores", 2), Part("concat", "concat"),
    Part("resid_post", "resid_post"),
)  # fmt: skip


@lru_cache(maxsize=256)
def case(seed: int) -> RunSpec:
    """Seed 0: the course's case; others draw sizes that differ from one another, so that mistakes can be told apart.

    Raises SpecError where the server's limits leave no room.
    """
    if seed == 0:
        return RunSpec(B=2, T=5, d_model=12, h=3, weights="random")
    chance = random.Random(f"shapes {seed}")
    for _ in range(DRAWS):
        h_kv, groups, d_h = chance.choice([1, 2, 3]), chance.choice([1, 2, 3]), chance.choice([2, 4, 6, 8])
        batch, tokens, h = chance.randint(2, 4), chance.randint(3, 9), h_kv * groups
        if len({batch, tokens, h, d_h, h * d_h}) < 5 or (groups > 1 and h_kv in (batch, tokens, d_h)):
            continue
        try:
            return RunSpec(B=batch, T=tokens, d_model=h * d_h, h=h, h_kv=h_kv, weights="random", seed=seed % 1000)
        except SpecError:
            continue
    return case(0)


def task(seed: int, texts: Texts) -> Task:
    spec = case(seed)
    sizes = {"B": spec.B, "T": spec.T, "d_model": spec.d_model, "h": spec.h, "h_kv": spec.kv_heads}
    return {
        "given": texts.say("given" if spec.kv_heads == spec.h else "given_kv", **_asked(sizes, spec)),
        "fields": [texts.say(f"field.{part.key}", symbol=symbol_of(part.quantity)) for part in PARTS],
        "example": texts.say("example"),
    }


def _asked(sizes: dict[str, int], spec: RunSpec) -> dict[str, int]:
    return {k: v for k, v in sizes.items() if k != "h_kv" or spec.kv_heads != spec.h}


def mark(answer: Any, seed: int, texts: Texts) -> Marked:
    trace = run(case(seed))
    marks: list[bool | None] = []
    hints = []
    for part, text in zip(PARTS, typed.parts(answer, len(PARTS)), strict=True):
        shape, axes = trace[part.quantity].shape, trace.axes(part.quantity)
        if part.last:
            shape, axes = shape[-part.last :], axes[-part.last :]
        given = typed.shape(text)
        right = None if typed.blank(text) else given == shape
        marks.append(right)
        hints.append("" if right is not False else hint(given, shape, axes, trace.sizes, texts))
    verdict = summed_up(marks, texts)
    return Marked(tuple(marks), tuple(hints), verdict, all(marks), {"preset": _preset(seed)})


def _preset(seed: int) -> str | None:
    """The page's preset that shows this case, where there is one."""
    bare = case(seed)
    return next((name for name, preset in PRESETS.items() if preset == bare), None)


def hint(given: tuple[int, ...] | None, right: tuple[int, ...], axes: Axes, sizes: dict[str, int], texts: Texts) -> str:
    """What went wrong, in words, without the shape itself."""
    if given is None:
        return texts.say("hint.unread")
    for key, wrong in mistakes(axes):
        if given == tuple(sizes[letter] for letter in wrong) and given != right:
            return texts.say(f"hint.{key}")
    if sorted(given) == sorted(right):
        return texts.say("hint.order")
    if len(given) != len(right):
        return texts.say("hint.count", given=len(given), right=len(right))
    wrong_at = [n + 1 for n, (a, b) in enumerate(zip(given, right, strict=True)) if a != b]
    return texts.say("hint.axis", n=wrong_at[0]) if len(wrong_at) == 1 else texts.say("hint.axes", n=len(wrong_at))


INSTEAD = {
    "H": (("Hkv", "kv_for_h"),), "Hkv": (("H", "h_for_kv"),),
    "Dh": (("C", "width_for_head"), ("F", "hidden_width")),
    "C": (("Dh", "head_for_width"), ("F", "hidden_width")),
    "D": (("Dh", "head_for_width"), ("F", "hidden_width")),
    "Tq": (("Tk", "cached_queries"),),
    "Tk": (
        ("Tq", "cache_forgotten"), ("P", "only_cached"), ("Dh", "features_for_keys"),
        ("C", "features_for_keys"),
    ),
}  # fmt: skip


def mistakes(axes: Axes) -> Iterator[tuple[str, Axes]]:
    """Hint -> axes as somebody may mix them up, the likeliest first."""
    if len(axes) == 4:
        heads = axes[1]
        yield "unsplit", (axes[0], axes[2], "C")
        yield "no_heads", (axes[0], *axes[2:])
        yield "heads_after_tokens", (axes[0], axes[2], heads, axes[3])
        if axes[-1] == "Dh":
            yield "tokens_last", (axes[0], heads, axes[3], axes[2])
    if axes[:1] == ("B",):
        yield "no_batch", axes[1:]
    if len(axes) == 3:
        yield "heads_kept", ("B", "H", axes[1], "Dh")
        yield "heads_kept", ("B", axes[1], "H", "Dh")
        yield "tokens_last", ("B", axes[2], axes[1])
    if len(axes) == 2:
        yield "all_heads", ("B", "H", *axes)
        yield "all_heads", ("H", *axes)
        yield "batch_kept", ("B", *axes)
        yield "head_output", (axes[0], "Dh")
    for place, letter in enumerate(axes):
        for other, key in INSTEAD.get(letter, ()):
            yield key, (*axes[:place], other, *axes[place + 1 :])
