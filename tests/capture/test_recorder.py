"""What the recorder keeps, hooks that leave nothing behind, and blocks in other modes and wrappers."""

from __future__ import annotations

import copy
import threading
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from explorer import Edit, RunSpec, Trace, run
from explorer.capture import StaleValue
from explorer.capture.recorder import find_taps, hooks_on
from explorer.quantities import GIVEN
from explorer.run import Prepared, prepare
from tests.capture.recording import SOME, capture
from tests.core.cases import CASES

# ---------------------------------------------------------------------------------------------- what is recorded


@pytest.mark.parametrize("case", SOME)
def test_every_tap_is_recorded_as_the_block_computes_it(case: str) -> None:
    """A plain hook on every tap, without the recorder, sees the same bits."""
    ready, seen = prepare(CASES[case]), {}
    handles = [
        tap.register_forward_hook(lambda _, __, out, name=name: seen.update({name: out.clone()}))
        for name, tap in find_taps(ready.block).items()
    ]
    try:
        with torch.no_grad():
            output, _ = ready.block(
                ready.hidden_states, ready.position_embeddings, ready.past_key_value, False, ready.attention_mask
            )
    finally:
        for handle in handles:
            handle.remove()
    trace = capture(ready)
    assert set(seen) == set(trace.names) - (set(GIVEN) - {"resid_pre"})
    for name, value in seen.items():
        np.testing.assert_array_equal(trace[name], value.numpy(), err_msg=name)
    np.testing.assert_array_equal(trace["resid_post"], output.numpy())


def test_recording_keeps_references_not_copies(ready: Prepared) -> None:
    trace = capture(ready)
    assert trace.tensor("resid_pre").data_ptr() == ready.hidden_states.data_ptr()
    assert trace.tensor("present_k").data_ptr() == trace.tensor("k_rot").data_ptr()
    assert not trace.tensor("q").requires_grad


def test_recording_works_for_a_block_in_training(ready: Prepared) -> None:
    ready.block.train().requires_grad_(True)
    trace = capture(ready, Edit("mlp.up_proj.weight", (0, 0), 1.0))
    assert not trace.tensor("resid_post").requires_grad
    assert all(parameter.grad is None for parameter in ready.block.parameters())


def test_the_mask_is_that_of_the_run_whatever_happens_to_it_later() -> None:
    ready = prepare(CASES["cache_and_padding"])
    assert ready.attention_mask is not None
    mask = ready.attention_mask.clone()
    trace = capture(replace(ready, attention_mask=mask))
    mask.zero_()
    np.testing.assert_array_equal(trace.masked, run(CASES["cache_and_padding"]).masked)


# ------------------------------------------------------------------------------------------------- hooks go away


def test_no_hook_is_left_after_success(ready: Prepared) -> None:
    capture(ready, Edit("probs", (0, 0, 1, 0), 0.5), switches=["no_rope"])
    assert not any(hooks_on(ready.block).values())


def test_no_hook_is_left_after_an_error_inside_the_block(ready: Prepared) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("halfway")

    handle = ready.block.mlp.register_forward_pre_hook(fail)
    with pytest.raises(RuntimeError, match="halfway"):
        capture(ready, Edit("self_attn.q_proj.weight", (0, 0), 1.0))
    handle.remove()
    assert not any(hooks_on(ready.block).values())
    assert capture(ready).edited == ()


def test_parameters_are_back_after_an_error_inside_the_block(ready: Prepared) -> None:
    before = dict(ready.block.named_parameters())
    handle = ready.block.mlp.register_forward_pre_hook(lambda *_: (_ for _ in ()).throw(RuntimeError("halfway")))
    with pytest.raises(RuntimeError):
        capture(ready, Edit("self_attn.q_proj.weight", (), 1.0))
    handle.remove()
    assert all(parameter is before[name] for name, parameter in ready.block.named_parameters())


def test_a_run_inside_a_run_disturbs_neither(ready: Prepared) -> None:
    inner: list[Trace] = []

    def record_again(*_: object) -> None:
        if not inner:
            inner.append(None)  # type: ignore[arg-type]
            inner[0] = capture(ready, Edit("resid_pre", (0, 0, 0), 9.0))

    alone, changed = capture(ready), capture(ready, Edit("resid_pre", (0, 0, 0), 9.0))
    handle = ready.block.mlp.register_forward_pre_hook(record_again)
    outer = capture(ready)
    handle.remove()
    for name in alone.names:
        np.testing.assert_array_equal(outer[name], alone[name])
        np.testing.assert_array_equal(inner[0][name], changed[name])
    assert not any(hooks_on(ready.block).values())


