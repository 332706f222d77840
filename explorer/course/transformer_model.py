"""A decoder-only Transformer language model, small enough to read in one sitting.

It turns token numbers into logits: for every token, one score per vocabulary entry for the token that follows.

    input_ids [B, T] -> TransformerModel -> logits [B, T, V]

Read it from top to bottom: the whole model, then one block, then the two branches of the block, then the small parts
they use. Letters in the comments: B batch, T tokens, D width of the residual stream (hidden_size), H heads,
Dh features per head (D = H * Dh), F width of the feed-forward (ffn_width), V vocabulary.

What it leaves out, on purpose: key/value cache, shared key/value heads (GQA), norms on q and k, mixture of experts.
MiniMind adds those. Inside a block the weights carry MiniMind's names, so weights move between the two unchanged.

Every quantity passes through a *tap*: an `nn.Identity` named after it. A tap computes nothing. A forward hook on it
sees the value, and a hook that returns a tensor replaces the value for the rest of the forward pass.

This file needs torch and nothing else. Run it to watch every shape go by:

    python transformer_model.py

Sources: Vaswani et al. 2017 (attention, sections 3.1 to 3.3), Su et al. 2021 (RoFormer, section 3.4),
Zhang & Sennrich 2019 (RMSNorm, section 4), Shazeer 2020 (GLU variants, section 2), Touvron et al. 2023 (LLaMA,
section 2.2: these parts in this order). It must not import anything from the rest of the project.
"""
# ruff: noqa: T201  (the demo at the end speaks through print)

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class TransformerConfig:
    """The sizes and constants of a model; checked once, here."""

    vocab_size: int = 50  # V
    hidden_size: int = 12  # D
    num_layers: int = 2  # L
    num_heads: int = 3  # H
    ffn_width: int = 32  # F
    norm_eps: float = 1e-6  # keeps RMSNorm away from a division by zero
    rope_theta: float = 10_000.0  # the larger, the slower the late feature pairs turn
    angle_step: float = 1.0  # radians that feature pair 0 turns per position

    def __post_init__(self) -> None:
        for name in ("vocab_size", "hidden_size", "num_layers", "num_heads", "ffn_width"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1.")
        if self.hidden_size % self.num_heads:
            raise ValueError(
                f"hidden_size {self.hidden_size} cannot be split into {self.num_heads} equal heads; "
                f"choose a hidden_size that is a multiple of num_heads."
            )
        if self.head_dim % 2:
            raise ValueError(
                f"hidden_size / num_heads is {self.head_dim}; RoPE turns pairs of features, so it must be even."
            )

    @property
    def head_dim(self) -> int:
        """Dh, the features of one head."""
        return self.hidden_size // self.num_heads


def taps(*names: str) -> nn.ModuleDict:
    """One `nn.Identity` per quantity, so that hooks can see and replace it."""
    return nn.ModuleDict({name: nn.Identity() for name in names})


# ------------------------------------------------------------------------------------------------- the whole model
class TransformerModel(nn.Module):
    """Embedding, L blocks, a last norm, and a head that reads logits off the residual stream."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.token_embedding = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(TransformerBlock(config) for _ in range(config.num_layers))
        self.final_norm = RMSNorm(config.hidden_size, config.norm_eps)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        for weight in self.parameters():
            if weight.dim() == 2:  # every matrix starts small; the norm weights stay at one
                nn.init.normal_(weight, std=0.02)
        self.lm_head.weight = self.token_embedding.weight  # tied: one parameter, used twice

    def forward(self, input_ids: Tensor) -> Tensor:
        """input_ids [B, T] (integers) -> logits [B, T, V]."""
        if input_ids.dim() != 2:
            raise ValueError(f"input_ids has shape {list(input_ids.shape)}; it must be [batch, tokens].")
        hidden_states = self.token_embedding(input_ids)  # [B, T] -> [B, T, D]
        cos, sin = rope_tables(self.config, input_ids.shape[1], hidden_states.device)  # [T, Dh] each
        for layer in self.layers:
            hidden_states = layer(hidden_states, (cos, sin))  # [B, T, D] -> [B, T, D]
        hidden_states = self.final_norm(hidden_states)  # [B, T, D] -> [B, T, D]
        logits: Tensor = self.lm_head(hidden_states)  # [B, T, D] -> [B, T, V]
        return logits


# ---------------------------------------------------------------------------------------------------- one block
class TransformerBlock(nn.Module):
    """Two updates of one residual stream: attention mixes tokens, the feed-forward mixes features.

    Pre-norm: each branch reads a normalised copy; what it returns is added to the stream itself.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.input_layernorm = RMSNorm(config.hidden_size, config.norm_eps)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.norm_eps)
        self.mlp = FeedForward(config)
        self.taps = taps("resid_pre", "attn_norm", "resid_mid", "ffn_norm", "resid_post")

    def forward(self, hidden_states: Tensor, position_embeddings: tuple[Tensor, Tensor] | None = None) -> Tensor:
        """hidden_states [B, T, D] -> [B, T, D].

        position_embeddings is (cos, sin), each [T, Dh]; left out, the block counts positions 0, 1, 2, ... itself.
        """
        if position_embeddings is None:
            position_embeddings = rope_tables(self.config, hidden_states.shape[1], hidden_states.device)
        resid_pre = self.taps["resid_pre"](hidden_states)  # [B, T, D]

        attn_norm = self.taps["attn_norm"](self.input_layernorm(resid_pre))  # stage 1  [B, T, D]
        attn_out = self.self_attn(attn_norm, position_embeddings)  # stages 2-6  [B, T, D]
        resid_mid = self.taps["resid_mid"](resid_pre + attn_out)  # stage 7  [B, T, D]

        ffn_norm = self.taps["ffn_norm"](self.post_attention_layernorm(resid_mid))  # stage 8  [B, T, D]
        ffn_out = self.mlp(ffn_norm)  # [B, T, D]
        resid_post: Tensor = self.taps["resid_post"](resid_mid + ffn_out)  # [B, T, D]
        return resid_post


