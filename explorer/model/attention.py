"""Causal self-attention with grouped key/value heads, per-head norms, RoPE and a key/value cache.

Vaswani et al. 2017, "Attention Is All You Need", section 3.2 (scaled dot products, heads); Ainslie et al. 2023, "GQA",
section 2.2 (several query heads share one key/value head).

Every intermediate is heads first, [B, heads, T, Dh], caches too. Knows one block's attention only: not the residual
stream around it, and not who reads its taps.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from explorer.model.config import MiniMindConfig
from explorer.model.norm import RMSNorm
from explorer.model.rope import Tables, rotate
from explorer.model.taps import taps, watched

Cache = tuple[Tensor, Tensor]
_SCORE_TAPS = ("scores", "masked_scores", "probs")


def repeat_kv(x: Tensor, times: int) -> Tensor:
    """Give each query head its key/value head: [B,Hkv,T,Dh] -> [B,Hkv·times,T,Dh].

    Each head is repeated next to itself (a a b b, not a b a b): query heads 0 … times−1 share key/value head 0.
    """
    if times == 1:
        return x
    batch, heads, tokens, width = x.shape
    return x[:, :, None].expand(batch, heads, times, tokens, width).reshape(batch, heads * times, tokens, width)


def visible_keys(queries: int, keys: int, attention_mask: Tensor | None, device: torch.device) -> Tensor:
    """Which keys each query may see: bool, [1,1,Tq,Tk], or [B,1,Tq,Tk] with a padding mask.

    The queries are the last Tq of the Tk positions; each sees itself and what stands before it, except padding.
    attention_mask [B,Tk]: 1 for a real token, 0 for padding.
    """
    query_position = torch.arange(keys - queries, keys, device=device)[:, None]
    causal = (torch.arange(keys, device=device) <= query_position)[None, None]
    if attention_mask is None:
        return causal
    return causal & attention_mask.to(device=device, dtype=torch.bool)[:, None, None, :]


def masked_softmax(scores: Tensor) -> Tensor:
    """Softmax over the last axis in float32, returned in the scores' dtype; a row of −∞ alone gives zeros, not NaN."""
    blind = scores.amax(-1, keepdim=True) == -math.inf
    if not blind.any():
        return scores.softmax(-1, dtype=torch.float32).to(scores.dtype)
    probs = scores.masked_fill(blind, 0.0).softmax(-1, dtype=torch.float32)
    return probs.masked_fill(blind, 0.0).to(scores.dtype)


