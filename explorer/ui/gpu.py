"""The one function that computes on a GPU when a visitor asks for it, and what it found beside the CPU's numbers.

Purpose: "run this on the GPU": the same block, input and edits there, compared with the run on the CPU.
Must not know: the page. Everything else in the explorer computes where explorer.device says, which is the CPU on
ZeroGPU; there a model that is moved to CUDA outside of this function would compute with zeros and say nothing.
"""

from __future__ import annotations

import copy
import re
import time
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from gradio.exceptions import Error as PlatformError
from numpy.typing import NDArray

from explorer import device
from explorer.asked import as_settings, plain_number, read_spec
from explorer.capture import Trace, record
from explorer.messages import say
from explorer.run import Prepared, prepare, run
from explorer.spec import RunSpec, SpecError

SECONDS = 5
TAG = re.compile(r"<[^>]*>")  # ZeroGPU's messages carry links
LONGEST_REASON = 300
PLACE = "cuda"
Answer = dict[str, Any]


@device.on_gpu(SECONDS)
def compute(settings: dict[str, Any]) -> Answer:
    """One run on the GPU: {"device": its name, "ms": of the second of two runs, "values": {name: numpy array}}.

    settings: a RunSpec as plain data. Takes and gives nothing but plain data and numpy, so that it can run in another
    process; the block's copy on the GPU ends with the call, and the recorder takes its hooks away in any case.
    """
    spec = read_spec(settings=settings)[0]
    with torch.no_grad():
        ready = _moved(prepare(replace(spec, device="cpu")))
        again = partial(
            record, ready.block, ready.hidden_states, ready.position_embeddings, ready.past_key_value,
            ready.attention_mask, spec.edits, switches=spec.switches, keep_scores=spec.explicit,
        )  # fmt: skip
        again()  # the first run also loads the GPU's own programs
        began = time.perf_counter()
        trace = again()
        if PLACE == "cuda":
            torch.cuda.synchronize()
        seconds = time.perf_counter() - began
    name = torch.cuda.get_device_name() if PLACE == "cuda" else PLACE
    return {"device": name, "ms": seconds * 1000, "values": {name: trace[name] for name in _kept(trace)}}


def compare(spec: RunSpec) -> Answer:
    """{"device", "ms", "rows": [{"name", "difference"}], "largest", "at"}: how far each quantity is from the CPU's.

    difference: the largest over all cells, relative to the largest magnitude of the quantity; largest, at: of all and
    where. Raises SpecError where there is no GPU, or the platform lends none now.
    """
    if not device.gpu_here():
        raise SpecError({"device": say("There is no GPU here. Everything is computed on the CPU.")})
    on_cpu = run(replace(spec, device="cpu"))
    found = _lent(as_settings(spec))
    gaps = {name: _difference(found["values"][name], on_cpu[name]) for name in _kept(on_cpu)}
    rows = [{"name": name, "difference": plain_number(gap)} for name, gap in gaps.items()]
    at = max(gaps, key=lambda name: gaps[name])
    return {
        "device": found["device"], "ms": round(found["ms"], 3), "rows": rows,
        "largest": plain_number(gaps[at]), "at": at,
    }  # fmt: skip


def _lent(settings: dict[str, Any]) -> Answer:
    """`compute`, with what the platform says when it lends no GPU (a spent quota, a queue) as a sentence."""
    try:
        found: Answer = compute(settings)
    except PlatformError as error:
        why = TAG.sub("", str(error.message)).strip()[:LONGEST_REASON]
        raise SpecError({"gpu": say("No GPU was lent: {why}", why=why)}) from None
    return found


def _kept(trace: Trace) -> list[str]:
    """The quantities that a run kept: the scores of a long one are made of these, and too many to hold."""
    return [name for name in trace.names if name not in trace.recomputed]


def _moved(ready: Prepared) -> Prepared:
    """The same on the GPU; what lies on the CPU stays there for others."""
    cos, sin = ready.position_embeddings
    past = ready.past_key_value
    return Prepared(
        copy.deepcopy(ready.block).to(PLACE),
        ready.hidden_states.to(PLACE),
        (cos.to(PLACE), sin.to(PLACE)),
        None if past is None else (past[0].to(PLACE), past[1].to(PLACE)),
        None if ready.attention_mask is None else ready.attention_mask.to(PLACE),
    )


def _difference(a: NDArray[Any], b: NDArray[Any]) -> float:
    finite = np.isfinite(a) & np.isfinite(b)
    if not (finite | (a == b)).all():
        return float("inf")
    if not finite.any():
        return 0.0
    gap = np.abs(a[finite].astype(np.float64) - b[finite])
    return float(gap.max() / max(np.abs(b[finite]).max(), 1e-30))