# --------------------------------------------------------------------------------------- branch one: attention
class Attention(nn.Module):
    """Causal multi-head self-attention with rotary positions: the only place where tokens meet."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.num_heads, self.head_dim = config.num_heads, config.head_dim
        self.q_proj = nn.Linear(width, width, bias=False)  # what a token asks for
        self.k_proj = nn.Linear(width, width, bias=False)  # what a token is compared by
        self.v_proj = nn.Linear(width, width, bias=False)  # what a token hands over
        self.o_proj = nn.Linear(width, width, bias=False)
        self.taps = taps(
            "q", "k", "v", "q_rot", "k_rot", "scores", "masked_scores", "probs", "heads", "concat", "attn_out"
        )

    def forward(self, x: Tensor, position_embeddings: tuple[Tensor, Tensor]) -> Tensor:
        """x [B, T, D], (cos, sin) each [T, Dh] -> [B, T, D]."""
        cos, sin = position_embeddings

        # Stage 2: project, then split the feature axis into heads. Every head keeps all T tokens.
        q = self.taps["q"](self.split_heads(self.q_proj(x)))  # [B, T, D] -> [B, H, T, Dh]
        k = self.taps["k"](self.split_heads(self.k_proj(x)))  # [B, H, T, Dh]
        v = self.taps["v"](self.split_heads(self.v_proj(x)))  # [B, H, T, Dh]

        # Stage 3: turn queries and keys by their position. Values carry content and are never turned.
        q_rot = self.taps["q_rot"](rotate(q, cos, sin))  # [B, H, T, Dh]
        k_rot = self.taps["k_rot"](rotate(k, cos, sin))  # [B, H, T, Dh]

        # Stage 4: one score per (query, key) pair; then the future is shut, before the softmax.
        scores = self.taps["scores"](q_rot @ k_rot.transpose(-1, -2) / math.sqrt(self.head_dim))  # [B, H, Tq, Tk]
        is_future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device).triu(1)  # [Tq, Tk], key > query
        masked_scores = self.taps["masked_scores"](scores.masked_fill(is_future, -torch.inf))  # [B, H, Tq, Tk]

        # Stage 5: each row becomes weights that sum to one; each query blends the values with them.
        probs = self.taps["probs"](masked_scores.float().softmax(dim=-1).type_as(v))  # [B, H, Tq, Tk]
        heads = self.taps["heads"](probs @ v)  # [B, H, Tq, Tk] @ [B, H, Tk, Dh] -> [B, H, Tq, Dh]

        # Stage 6: put the heads side by side again and mix their features.
        concat = self.taps["concat"](heads.transpose(1, 2).flatten(2))  # [B, H, T, Dh] -> [B, T, H * Dh]
        attn_out: Tensor = self.taps["attn_out"](self.o_proj(concat))  # [B, T, D]
        return attn_out

    def split_heads(self, x: Tensor) -> Tensor:
        """[B, T, H * Dh] -> [B, H, T, Dh]."""
        return x.reshape(*x.shape[:2], self.num_heads, self.head_dim).transpose(1, 2)


# ----------------------------------------------------------------------------------- branch two: feed-forward
class FeedForward(nn.Module):
    """SwiGLU: each token's features are widened, gated and brought back. Tokens do not meet here."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, config.ffn_width, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, config.ffn_width, bias=False)
        self.down_proj = nn.Linear(config.ffn_width, config.hidden_size, bias=False)
        self.taps = taps("gate", "up", "hidden", "ffn_out")

    def forward(self, x: Tensor) -> Tensor:
        """x [B, T, D] -> [B, T, D]."""
        gate = self.taps["gate"](self.gate_proj(x))  # [B, T, D] -> [B, T, F]
        up = self.taps["up"](self.up_proj(x))  # [B, T, D] -> [B, T, F]
        hidden = self.taps["hidden"](F.silu(gate) * up)  # [B, T, F]
        ffn_out: Tensor = self.taps["ffn_out"](self.down_proj(hidden))  # [B, T, F] -> [B, T, D]
        return ffn_out