class Attention(nn.Module):
    """x [B,T,D] -> (attention update [B,T,D], present cache or None).

    The probabilities are computed step by step where somebody watches them, and where MiniMind does so: for a single
    token, with a cache, with padding, or with flash_attn off. All else runs the fused kernel, which never writes the
    T×T scores out.
    """

    def __init__(self, config: MiniMindConfig) -> None:
        super().__init__()
        self.heads = config.num_attention_heads
        self.kv_heads = config.num_key_value_heads
        self.head_dim = config.head_dim
        self.flash = config.flash_attn
        width = self.heads * self.head_dim
        kv_width = self.kv_heads * self.head_dim
        self.q_proj = nn.Linear(config.hidden_size, width, bias=False)
        self.k_proj = nn.Linear(config.hidden_size, kv_width, bias=False)
        self.v_proj = nn.Linear(config.hidden_size, kv_width, bias=False)
        self.o_proj = nn.Linear(width, config.hidden_size, bias=False)
        self.q_norm = RMSNorm(self.head_dim, config.rms_norm_eps) if config.qk_norm else nn.Identity()
        self.k_norm = RMSNorm(self.head_dim, config.rms_norm_eps) if config.qk_norm else nn.Identity()
        self.attn_dropout = nn.Dropout(config.dropout)
        self.resid_dropout = nn.Dropout(config.dropout)
        self.taps = taps(
            *("q", "k", "v", "q_norm", "k_norm", "q_rot", "k_rot", "present_k", "present_v"),
            *_SCORE_TAPS,
            *("heads", "concat", "attn_out"),
        )

    def forward(
        self,
        x: Tensor,
        position_embeddings: Tables,
        past_key_value: Cache | None = None,
        use_cache: bool = False,
        attention_mask: Tensor | None = None,
    ) -> tuple[Tensor, Cache | None]:
        """position_embeddings: cos and sin [T,Dh] of x's positions. past_key_value: keys and values [B,Hkv,P,Dh] of the
        P tokens before x. attention_mask [B,P+T]: 1 real, 0 padding.
        """
        q = self.taps["q"](self._split(self.q_proj(x), self.heads))
        k = self.taps["k"](self._split(self.k_proj(x), self.kv_heads))
        v = self.taps["v"](self._split(self.v_proj(x), self.kv_heads))
        q = self.taps["q_norm"](self.q_norm(q))
        k = self.taps["k_norm"](self.k_norm(k))
        q = self.taps["q_rot"](rotate(q, *position_embeddings))
        k = self.taps["k_rot"](rotate(k, *position_embeddings))
        past_k, past_v = past_key_value or (None, None)
        k = self.taps["present_k"](_after(past_k, k))
        v = self.taps["present_v"](_after(past_v, v))
        _check_mask(attention_mask, x.shape[0], k.shape[2], x.shape[1])

        heads = self.taps["heads"](self._attend(q, k, v, attention_mask))
        concat = self.taps["concat"](heads.transpose(1, 2).flatten(2))
        attn_out = self.taps["attn_out"](self.resid_dropout(self.o_proj(concat)))
        return attn_out, (k, v) if use_cache else None

    def _split(self, features: Tensor, heads: int) -> Tensor:
        """[B,T,heads·Dh] -> [B,heads,T,Dh]."""
        return features.view(*features.shape[:-1], heads, self.head_dim).transpose(1, 2)

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, attention_mask: Tensor | None) -> Tensor:
        """Each head's blend of values: q [B,H,Tq,Dh], k and v [B,Hkv,Tk,Dh] -> [B,H,Tq,Dh]."""
        k = repeat_kv(k, self.heads // self.kv_heads)
        v = repeat_kv(v, self.heads // self.kv_heads)
        if self._may_fuse(q, k, attention_mask):
            dropout = self.attn_dropout.p if self.training else 0.0
            return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
        visible = visible_keys(q.shape[2], k.shape[2], attention_mask, q.device)
        scores = self.taps["scores"](q @ k.transpose(-2, -1) / math.sqrt(self.head_dim))
        masked_scores = self.taps["masked_scores"](scores.masked_fill(~visible, -math.inf))
        probs = self.taps["probs"](masked_softmax(masked_scores))
        return torch.matmul(self.attn_dropout(probs), v)

    def _may_fuse(self, q: Tensor, k: Tensor, attention_mask: Tensor | None) -> bool:
        """Whether the fused kernel computes the same: plain causal order over these tokens, nobody watching."""
        one_prefix = 1 < q.shape[2] == k.shape[2]
        if not self.flash or not one_prefix or watched(self.taps, _SCORE_TAPS):
            return False
        return attention_mask is None or bool(attention_mask.all())


def _after(past: Tensor | None, new: Tensor) -> Tensor:
    """The cached tokens followed by the new ones, along the token axis."""
    return new if past is None else torch.cat((past, new), dim=2)


def _check_mask(attention_mask: Tensor | None, batch: int, keys: int, tokens: int) -> None:
    if attention_mask is not None and attention_mask.shape != (batch, keys):
        raise ValueError(
            f"attention_mask has shape {tuple(attention_mask.shape)}; give one number for every key, "
            f"[{batch}, {keys}]: {keys - tokens} cached tokens and {tokens} new ones"
        )
