"""Every quantity's formula against the block itself, cell by cell: its value, and which cells it depends on.

For each quantity some hundred random cells of random runs (sizes, grouped heads, experts, caches, padding, angles,
edits, switches) are explained. The explanation's text, read by a parser of the tests' own, has to give the captured
number; and the cells that it names have to be the ones with a non-zero derivative, found by autograd through the real
block. Where the two differ, the difference has to have one of the names below.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from explorer import Edit, RunSpec, Trace, run
from explorer.capture.recorder import find_taps
from explorer.expression import Call, Expr, Num, Product, Ratio, Ref, Sum
from explorer.quantities import QUANTITIES
from explorer.run import prepare
from explorer.switches import KINDS
from tests.core.arithmetic import evaluate
from tests.core.cases import CASES

RUNS = 44  # half of them dense
CELLS = 500  # at least so many of each quantity
EXPLAINED = [q.name for q in QUANTITIES.values() if q.formula is not None]
Cell = tuple[str, tuple[int, ...]]

# Cells that an explanation names although the derivative is zero at this very point.
ZERO_FACTOR = "an exact zero multiplies it"
SATURATED = "a softmax that gives 1 or 0 does not move"
ONE_EXPERT = "where every slot names one expert, each gets 1/k whatever its probability"
# Cells that an explanation leaves out although the derivative is not zero.
HIDDEN_KEY = "the probability of a hidden key is 0 and shown as no contributor; only an edit could make it one"


# -------------------------------------------------------------------------------------------------- random runs


def random_spec(seed: int) -> RunSpec:
    dice = np.random.default_rng([2024, seed])

    def one_of(*choices: Any) -> Any:
        return choices[dice.integers(len(choices))]

    h_kv = one_of(1, 1, 2)
    batch, tokens, past = one_of(1, 2), one_of(1, 2, 3, 4, 5), one_of(0, 0, 0, 2, 3)
    spec = RunSpec(
        B=batch, T=tokens, d_model=one_of(4, 6, 8, 12), h=h_kv * one_of(1, 2, 3), h_kv=h_kv, d_h=one_of(2, 4, 6),
        d_ff=one_of(3, 5, 8), weights="random", seed=seed, past=past,
        padding=tuple(int(dice.integers(0, past + tokens + 1)) for _ in range(batch)) if one_of(True, False) else (),
        angle_step=one_of(None, 0.7, math.pi / 2), rope_theta=one_of(1e6, 50.0), yarn=one_of(True, False, False),
        qk_norm=one_of(True, False), norm_eps=one_of(1e-6, 1e-2),
        experts=one_of(2, 3, 4) if seed % 2 else 0, norm_topk=one_of(True, False),
        attention=one_of("auto", "auto", "flash"),
    )  # fmt: skip
    spec = replace(spec, experts_per_token=one_of(1, 2)) if spec.experts else spec
    return replace(spec, edits=random_edits(spec, dice), switches=random_switches(spec, dice))


def random_edits(spec: RunSpec, dice: np.random.Generator) -> list[Edit]:
    edits = []
    names = [*run(spec).names, *run(spec).weights]
    for name in dice.choice(names, size=dice.integers(0, 5), replace=False):
        shape = spec.shape(name)
        index = tuple(None if dice.random() < 0.15 else int(dice.integers(n)) for n in shape)
        value = float(dice.choice([0.0, 1.0, round(dice.normal(), 3)]))
        if name == "expert_index":
            value = float(dice.integers(spec.experts))
        if name == "masked_scores" and dice.random() < 0.5:
            value = -math.inf
        edits.append(Edit(str(name), index, value))
    return edits


def random_switches(spec: RunSpec, dice: np.random.Generator) -> list[str]:
    if dice.random() < 0.6:
        return []
    arguments = {"head": spec.h, "expert": spec.experts}
    kinds = [k for k in KINDS.values() if k.argument != "expert" or spec.experts]
    kind = kinds[dice.integers(len(kinds))]
    if not kind.argument:
        return [kind.name]
    return [f"{kind.name}:{dice.integers(arguments[kind.argument]) if kind.argument in arguments else 0.5}"]


@dataclass
class Differentiable:
    """A run, and the same block once more with a leaf of its own for whatever a tap shows."""

    trace: Trace
    leaves: dict[str, Tensor]
    computed: dict[str, Tensor]

    def dependencies(self, name: str, index: tuple[int, ...]) -> set[Cell]:
        """The cells of taps, inputs and weights in which this cell's derivative is not zero."""
        cell = self.computed[name][index]
        if not cell.requires_grad:
            return set()
        gradients = torch.autograd.grad(cell, list(self.leaves.values()), retain_graph=True, allow_unused=True)
        found = set()
        for leaf, gradient in zip(self.leaves, gradients, strict=True):
            if gradient is not None:
                found |= {(leaf, tuple(i)) for i in gradient.nonzero().tolist()}
        return found


