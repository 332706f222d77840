"""A block that nobody of the explorer made: attention without mask and scale, biases everywhere, GELU."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from explorer import Trace
from explorer.capture import record

B, T, D, H, DH, F = 2, 3, 8, 2, 4, 10
NEEDED = ("resid_pre", "q", "k")
ALL = (*NEEDED, "v", "q_rot", "scores", "probs", "heads", "attn_out", "resid_mid", "gate", "up", "hidden", "resid_post")


class Port(nn.Module):
    """taps: those it has of ALL; more: identities of its own, by attribute."""

    def __init__(self, taps: Iterable[str] = ALL, **more: nn.Module) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.self_attn = nn.Module()
        for letter in "qkvo":
            setattr(self.self_attn, f"{letter}_proj", nn.Linear(D, D))
        self.mlp = nn.Module()
        self.mlp.gate_proj, self.mlp.up_proj, self.mlp.down_proj = nn.Linear(D, F), nn.Linear(D, F), nn.Linear(F, D)
        self.taps = nn.ModuleDict({name: nn.Identity() for name in taps})
        for name, module in more.items():
            setattr(self, name, module)

    def tap(self, name: str, value: Tensor) -> Tensor:
        return self.taps[name](value) if name in self.taps else value

    def forward(self, x: Tensor, position_embeddings: Any) -> Tensor:
        x = self.tap("resid_pre", x)
        q, k, v = (
            self.tap(letter, getattr(self.self_attn, f"{letter}_proj")(x).view(B, T, H, DH).transpose(1, 2))
            for letter in "qkv"
        )
        scores = self.tap("scores", self.tap("q_rot", q) @ k.mT)
        heads = self.tap("heads", self.tap("probs", scores.softmax(-1)) @ v)
        mid = self.tap("resid_mid", x + self.tap("attn_out", self.self_attn.o_proj(heads.transpose(1, 2).flatten(2))))
        gate, up = self.tap("gate", self.mlp.gate_proj(mid)), self.tap("up", self.mlp.up_proj(mid))
        hidden = self.tap("hidden", nn.functional.gelu(gate) * up)
        return self.tap("resid_post", mid + self.mlp.down_proj(hidden))


def given() -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """hidden_states and position_embeddings."""
    stream = torch.randn(B, T, D, generator=torch.Generator().manual_seed(6))
    return stream, (torch.ones(T, DH), torch.zeros(T, DH))


def recorded(taps: Iterable[str] = ALL, **more: Any) -> Trace:
    return record(Port(taps), *given(), **more)


def by_hand() -> dict[str, np.ndarray]:
    """What the block computes, in float64 without torch."""
    state = {name: value.detach().double().numpy() for name, value in Port().state_dict().items()}
    x = given()[0].double().numpy()

    def linear(value: np.ndarray, name: str) -> np.ndarray:
        return value @ state[f"{name}.weight"].T + state[f"{name}.bias"]

    q, k, v = (linear(x, f"self_attn.{c}_proj").reshape(B, T, H, DH).transpose(0, 2, 1, 3) for c in "qkv")
    scores = q @ k.transpose(0, 1, 3, 2)
    probs = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    heads = probs @ v
    mid = x + linear(heads.transpose(0, 2, 1, 3).reshape(B, T, D), "self_attn.o_proj")
    return {"q": q, "scores": scores, "probs": probs, "heads": heads, "resid_mid": mid}
