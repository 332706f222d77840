"""Random valid RunSpecs and Views that between them use every field. Written without a look at link.py.

One `random.Random` decides everything, so that a failing number can be drawn again.
"""

from __future__ import annotations

import math
import random
import struct
from typing import Any

from explorer.link import View
from explorer.quantities import K_GAMMA, Q_GAMMA, QUANTITIES, W_ROUTER, WEIGHTS, expert_weight_name
from explorer.spec import Edit, RunSpec, SpecError
from explorer.switches import KINDS

# Names under which conftest.py offers a checkpoint of the sizes below.
CHECKPOINTS = ("checkpoint:stories", "checkpoint:mine (β) v1.0 & more", "checkpoint: a−b ")
DICTATED = {
    "d_model": 8, "h": 2, "h_kv": 1, "d_h": 4, "d_ff": 10, "qk_norm": True, "norm_eps": 1e-5, "rope_theta": 1e4,
    "yarn": False, "experts": 0, "experts_per_token": 1, "norm_topk": True,
}  # fmt: skip
LAYERS = 4

TEXTS = (
    "The cat sat.",
    "世界，你好！深度学习",
    "  leading, trailing  ",
    "مرحبا بالعالم",
    "नमस्ते दुनिया",
    "γ ⊙ x / √(mean x²)\n\ttab & newline",
    "a=b&c=d?e#f%20+g;h/i\\j",
    "<script>alert('x')</script>",
    "zero\x00byte and \u200b zero width",
    "e\u0301 combining, 𝔘𝔫𝔦𝔠𝔬𝔡𝔢, 👩🏽‍🔬",
    "−1 is not -1",
)


def number(rng: random.Random, most: float) -> float:
    """A finite float of a magnitude up to `most`, of any kind that is likely to be spelled wrongly."""
    kind = rng.randrange(6)
    if kind == 0:
        return float(rng.randint(-9, 9))
    if kind == 1:
        return round(rng.uniform(-3, 3), 2)
    if kind == 2:
        return rng.choice([0.0, -0.0, 1e-45, most, -most, 5e-324, min(1e16, most), 1e-5, 1 / 3, math.pi])
    if kind == 3:
        return rng.gauss(0, 1)
    while not abs(x := struct.unpack("<d", rng.randbytes(8))[0]) <= most:
        pass
    return float(x)


def sizes(rng: random.Random) -> dict[str, Any]:
    """Sizes that fit together; half of the time with d_h given, which frees d_model."""
    h = rng.choice([1, 1, 2, 3, 4, 6])
    d_h = rng.choice([2, 4, 6, 8])
    free = rng.random() < 0.4
    found: dict[str, Any] = {
        "B": rng.choice([1, 1, 2, 3, 8]),
        "T": rng.choice([1, 2, 3, 5, 16]),
        "h": h,
        "d_model": rng.choice([1, 3, 7, 12]) if free else h * d_h,
        "past": rng.choice([0, 0, 0, 1, 4]),
    }
    if free:
        found["d_h"] = d_h
    if rng.random() < 0.5:
        found["h_kv"] = rng.choice([n for n in range(1, h + 1) if h % n == 0])
    if rng.random() < 0.4:
        found["d_ff"] = rng.randint(1, 20)
    if rng.random() < 0.35:
        found["experts"] = rng.randint(1, 5)
        found["experts_per_token"] = rng.randint(1, found["experts"])
    return found


def settings(rng: random.Random) -> dict[str, Any]:
    """Everything but sizes, edits and switches, each given about half of the time."""
    everything = {
        "seed": rng.choice([1, 42, 2**32 - 1]),
        "layer": rng.randint(1, LAYERS - 1),
        "text": rng.choice(TEXTS),
        "angle_step": rng.choice([0.0, -1000.0, math.pi / 2, 1, rng.uniform(-3, 3)]),
        "rope_theta": rng.choice([2.0, 1e4, 1e12, rng.uniform(2, 1e7), 500]),
        "yarn": rng.random() < 0.5,
        "qk_norm": rng.random() < 0.5,
        "norm_eps": rng.choice([1e-12, 1e-5, 1.0, 1, rng.uniform(1e-3, 1)]),
        "norm_topk": rng.random() < 0.5,
        "attention": rng.choice(["auto", "explicit", "flash"]),
        "dtype": rng.choice(["float32", "bfloat16", "float16"]),
        "device": rng.choice(["auto", "cpu", "cuda", "mps"]),
    }
    return {name: value for name, value in everything.items() if rng.random() < 0.5} | {"weights": "random"}


