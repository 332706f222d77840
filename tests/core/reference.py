"""One block once more, in float64 numpy, to compare runs with.

Written from the papers' formulas, token by token where that is plainer; imports nothing of `explorer`. A run hands over
only what the block is given: the stream of all tokens, the weights, and settings. Arrays carry the axes of the traces
(heads first), and hold the new tokens' rows only, so a cell here and a cell of the trace have the same index.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Put = Mapping[str, Mapping[tuple[int, ...], float]]


@dataclass(frozen=True)
class Settings:
    """What the block is, what is hidden, and which parts of it are changed. `left_pads` counts from position 0."""

    heads: int
    kv_heads: int
    past: int = 0
    left_pads: tuple[int, ...] = ()
    theta: float = 1e6
    step: float = 1.0
    eps: float = 1e-6
    head_norms: bool = True
    experts: int = 0
    per_token: int = 1
    renormalise: bool = True
    causal_and_padding_mask: bool = True
    rope: bool = True
    scale: bool = True
    first_residual: bool = True
    second_residual: bool = True
    uniform: bool = False
    only_heads: tuple[int, ...] | None = None
    without_heads: tuple[int, ...] = ()
    temperature: float = 1.0
    expert: int | None = None
    put: Put = field(default_factory=dict)


def rms_norm(x: Array, gain: Array, eps: float) -> Array:
    return gain * x / np.sqrt(np.mean(np.square(x), axis=-1, keepdims=True) + eps)


def softmax(x: Array) -> Array:
    """Over the last axis; a row of −∞ alone gives zeros."""
    top = x.max(axis=-1, keepdims=True)
    e = np.exp(x - np.where(np.isneginf(top), 0, top))
    total = e.sum(axis=-1, keepdims=True)
    return np.divide(e, total, out=np.zeros_like(e), where=total > 0)


def turned(x: Array, first: int, theta: float, step: float) -> Array:
    """x [..., T, Dh]: feature j and j + Dh/2 as one complex number, turned by position · step · theta^(−2j/Dh)."""
    half = x.shape[-1] // 2
    positions = np.arange(first, first + x.shape[-2])
    angles = np.multiply.outer(positions, step * theta ** (-np.arange(half) / half))
    z = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * angles)
    return np.concatenate([z.real, z.imag], axis=-1)


def split(x: Array, heads: int) -> Array:
    """[B, T, heads·Dh] -> [B, heads, T, Dh]."""
    return np.stack(np.split(x, heads, axis=-1), axis=1)


def silu(x: Array) -> Array:
    return x / (1 + np.exp(-x))


class Block:
    """One run of one block; `values` holds every quantity by name."""

    def __init__(self, stream: Array, weights: Mapping[str, Array], settings: Settings) -> None:
        self.w = {name: np.asarray(w, dtype=np.float64) for name, w in weights.items()}
        self.s = settings
        self.values: dict[str, Array] = {}
        stream = np.asarray(stream, dtype=np.float64)
        past = settings.past
        past_k = past_v = None
        if past:
            normed = rms_norm(stream[:, :past], self.w["input_layernorm.weight"], settings.eps)
            past_k, past_v = self._keys(normed, 0)[-1], self._heads(normed, "v", settings.kv_heads)
            past_k, past_v = self._keep("past_k", past_k), self._keep("past_v", past_v)
        x = self._keep("resid_pre", stream[:, past:])
        attn_out = self._attention(x, past_k, past_v)
        mid = self._keep("resid_mid", x + attn_out if settings.first_residual else attn_out)
        normed = self._keep("ffn_norm", rms_norm(mid, self.w["post_attention_layernorm.weight"], settings.eps))
        ffn_out = self._keep("ffn_out", self._experts(normed) if settings.experts else self._dense(normed))
        self._keep("resid_post", mid + ffn_out if settings.second_residual else ffn_out)

    def _keep(self, name: str, value: Array) -> Array:
        value = np.array(value, dtype=np.float64)
        for index, number in self.s.put.get(name, {}).items():
            value[index] = number
        self.values[name] = value
        return value

    def _heads(self, x: Array, letter: str, heads: int) -> Array:
        return split(x @ self.w[f"self_attn.{letter}_proj.weight"].T, heads)

    def _normed_heads(self, x: Array, letter: str) -> Array:
        return rms_norm(x, self.w[f"self_attn.{letter}_norm.weight"], self.s.eps) if self.s.head_norms else x

    def _keys(self, normed: Array, first: int) -> tuple[Array, Array, Array]:
        k = self._heads(normed, "k", self.s.kv_heads)
        k_norm = self._normed_heads(k, "k")
        return k, k_norm, turned(k_norm, first, self.s.theta, self.s.step) if self.s.rope else k_norm

    def _attention(self, x: Array, past_k: Array | None, past_v: Array | None) -> Array:
        s, keep = self.s, self._keep
        normed = keep("attn_norm", rms_norm(x, self.w["input_layernorm.weight"], s.eps))
        q = keep("q", self._heads(normed, "q", s.heads))
        k = keep("k", self._heads(normed, "k", s.kv_heads))
        v = keep("v", self._heads(normed, "v", s.kv_heads))
        q = keep("q_norm", self._normed_heads(q, "q"))
        k = keep("k_norm", self._normed_heads(k, "k"))
        q = keep("q_rot", turned(q, s.past, s.theta, s.step) if s.rope else q)
        k = keep("k_rot", turned(k, s.past, s.theta, s.step) if s.rope else k)
        k = keep("present_k", k if past_k is None else np.concatenate([past_k, k], axis=2))
        v = keep("present_v", v if past_v is None else np.concatenate([past_v, v], axis=2))
        served = s.heads // s.kv_heads  # query head r reads key/value head r // served
        k, v = (np.stack([t[:, r // served] for r in range(s.heads)], axis=1) for t in (k, v))
        scores = np.einsum("bhid,bhjd->bhij", q, k) / (np.sqrt(q.shape[-1]) if s.scale else 1) / s.temperature
        scores = keep("scores", scores)
        hidden = self.hidden(scores.shape) if s.causal_and_padding_mask else np.zeros(scores.shape, dtype=bool)
        masked = keep("masked_scores", np.where(hidden, -np.inf, scores))
        if s.uniform:
            masked = np.where(np.isneginf(masked), -np.inf, 0.0)
        blend = np.einsum("bhij,bhjd->bhid", keep("probs", softmax(masked)), v)
        for head in range(s.heads):
            if head in s.without_heads or (s.only_heads is not None and head not in s.only_heads):
                blend[:, head] = 0
        blend = keep("heads", blend)
        concat = keep("concat", np.concatenate([blend[:, r] for r in range(s.heads)], axis=-1))
        return keep("attn_out", concat @ self.w["self_attn.o_proj.weight"].T)

    def hidden(self, shape: tuple[int, ...]) -> NDArray[np.bool_]:
        """[B, H, Tq, Tk]: True where key j may not be seen from query i, that is later, or padding."""
        hidden = np.zeros(shape, dtype=bool)
        for b, _, i, j in np.ndindex(*shape):
            pads = self.s.left_pads[b] if self.s.left_pads else 0
            hidden[b, :, i, j] = j > self.s.past + i or j < pads
        return hidden

    def _dense(self, x: Array) -> Array:
        gate = self._keep("gate", x @ self.w["mlp.gate_proj.weight"].T)
        up = self._keep("up", x @ self.w["mlp.up_proj.weight"].T)
        return self._keep("hidden", silu(gate) * up) @ self.w["mlp.down_proj.weight"].T

    def _experts(self, x: Array) -> Array:
        s, (batch, tokens, width) = self.s, x.shape
        logits = self._keep("router_logits", x @ self.w["mlp.gate.weight"].T)
        probs = self._keep("router_probs", softmax(logits))
        best = np.argsort(-probs, axis=-1, kind="stable")[..., : s.per_token].astype(np.float64)
        if s.expert is not None:
            first = best[..., 0].copy()
            best[..., 0] = s.expert
            best[..., 1:] = np.where(best[..., 1:] == s.expert, first[..., None], best[..., 1:])
        index = self._keep("expert_index", best).astype(int)
        weight = np.take_along_axis(probs, index, axis=-1)
        if s.renormalise:
            weight = weight / weight.sum(axis=-1, keepdims=True)
        weight = self._keep("expert_weight", weight)
        hidden_width = self.w["mlp.experts.0.gate_proj.weight"].shape[0]
        parts = {"gate": [], "up": []}
        for name in parts:
            wide = np.zeros((batch, tokens, s.per_token, hidden_width))
            for b, t, n in np.ndindex(batch, tokens, s.per_token):
                wide[b, t, n] = self.w[f"mlp.experts.{index[b, t, n]}.{name}_proj.weight"] @ x[b, t]
            parts[name] = self._keep(f"expert_{name}", wide)
        hidden = self._keep("expert_hidden", silu(parts["gate"]) * parts["up"])
        out = np.zeros((batch, tokens, s.per_token, width))
        for b, t, n in np.ndindex(batch, tokens, s.per_token):
            out[b, t, n] = self.w[f"mlp.experts.{index[b, t, n]}.down_proj.weight"] @ hidden[b, t, n]
        return np.einsum("btn,btnd->btd", weight, self._keep("expert_out", out))
