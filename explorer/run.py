"""RunSpec -> Trace: builds the block and its input, runs it, and keeps finished runs for a while.

Purpose: the one door through which the page, links, notebook, command line and API get a Trace.
Must not know: figures, the page.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from explorer import allowance, device, sources, toy
from explorer.capture import Trace, record
from explorer.limits import LIMITS, MAX_POSITIONS
from explorer.messages import said, say
from explorer.model.block import MiniMindBlock
from explorer.model.config import MiniMindConfig
from explorer.model.rope import RotaryEmbedding
from explorer.quantities import QUANTITIES
from explorer.spec import RunSpec, SpecError
from explorer.switches import parse_switch
from explorer.typed import shown

Array = NDArray[np.float64]
READABLE_WIDTH = 64  # up to this width, random numbers are rounded to two decimals that a person can retype
MOST_TRACES = 64


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

    Edits of quantities are made in this call alone; an edited weight is the model's, so cached tokens met it too.
    Raises SpecError for a device or checkpoint that is not here, TypeError for what is no RunSpec, and
    allowance.Stopped where nobody waits any longer.
    """
    if not isinstance(spec, RunSpec):
        raise TypeError(
            say("run takes a RunSpec, not {given}. Make one, for example run(RunSpec(T=3)).", given=shown(spec))
        )
    if (kept := finished.get(spec)) is not None:
        return kept
    allowance.check()
    ready = prepare(spec)
    trace = record(
        ready.block, ready.hidden_states, ready.position_embeddings, ready.past_key_value, ready.attention_mask,
        spec.edits, switches=spec.switches, keep_scores=spec.explicit,
    )  # fmt: skip
    trace.spec = spec
    trace.tokens = sources.tokens_of(spec) if spec.checkpoint else None
    finished.put(spec, trace)
    return trace


def prepare(spec: RunSpec) -> Prepared:
    """Everything but the call itself: the block, the input, positions, cache and mask. Change none of its tensors."""
    try:
        place = device.choose(spec.device)
    except device.DeviceError as error:
        raise SpecError({"device": said(error)}) from None
    block, rope, stream, mask = _parts(spec.unedited(), str(place))
    past = _cache(spec, block, stream, rope) if spec.past else None
    return Prepared(block, stream[:, spec.past :], rope(spec.past, spec.T, place), past, mask)


@lru_cache(maxsize=4)
def _parts(base: RunSpec, place: str) -> tuple[MiniMindBlock, RotaryEmbedding, Tensor, Tensor | None]:
    """Block, positions, the stream of cached and new tokens [B, P + T, D], and mask: what edits leave as it is."""
    key = _weights_key(base)
    block = _block(replace(key, angle_step=None, rope_theta=1e6, yarn=False), place)
    stream = _residual_stream(base).to(place, getattr(torch, base.dtype))
    return block, _rope(key), stream, _attention_mask(base, torch.device(place))


def _cache(spec: RunSpec, block: MiniMindBlock, stream: Tensor, rope: RotaryEmbedding) -> tuple[Tensor, Tensor]:
    """Keys and values of the first P tokens, as this model would have made them: with its weights as edited, and
    without RoPE or norm where a switch takes that away. Padding has no part in it: it hides keys, it changes none.
    """
    weights = [edit for edit in spec.edits if edit.target not in QUANTITIES]
    of_keys = [s for s in spec.switches if not {"k_norm", "k_rot"}.isdisjoint(parse_switch(s).kind.rules)]
    first, tables = stream[:, : spec.past], rope(0, spec.past, stream.device)
    earlier = record(block, first, tables, edits=weights, switches=of_keys, keep_scores=False)
    return earlier.tensor("present_k"), earlier.tensor("present_v")


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
def _block(key: RunSpec, place: str) -> MiniMindBlock:
    if key.checkpoint:
        return sources.block_of(key, torch.device(place))
    block = MiniMindBlock(config_of(key), key.layer)
    state = _toy_weights(block, key.norm_eps) if key.weights == "toy" else _random_weights(block, key.seed)
    block.load_state_dict({name: torch.from_numpy(np.ascontiguousarray(w)).float() for name, w in state.items()})
    return block.to(place, getattr(torch, key.dtype)).eval().requires_grad_(False)


@lru_cache(maxsize=32)
def _rope(key: RunSpec) -> RotaryEmbedding:
    return sources.rope_of(key) if key.checkpoint else RotaryEmbedding(config_of(key))


def _toy_weights(block: MiniMindBlock, eps: float) -> dict[str, Array]:
    """The toy's weights; the scales of the per-head norms, which the course's toy does not have, are 1."""
    ones = {name: np.ones(tuple(parameter.shape)) for name, parameter in block.state_dict().items()}
    return ones | toy.weights(eps)


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


class Finished:
    """The latest traces, together at most LIMITS.cache_bytes and MOST_TRACES; the latest one is kept in any case.

    Memory that traces share, such as the weights of one block, counts once.
    """

    def __init__(self) -> None:
        self._traces: OrderedDict[RunSpec, tuple[Trace, dict[int, int]]] = OrderedDict()
        self._users: Counter[int] = Counter()
        self._lock = threading.Lock()
        self.nbytes = 0

    def __len__(self) -> int:
        return len(self._traces)

    def get(self, spec: RunSpec) -> Trace | None:
        with self._lock:
            if spec not in self._traces:
                return None
            self._traces.move_to_end(spec)
            return self._traces[spec][0]

    def put(self, spec: RunSpec, trace: Trace) -> None:
        with self._lock:
            if spec in self._traces:
                self._drop(spec)
            memory = trace.memory()
            self._traces[spec] = (trace, memory)
            for address, size in memory.items():
                self.nbytes += 0 if self._users[address] else size
                self._users[address] += 1
            while len(self) > 1 and (self.nbytes > LIMITS.cache_bytes or len(self) > MOST_TRACES):
                self._drop(next(iter(self._traces)))

    def clear(self) -> None:
        """Forget every trace."""
        with self._lock:
            for spec in tuple(self._traces):
                self._drop(spec)

    def _drop(self, spec: RunSpec) -> None:
        _, memory = self._traces.pop(spec)
        for address, size in memory.items():
            self._users[address] -= 1
            if not self._users[address]:
                del self._users[address]
                self.nbytes -= size


finished = Finished()