# ------------------------------------------------------------------------------------------------- small parts
class RMSNorm(nn.Module):
    """Divide each vector by its root mean square, then scale each feature: weight * x / sqrt(mean(x^2) + eps)."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """[..., D] -> [..., D]; computed in float32 whatever comes in."""
        wide = x.float()
        scaled = wide * torch.rsqrt(wide.pow(2).mean(dim=-1, keepdim=True) + self.eps)
        return (self.weight * scaled).type_as(x)


def rope_tables(config: TransformerConfig, length: int, device: torch.device | None = None) -> tuple[Tensor, Tensor]:
    """cos and sin of every angle, each [T, Dh] in float32, for positions 0 to length - 1.

    Pair i turns by position * angle_step * rope_theta^(-2i / Dh). It is made of features i and i + Dh/2, so the
    Dh/2 angles are written twice, side by side.
    """
    exponents = torch.arange(0, config.head_dim, 2, device=device).float() / config.head_dim  # [Dh/2]
    speeds = config.angle_step / config.rope_theta**exponents  # [Dh/2], radians per position
    angles = torch.outer(torch.arange(length, device=device).float(), speeds)  # [T, Dh/2]
    angles = torch.cat([angles, angles], dim=-1)  # [T, Dh]
    return angles.cos(), angles.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn each feature pair (x_i, x_{i + Dh/2}) counter-clockwise by its angle. x [B, H, T, Dh] -> same shape."""
    first, second = x.chunk(2, dim=-1)  # [B, H, T, Dh/2] each
    quarter_turn = torch.cat([-second, first], dim=-1)  # every pair turned by 90 degrees
    return (x * cos + quarter_turn * sin).type_as(x)


# --------------------------------------------------------------------------------------------------- the demo
def watch(model: TransformerModel) -> None:
    """Print the name and shape of every quantity as the forward pass produces it."""
    watched: dict[str, nn.Module] = {"token_embedding": model.token_embedding}
    for path, module in model.named_modules():  # for example layers.0.self_attn.taps.probs
        parts = path.split(".")
        if "taps" in parts[:-1]:
            watched[f"layer {parts[1]}: {parts[-1]}"] = module
    watched |= {"final_norm": model.final_norm, "logits": model.lm_head}
    for label, module in watched.items():
        module.register_forward_hook(lambda _module, _inputs, value, label=label: show(label, value))


def show(label: str, value: Tensor) -> None:
    """One line: what it is called and its shape."""
    print(f"{label:24} {list(value.shape)}")


def demo() -> None:
    """Two sentences of five tokens: every shape, and four facts that must hold."""
    torch.manual_seed(0)
    model = TransformerModel(TransformerConfig()).eval()
    input_ids = torch.randint(model.config.vocab_size, (2, 5))
    other_ids = input_ids.clone()
    other_ids[:, -1] = (other_ids[:, -1] + 1) % model.config.vocab_size
    with torch.no_grad():
        before = model(other_ids)
        watch(model)
        show("input_ids", input_ids)
        logits = model(input_ids)

    assert list(logits.shape) == [2, 5, model.config.vocab_size]
    assert bool(logits.isfinite().all())
    assert torch.equal(before[:, :-1], logits[:, :-1]), "the last token may not change what comes before it"
    assert model.lm_head.weight is model.token_embedding.weight, "one parameter, used twice"
    print(f"{sum(weight.numel() for weight in model.parameters())} parameters. All four checks hold.")


if __name__ == "__main__":
    demo()
