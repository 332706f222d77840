"""Root-mean-square normalisation, the only kind of norm in the model.

Knows nothing of where it is used: the block applies it over the residual width D, attention over a head's Dh features.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class RMSNorm(nn.Module):
    """y = γ ⊙ x / √(mean(x²) + ε), the mean taken over the last axis.

    Zhang & Sennrich 2019, "Root Mean Square Layer Normalization", section 3 (equation 4). Unlike LayerNorm it does not
    subtract the mean and has no bias.

    Shapes: x [..., width] -> y [..., width], in x's dtype. Everything up to the product with γ is computed in float32,
    so squares of half-precision numbers neither overflow nor vanish.
    """

    def __init__(self, width: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        mean_square = wide.pow(2).mean(-1, keepdim=True)
        return (self.weight * (wide * torch.rsqrt(mean_square + self.eps))).to(x.dtype)

    def extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, eps={self.eps}"