@cache
def differentiable(seed: int) -> Differentiable:
    spec = random_spec(seed)
    trace, ready = run(spec), prepare(spec)
    leaves = {n: _leaf(trace.tensor(n)) for n in trace.names if n != "expert_index"}
    weights = {n: _leaf(torch.from_numpy(w.copy())) for n, w in trace.weights.items()}
    computed: dict[str, Tensor] = {}

    def cut(name: str) -> Any:
        def hook(_: nn.Module, __: Any, output: Tensor) -> Tensor:
            computed[name] = output
            return leaves[name] if name in leaves else trace.tensor(name)

        return hook

    taps = find_taps(ready.block)
    handles = [taps[name].register_forward_hook(cut(name)) for name in taps]
    past = (leaves["past_k"], leaves["past_v"]) if spec.past else None
    inputs = (ready.hidden_states, (leaves["rope_cos"], leaves["rope_sin"]), past, False, ready.attention_mask)
    try:
        torch.func.functional_call(ready.block, weights, inputs)
    finally:
        for handle in handles:
            handle.remove()
    return Differentiable(trace, leaves | weights, computed)


def _leaf(tensor: Tensor) -> Tensor:
    return tensor.detach().clone().requires_grad_()


def random_cells(name: str) -> Iterator[tuple[Differentiable, tuple[int, ...]]]:
    """At least CELLS cells of `name`, spread over the runs that have it."""
    having = [r for seed in range(RUNS) if name in (r := differentiable(seed)).trace]
    each = -(-CELLS // len(having))
    dice = np.random.default_rng(len(name))
    for found in having:
        shape = found.trace.shape(name)
        for _ in range(each):
            yield found, tuple(int(dice.integers(n)) for n in shape)


# ------------------------------------------------------------------------------------------- value and scale


def scale_of(node: Expr, trace: Trace) -> float:
    """The size of the largest numbers that meet on the way to the result; rounding is relative to it."""
    match node:
        case Ref() | Num():
            return abs(node.value(trace.value))
        case Sum(terms):
            return max((scale_of(t, trace) for t in terms), default=0.0)
        case Product(factors):
            return math.prod(scale_of(f, trace) for f in factors)
        case Ratio(top, bottom):
            return scale_of(top, trace) / abs(bottom.value(trace.value))
        case Call("exp", argument):
            return math.exp(argument.value(trace.value)) * max(1.0, scale_of(argument, trace))
        case Call(argument=argument):
            return math.sqrt(scale_of(argument, trace))
    raise TypeError(node)


@pytest.mark.parametrize("name", EXPLAINED)
def test_the_substituted_text_gives_the_captured_number(name: str) -> None:
    done = 0
    for found, index in random_cells(name):
        trace = found.trace
        expression = trace.explain(name, index)
        exact, captured = evaluate(expression.substituted(trace.value)), float(trace.before(name)[index])
        where = f"{name}{list(index)} of {trace.spec}: {expression.substituted(trace.value)}"
        assert expression.value(trace.value) == pytest.approx(exact, rel=1e-12, abs=1e-300), where
        if math.isinf(exact) or math.isinf(captured):
            assert exact == captured, where
        else:
            allowed = 1e-5 * max(abs(captured), scale_of(expression, trace))
            assert abs(exact - captured) <= allowed + 1e-30, f"{exact} is not {captured}: {where}"
        done += 1
    assert done >= CELLS


# ------------------------------------------------------------------------------------------------- which cells


def multiplied_by_zero(node: Expr, trace: Trace, zero: bool = False) -> Iterator[tuple[Cell, bool]]:
    """Every reading of a cell, and whether a factor that is exactly zero stands beside it."""
    match node:
        case Ref(name, index):
            yield (name, index), zero
        case Product(factors):
            values = [f.value(trace.value) for f in factors]
            for n, factor in enumerate(factors):
                others = values[:n] + values[n + 1 :]
                yield from multiplied_by_zero(factor, trace, zero or 0.0 in others)
        case Ratio(top, bottom):
            yield from multiplied_by_zero(top, trace, zero)
            yield from multiplied_by_zero(bottom, trace, zero or top.value(trace.value) == 0)
        case _:
            for child in node.children():
                yield from multiplied_by_zero(child, trace, zero)


def exceptions(found: Differentiable, name: str, index: tuple[int, ...]) -> dict[Cell, str]:
    """The cells in which explanation and autograd differ, each with the reason's name ("" when there is none)."""
    trace, spec = found.trace, found.trace.spec
    assert spec is not None
    expression = trace.explain(name, index)
    named = {(ref.name, ref.index) for ref in expression.refs()}
    dependent = found.dependencies(name, index)
    reasons: dict[Cell, str] = {}
    free = {cell for cell, zero in multiplied_by_zero(expression, trace) if not zero}
    for cell in named - dependent:
        result = float(trace.before(name)[index])
        if cell not in free:
            reasons[cell] = ZERO_FACTOR
        elif name in ("probs", "router_probs") and (result in (0.0, 1.0) or trace.value(*cell) < -80):
            reasons[cell] = SATURATED
        elif name == "expert_weight" and spec.norm_topk and len(set(trace["expert_index"][index[:2]])) == 1:
            reasons[cell] = ONE_EXPERT
        else:
            reasons[cell] = ""
    for cell in dependent - named:
        b, _, i, _ = index if len(index) == 4 else (0, 0, 0, 0)
        hidden = name == "heads" and cell[0] == "probs" and trace.masked[b, 0, i, cell[1][-1]]
        reasons[cell] = HIDDEN_KEY if hidden and trace.value(*cell) == 0 else ""
    return reasons


@pytest.mark.parametrize("name", EXPLAINED)
def test_the_cells_named_are_those_with_a_derivative(name: str) -> None:
    reasons: Counter[str] = Counter()
    cells = 0
    for found, index in random_cells(name):
        trace = found.trace
        np.testing.assert_allclose(
            found.computed[name][index].item(), trace.before(name)[index], rtol=2e-5, atol=1e-6, err_msg=name
        )
        differing = exceptions(found, name, index)
        unnamed = [cell for cell, reason in differing.items() if not reason]
        assert not unnamed, f"{name}{list(index)} of {trace.spec}: {unnamed}"
        reasons.update(differing.values())
        cells += len({(r.name, r.index) for r in trace.explain(name, index).refs()})
    allowed = {ZERO_FACTOR}
    allowed |= {SATURATED} if name in ("probs", "router_probs") else set()
    allowed |= {ONE_EXPERT} if name == "expert_weight" else set()
    allowed |= {HIDDEN_KEY} if name == "heads" else set()
    assert set(reasons) <= allowed
    assert cells == 0 if name == "expert_index" else cells >= CELLS / 4


@pytest.mark.parametrize(("case", "name"), [(c, n) for c, spec in CASES.items() for n in EXPLAINED if n in run(spec)])
def test_the_names_read_are_the_inputs_declared(case: str, name: str) -> None:
    trace = run(CASES[case])
    declared = set(QUANTITIES[name].inputs)
    middle = tuple(n - 1 for n in trace.shape(name))
    read = {ref.name for ref in trace.explain(name, middle).refs()}
    read = {"mlp.expert" if n.startswith("mlp.experts.") else n for n in read}
    known = {n for n in declared if n in trace or n in trace.weights}
    if name.startswith("expert_"):
        known -= {"expert_index"}  # it says which cells are read, and is no number among them
    if name in ("expert_gate", "expert_up", "expert_out"):
        known |= {"mlp.expert"}
    if name == "expert_index" or (name == "probs" and not trace["probs"][middle]):
        known = set()
    if name.startswith("present_"):
        known = {"k_rot" if name == "present_k" else "v"}  # the last one is never cached
    assert read == known