def test_a_plain_forward_of_another_thread_is_not_recorded(ready: Prepared) -> None:
    """While one thread records with an edit, a second one calls the same block without recording."""
    alone = ready.block(ready.hidden_states, ready.position_embeddings)[0].detach()
    results: list[Tensor] = []

    def plain(*_: object) -> None:
        if threading.current_thread() is threading.main_thread() and not results:
            thread = threading.Thread(
                target=lambda: results.append(ready.block(ready.hidden_states, ready.position_embeddings)[0].detach())
            )
            thread.start()
            thread.join()

    handle = ready.block.self_attn.register_forward_pre_hook(plain)
    trace = capture(ready, Edit("resid_pre", (0, 0, 0), 9.0))
    handle.remove()
    torch.testing.assert_close(results[0], alone, rtol=1e-6, atol=1e-6)
    assert trace["resid_pre"][0, 0, 0] == 9.0


# ------------------------------------------------------------------------------------------ hooks of other people


def test_hooks_of_the_user_stay_and_work(ready: Prepared) -> None:
    seen: list[float] = []
    taps = ready.block.self_attn.taps
    handles = [
        taps["probs"].register_forward_hook(lambda _, __, out: seen.append(float(out.sum()))),
        taps["v"].register_forward_hook(lambda _, __, out: out * 2),
        ready.block.register_forward_pre_hook(lambda *_: seen.append(-1.0)),
    ]
    plain = run(CASES["capstone"])
    trace = capture(ready)
    assert seen[0] == -1.0 and seen[1] == pytest.approx(2 * 3 * 5, rel=1e-6)
    np.testing.assert_array_equal(trace["v"], plain["v"] * 2)
    assert hooks_on(ready.block)["probs"] == hooks_on(ready.block)["v"] == 1
    np.testing.assert_allclose(trace["attn_out"], plain["attn_out"] * 2, rtol=1e-5, atol=1e-6)
    for handle in handles:
        handle.remove()


def test_a_hook_of_the_user_sees_the_edit(ready: Prepared) -> None:
    seen: list[Tensor] = []
    handle = ready.block.self_attn.taps["q_rot"].register_forward_pre_hook(lambda _, args: seen.append(args[0].clone()))
    capture(ready, Edit("q_norm", (0, 0, 0, 0), 7.0))
    handle.remove()
    rotated_by_nothing = seen[0][0, 0, 0]  # position 0: the turn is the identity
    assert rotated_by_nothing[0] == 7.0


# ------------------------------------------------------------------------------------------- modes and wrappers


def test_recording_under_inference_mode_equals_recording_outside(ready: Prepared) -> None:
    plain = capture(ready, Edit("q", (0, 0, 0, 0), 1.0))
    with torch.inference_mode():
        made_inside = replace(
            ready,
            hidden_states=ready.hidden_states.clone(),
            position_embeddings=tuple(t.clone() for t in ready.position_embeddings),
        )
        assert made_inside.hidden_states.is_inference()
        trace = capture(made_inside, Edit("q", (0, 0, 0, 0), 1.0))
        for name in plain.names:
            np.testing.assert_array_equal(trace[name], plain[name])
        block = copy.deepcopy(ready.block)
    edits = Edit("q", (0, 0, 0, 0), 1.0), Edit("mlp.up_proj.weight", (0, 0), 1.0)
    trace = capture(replace(made_inside, block=block), *edits)
    for name in plain.names[:20]:
        np.testing.assert_array_equal(trace[name], capture(ready, *edits)[name])
    with torch.inference_mode(), pytest.raises(StaleValue):
        own = capture(made_inside)
        own.tensor("attn_norm").add_(1)
        own["attn_norm"]


def test_a_compiled_block_is_captured_uncompiled(ready: Prepared) -> None:
    compiled = torch.compile(ready.block, backend="eager")
    trace = capture(replace(ready, block=compiled), Edit("probs", (0, 0, 1, 0), 0.25))
    plain = capture(ready, Edit("probs", (0, 0, 1, 0), 0.25))
    for name in plain.names:
        np.testing.assert_array_equal(trace[name], plain[name])
    assert trace.norm_eps == plain.norm_eps


def test_a_wrapper_with_an_original_module_is_looked_through(ready: Prepared) -> None:
    class Wrapper(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self._orig_mod = ready.block

        def forward(self, *_: object) -> None:
            raise AssertionError("the wrapper itself must not run")

    np.testing.assert_array_equal(capture(replace(ready, block=Wrapper()))["probs"], capture(ready)["probs"])


@pytest.mark.gpu
@pytest.mark.parametrize("case", SOME)
def test_a_gpu_agrees_with_the_cpu(case: str) -> None:
    on_cpu = run(replace(CASES[case], device="cpu"))
    on_gpu = run(replace(CASES[case], device="cuda"))
    assert on_gpu.device.startswith("cuda")
    for name in on_cpu.names:
        finite = np.isfinite(on_cpu[name])
        np.testing.assert_allclose(on_gpu[name][finite], on_cpu[name][finite], rtol=1e-3, atol=1e-3, err_msg=name)
        again = run(replace(CASES[case], device="cuda", edits=[Edit(name, (), on_gpu[name])]))
        np.testing.assert_array_equal(again["resid_post"], on_gpu["resid_post"], err_msg=name)


def test_device_auto_is_what_runs(ready: Prepared) -> None:
    assert run(RunSpec(device="cpu")).device == "cpu"