def targets(spec: RunSpec) -> list[str]:
    """Every quantity and weight of this run that has at least one cell."""
    other = "dense" if spec.experts else "moe"
    names = [q.name for q in QUANTITIES.values() if q.only != other]
    if spec.experts:
        names += [expert_weight_name(spec.experts - 1, part) for part in ("gate", "up", "down")]
    for name in WEIGHTS:
        ours = spec.experts > 0 if name == W_ROUTER else not (name.startswith("mlp.") and spec.experts)
        if ours and (spec.normalizes_heads or name not in (Q_GAMMA, K_GAMMA)):
            names.append(name)
    return [name for name in names if all(spec.shape(name))]


def value_for(rng: random.Random, spec: RunSpec, target: str) -> float:
    if target == "expert_index":
        return float(rng.randrange(spec.experts))
    if target == "masked_scores" and rng.random() < 0.4:
        return -math.inf
    return number(rng, 65504 if spec.dtype == "float16" else 3e38)


def edit(rng: random.Random, spec: RunSpec) -> Edit:
    target = rng.choice(targets(spec))
    shape, on = spec.shape(target), rng.random() < 0.8
    kind = rng.randrange(4)
    if kind == 0 and math.prod(shape) <= 60:
        return Edit(target, (), _filled(rng, spec, target, shape), on)
    if kind == 1:
        return Edit(target, (), value_for(rng, spec, target), on)
    index = tuple(None if rng.random() < 0.2 else rng.randrange(n) for n in shape)
    return Edit(target, index, value_for(rng, spec, target), on)


def _filled(rng: random.Random, spec: RunSpec, target: str, shape: tuple[int, ...]) -> Any:
    if not shape:
        return value_for(rng, spec, target)
    return tuple(_filled(rng, spec, target, shape[1:]) for _ in range(shape[0]))


def switch(rng: random.Random, spec: RunSpec) -> str:
    kinds = [k for k in KINDS.values() if k.argument != "expert" or spec.experts]
    kind = rng.choice(kinds)
    ends = {
        "": "",
        "head": f":{rng.randrange(spec.h)}",
        "expert": f":{rng.randrange(max(1, spec.experts))}",
        "number": f":{rng.choice(['0.5', '1', '2.25', '1000', '1e-3'])}",
    }
    return kind.name + ends[kind.argument]


def random_spec(rng: random.Random) -> RunSpec:
    """A valid RunSpec; one in ten is the toy with edits."""
    if rng.random() < 0.1:
        bare = RunSpec(B=rng.choice([1, 2]), T=rng.choice([2, 3]))
    else:
        chosen = sizes(rng) | settings(rng)
        if rng.random() < 0.3:
            chosen["weights"] = rng.choice(CHECKPOINTS)
        if rng.random() < 0.4:
            most = chosen["past"] + chosen["T"]
            chosen["padding"] = tuple(rng.randint(0, most) for _ in range(chosen["B"]))
        bare = RunSpec(**chosen)
    edits = tuple(edit(rng, bare) for _ in range(rng.choice([0, 0, 1, 2, 5, 12])))
    switches = tuple(dict.fromkeys(switch(rng, bare) for _ in range(rng.choice([0, 0, 1, 3]))))
    try:
        return RunSpec(**{**bare.given(), "edits": edits, "switches": switches})
    except SpecError as error:  # the generator is to be right about what is allowed
        raise AssertionError(f"{bare} does not take {edits} {switches}: {error}") from error


def _idle(rng: random.Random, spec: RunSpec) -> tuple[str, ...]:
    """A few what-ifs out of force: none of those in force."""
    known = [
        "no_mask",
        "no_rope",
        f"only_head:{spec.h - 1}",
        "temperature:0.5",
        *(["expert:0"] if spec.experts else []),
    ]
    picked = rng.sample(known, rng.randrange(3)) if rng.random() < 0.4 else []
    return tuple(name for name in picked if name not in spec.switches)


def random_view(rng: random.Random, spec: RunSpec) -> View:
    cell = None
    if rng.random() < 0.6:
        name = rng.choice(targets(spec))
        cell = (name, tuple(rng.randrange(n) for n in spec.shape(name)))
    return View(
        stage=rng.randint(1, 8),
        cell=cell,
        compare=rng.choice(["value", "change", "both"]),
        row=rng.randrange(spec.B),
        head=rng.randrange(spec.h),
        lang=rng.choice(["", "en", "zh"]),
        present=rng.random() < 0.3,
        token=rng.randrange(spec.T),
        expert=rng.randrange(spec.experts) if spec.experts else 0,
        idle=_idle(rng, spec),
    )
