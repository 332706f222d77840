"""RunSpec -> Trace: builds the block and its input, runs it, and keeps finished runs for a while.

Purpose: the one door through which the page, links, notebook, command line and API get a Trace.
Must not know: figures, the page.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from explorer import device, sources, toy
from explorer.capture import Trace, record
from explorer.limits import LIMITS
from explorer.model.block import MiniMindBlock
from explorer.model.config import MiniMindConfig
from explorer.model.rope import RotaryEmbedding
from explorer.spec import RunSpec, SpecError

Array = NDArray[np.float64]
READABLE_WIDTH = 64  # up to this width, random numbers are rounded to two decimals that a person can retype
MAX_POSITIONS = 32768


@dataclass(frozen=True)
class Prepared:
    """A block and what it is called with.

    hidden_states [B, T, D]; position_embeddings (cos, sin) [T, Dh]; past_key_value [B, Hkv, P, Dh] each;
    attention_mask [B, P + T].
    """

    block: MiniMindBlock
    hidden_states: Tensor
    position_embeddings: tuple[Tensor, Tensor]
    past_key_value: tuple[Tensor, Tensor] | None
    attention_mask: Tensor | None


def run(spec: RunSpec) -> Trace:
    """Run the block that `spec` describes. The same spec gives the same Trace, from memory while it is kept.

    Raises SpecError for a device or checkpoint that is not here.
    """
    if (kept := _finished.get(spec)) is not None:
        return kept
    ready = prepare(spec)
    trace = record(
        ready.block, ready.hidden_states, ready.position_embeddings, ready.past_key_value, ready.attention_mask,
        spec.edits, switches=spec.switches, keep_scores=spec.explicit,
    )  # fmt: skip
    trace.spec = spec
    trace.tokens = sources.tokens_of(spec) if spec.checkpoint else None
    _finished.put(spec, trace)
    return trace


def prepare(spec: RunSpec) -> Prepared:
    """Everything but the call itself: the block, the input, positions, cache and mask."""
    base = replace(spec, edits=(), switches=())
    try:
        place = device.choose(spec.device)
    except device.DeviceError as error:
        raise SpecError({"device": str(error)}) from None
    block, rope = _block(_weights_key(base), str(place))
    stream = _residual_stream(base).to(place, getattr(torch, spec.dtype))
    mask = _attention_mask(spec, place)
    past = None
    if spec.past:
        with torch.no_grad():
            before = None if mask is None else mask[:, : spec.past]
            _, past = block(stream[:, : spec.past], rope(0, spec.past, place), None, True, before)
    return Prepared(block, stream[:, spec.past :], rope(spec.past, spec.T, place), past, mask)


def config_of(spec: RunSpec) -> MiniMindConfig:
    """The model configuration that `spec` describes, in MiniMind's own terms."""
    return MiniMindConfig(
        hidden_size=spec.d_model,
        num_attention_heads=spec.h,
        num_key_value_heads=spec.kv_heads,
        head_dim=spec.head_dim,
        intermediate_size=spec.ffn_width,
        moe_intermediate_size=spec.ffn_width,
        num_hidden_layers=1,
        max_position_embeddings=MAX_POSITIONS,
        rms_norm_eps=spec.norm_eps,
        rope_theta=spec.rope_theta,
        angle_step=spec.step,
        inference_rope_scaling=spec.yarn,
        qk_norm=spec.normalizes_heads,
        use_moe=spec.experts > 0,
        num_experts=max(1, spec.experts),
        num_experts_per_tok=spec.experts_per_token,
        norm_topk_prob=spec.norm_topk,
    )


def _weights_key(spec: RunSpec) -> RunSpec:
    """The spec with everything set to its default that the weights do not depend on."""
    return replace(
        spec,
        B=1, T=1, past=0, padding=(), attention="auto", text="", device="auto",
        h_kv=spec.kv_heads, d_h=spec.head_dim, d_ff=spec.ffn_width,
        angle_step=spec.step, qk_norm=spec.normalizes_heads,
    )  # fmt: skip


@lru_cache(maxsize=8)
def _block(key: RunSpec, place: str) -> tuple[MiniMindBlock, RotaryEmbedding]:
    if key.checkpoint:
        return sources.block_of(key, torch.device(place)), sources.rope_of(key)
    config = config_of(key)
    block = MiniMindBlock(config, key.layer)
    state = toy.weights(key.norm_eps) if key.weights == "toy" else _random_weights(block, key.seed)
    block.load_state_dict({name: torch.from_numpy(np.ascontiguousarray(w)).float() for name, w in state.items()})
    return block.to(place, getattr(torch, key.dtype)).eval().requires_grad_(False), RotaryEmbedding(config)


def _random_weights(block: MiniMindBlock, seed: int) -> dict[str, Array]:
    """Matrices from N(0, 1/fan_in), norm scales from N(1, 0.1²): norm scales differ from 1 so that they show."""
    source = np.random.default_rng([seed, 0])
    state = {}
    for name, parameter in block.state_dict().items():
        values = source.standard_normal(tuple(parameter.shape), dtype=np.float64)
        values = 1 + values / 10 if values.ndim == 1 else values / np.sqrt(values.shape[1])
        state[name] = _readable(values, values.shape[-1])
    return state


def _residual_stream(spec: RunSpec) -> Tensor:
    """[B, P + T, D], cached tokens first. A longer T leaves the earlier tokens as they were."""
    if spec.checkpoint:
        return sources.stream_of(spec)
    tokens = spec.past + spec.T
    if spec.weights == "toy":
        values = toy.residual_stream(spec.B, tokens)
    else:
        source = np.random.default_rng([spec.seed, 1])
        values = source.standard_normal((tokens, spec.B, spec.d_model)).transpose(1, 0, 2)
        values = _readable(values, spec.d_model)
    return torch.from_numpy(np.ascontiguousarray(values)).float()


def _readable(values: Array, width: int) -> Array:
    return values.round(2) if width <= READABLE_WIDTH else values


def _attention_mask(spec: RunSpec, place: torch.device) -> Tensor | None:
    if not any(spec.padding):
        return None
    position = torch.arange(spec.past + spec.T, device=place)
    return (position[None] >= torch.tensor(spec.padding, device=place)[:, None]).long()


class _Finished:
    """The latest traces, up to LIMITS.cache_bytes together."""

    def __init__(self) -> None:
        self._traces: OrderedDict[RunSpec, Trace] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, spec: RunSpec) -> Trace | None:
        with self._lock:
            trace = self._traces.get(spec)
            if trace is not None:
                self._traces.move_to_end(spec)
            return trace

    def put(self, spec: RunSpec, trace: Trace) -> None:
        with self._lock:
            self._traces[spec] = trace
            total = sum(t.nbytes for t in self._traces.values())
            while len(self._traces) > 1 and (total > LIMITS.cache_bytes or len(self._traces) > 64):
                _, dropped = self._traces.popitem(last=False)
                total -= dropped.nbytes


_finished = _Finished()
