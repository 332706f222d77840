"""Finished runs are kept within bounds, and threads that run one block do not mix."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from explorer import Edit, RunSpec, Trace, run
from explorer.limits import LIMITS
from explorer.run import MOST_TRACES, Finished, finished, prepare
from tests.core.cases import CASES

# ------------------------------------------------------------------------------------------------ finished runs


def test_the_same_spec_gives_the_same_trace() -> None:
    spec = replace(CASES["capstone"], seed=77)
    assert run(spec) is run(replace(spec, B=2))
    first = run(spec)["resid_post"]
    finished.clear()
    assert run(spec)["resid_post"] is not first
    np.testing.assert_array_equal(run(spec)["resid_post"], first)


def test_arrays_are_read_only_float32() -> None:
    trace = run(CASES["moe_two_raw"])
    for name in trace.names:
        assert trace[name].dtype == (np.int64 if name == "expert_index" else np.float32), name
        with pytest.raises(ValueError, match="read-only"):
            trace[name][...] = 0
    with pytest.raises(ValueError, match="read-only"):
        trace.weights["mlp.gate.weight"][0, 0] = 1
    assert trace.masked.dtype == bool and not trace.masked.flags.writeable


def test_finished_runs_are_bounded_by_number() -> None:
    finished.clear()
    for n in range(MOST_TRACES + 10):
        run(RunSpec(edits=[Edit("resid_pre", (0, 0, 0), float(n))]))
    assert len(finished) == MOST_TRACES


def test_finished_runs_are_bounded_by_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    finished.clear()
    monkeypatch.setattr(LIMITS, "cache_bytes", 3_000_000)
    kept = [run(RunSpec(d_model=128, T=8, h=4, weights="random", seed=seed)) for seed in range(8)]  # 1 MB of weights
    assert 1 <= len(finished) < 4 and finished.nbytes <= 3_000_000
    assert run(kept[-1].spec) is kept[-1]
    finished.clear()
    assert (len(finished), finished.nbytes) == (0, 0)


def test_shared_weights_count_once() -> None:
    own = Finished()
    spec = RunSpec(d_model=128, h=4, weights="random")
    for n in range(5):
        edited = replace(spec, edits=[Edit("resid_pre", (0, 0, 0), float(n))])
        own.put(edited, run(edited))
    weights = sum(array.nbytes for array in run(spec).weights.values())
    assert weights < own.nbytes < 2 * weights
    own.put(edited, run(edited))
    assert len(own) == 5


def test_a_trace_may_be_collected() -> None:
    """No reference cycle keeps large tensors alive until the collector happens to run."""
    import gc
    import weakref

    finished.clear()
    gc.disable()
    try:
        trace = run(RunSpec(T=4, attention="flash", seed=1, d_model=4, h=1, weights="random"))
        trace.value("probs", (0, 0, 1, 0)), trace["probs"], trace.masked, trace.ledger()
        gone = weakref.ref(trace)
        finished.clear()
        del trace
        assert gone() is None
    finally:
        gc.enable()


# ------------------------------------------------------------------------------------------------ threads


def test_threads_with_different_edits_of_one_block_do_not_mix() -> None:
    """Weight edits swap parameters of the shared block for the time of a run; nobody else may see them."""
    base = RunSpec(B=1, T=6, d_model=16, h=2, weights="random", seed=11)
    specs = [base, replace(base, past=3)]
    for n in range(6):
        specs.append(replace(base, edits=[Edit("self_attn.k_proj.weight", (n, n), 5.0 + n)]))
        specs.append(replace(base, edits=[Edit("k_rot", (0, n % 2, n, 1), -3.0 - n)], past=2 * (n % 2)))
        specs.append(replace(base, edits=[Edit("mlp.up_proj.weight", (), float(n))], attention="flash"))
    finished.clear()
    alone = {}
    for spec in specs:
        trace = run(spec)
        alone[spec] = (trace["resid_post"].copy(), trace.weights["self_attn.k_proj.weight"].copy())
    wrong: list[RunSpec] = []

    def again(seed: int) -> None:
        for n in np.random.default_rng(seed).permutation(len(specs)):
            finished.clear()
            trace = run(specs[n])
            output, weight = alone[specs[n]]
            if not np.array_equal(trace["resid_post"], output) or not np.array_equal(
                trace.weights["self_attn.k_proj.weight"], weight
            ):
                wrong.append(specs[n])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(again, range(12)))
    assert not wrong


def test_one_thread_waits_for_the_other_on_one_block() -> None:
    ready = prepare(CASES["capstone"])
    inside, most, running = threading.Lock(), [0], [0]

    def watch(*_: object) -> None:
        with inside:
            running[0] += 1
            most[0] = max(most[0], running[0])
        threading.Event().wait(0.005)
        with inside:
            running[0] -= 1

    handle = ready.block.mlp.register_forward_hook(watch)
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(_fresh_run, range(8)))
    finally:
        handle.remove()
    assert most == [1]


def _fresh_run(n: int) -> Trace:
    return run(replace(CASES["capstone"], edits=[Edit("resid_pre", (0, 0, 0), 100.0 + n)]))
