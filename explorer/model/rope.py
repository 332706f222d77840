"""Rotary position embedding: the tables of angles and the turn itself.

Su et al. 2021, "RoFormer", section 3.2.2. Feature i of a head forms a pair with feature i + Dh/2, and position m turns
pair i counter-clockwise by

    angle(m, i) = m · angle_step · rope_theta^(−2i/Dh),

so that a score between positions m and n depends on n − m alone. YaRN (Peng et al. 2023, section 3.2) slows the pairs
that turn rarely, so that positions beyond the training length stay within the angles seen in training.

Knows the configuration and positions; must not know queries, keys, caches or masks.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from explorer.model.config import MiniMindConfig

Tables = tuple[Tensor, Tensor]
_FEWEST_ROWS = 64


def rope_frequencies(config: MiniMindConfig) -> Tensor:
    """Radians each feature pair turns a position before angle_step: float32 [Dh/2], on the CPU.

    Float32 and this order of operations are MiniMind's: at position 30000 one more correct digit here would already
    turn a pair by a visible 1/1000 radian away from what its checkpoints were trained with.
    """
    width = config.head_dim
    exponent = torch.arange(0, width, 2, dtype=torch.float32, device="cpu") / width
    frequencies: Tensor = 1.0 / (config.rope_theta**exponent)
    yarn = config.yarn
    if yarn is None or config.max_position_embeddings <= yarn.original_max_position_embeddings:
        return frequencies

    def pair_turning(turns: float) -> float:
        """The pair, as a real number, that makes this many turns within the original length."""
        ratio = yarn.original_max_position_embeddings / (turns * 2 * math.pi)
        return width * math.log(ratio) / (2 * math.log(config.rope_theta))

    low = max(math.floor(pair_turning(yarn.beta_fast)), 0)
    high = min(math.ceil(pair_turning(yarn.beta_slow)), width // 2 - 1)
    pair = torch.arange(width // 2, dtype=torch.float32, device="cpu")
    slowed = ((pair - low) / max(high - low, 0.001)).clamp(0, 1)
    return frequencies * (1 - slowed + slowed / yarn.factor)


def rope_tables(config: MiniMindConfig, positions_end: int) -> Tables:
    """cos and sin of every angle for positions 0 … positions_end − 1: two float32 [positions_end, Dh], on the CPU.

    Both halves of the last axis hold the same Dh/2 numbers, so that a table multiplies a head's features as it is.
    The step multiplies in float64: half a turn of a quarter circle stays exact, cos(π/2) is 6e−17 and not −4e−8.
    """
    positions = torch.arange(positions_end, dtype=torch.float32, device="cpu")
    angles = torch.outer(positions, rope_frequencies(config)).double() * config.angle_step
    both_halves = torch.cat((angles, angles), dim=-1)
    factor = config.yarn.attention_factor if config.yarn else 1.0
    return (both_halves.cos() * factor).float(), (both_halves.sin() * factor).float()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn every feature pair (x_i, x_{i+Dh/2}) of x [B,heads,T,Dh] by its position's angle; tables [T,Dh].

    Computed in the tables' precision, returned in x's dtype. Raises ValueError if the tables do not hold one row for
    each token: one row too few would otherwise be broadcast in silence.
    """
    if cos.shape != x.shape[-2:] or sin.shape != x.shape[-2:]:
        raise ValueError(
            f"RoPE tables of shape {tuple(cos.shape)} and {tuple(sin.shape)} do not fit {x.shape[-2]} tokens of "
            f"{x.shape[-1]} features; take exactly the rows of these tokens' positions"
        )
    first, second = x.chunk(2, dim=-1)
    quarter_turned = torch.cat((-second, first), dim=-1)
    return (x * cos + quarter_turned * sin).to(x.dtype)


class RotaryEmbedding(nn.Module):
    """The tables of one model, built when first asked for and whenever their memory cannot be trusted.

    `cos` and `sin` are non-persistent buffers: they move with the model and stay out of checkpoints. A buffer may hold
    anything, though: building on the meta device and loading a checkpoint leaves uninitialised memory in it, `.half()`
    rounds it, and neither announces itself. So no content is ever believed. The tables count only while the buffers
    are the very tensors that this object computed, unmodified since, on the device asked for; otherwise they are
    computed again, always in float32.
    """

    cos: Tensor
    sin: Tensor

    def __init__(self, config: MiniMindConfig) -> None:
        super().__init__()
        self.config = config
        self.register_buffer("cos", torch.empty(0, config.head_dim), persistent=False)
        self.register_buffer("sin", torch.empty(0, config.head_dim), persistent=False)
        self._computed: tuple[Tensor, int, Tensor, int] | None = None

    def forward(self, start: int, count: int, device: torch.device | str = "cpu") -> Tables:
        """cos and sin for positions start … start + count − 1: two float32 [count, Dh] on the device.

        Raises ValueError for positions outside 0 … max_position_embeddings − 1.
        """
        end, limit = start + count, self.config.max_position_embeddings
        if start < 0 or count < 0 or end > limit:
            asked = f"position {start} was" if count == 1 else f"positions {start} to {end - 1} were"
            raise ValueError(
                f"{asked} asked for, but this model has positions 0 to {limit - 1}; "
                "shorten the text or the cache, or raise max_position_embeddings"
            )
        cos, sin = self._tables(end, torch.empty(0, device=device).device)  # "cuda" becomes "cuda:0"
        return cos[start:end], sin[start:end]

    def _tables(self, rows: int, device: torch.device) -> Tables:
        cos, sin = self.cos, self.sin
        if not self._trusted(cos, sin) or cos.device != device or cos.shape[0] < rows:
            size = min(max(_FEWEST_ROWS, 1 << (rows - 1).bit_length()), self.config.max_position_embeddings)
            with torch.inference_mode(False), torch.no_grad():
                cos, sin = (table.to(device) for table in rope_tables(self.config, size))
            self.cos, self.sin = cos, sin
            self._computed = (cos, cos._version, sin, sin._version)
        return cos, sin

    def _trusted(self, cos: Tensor, sin: Tensor) -> bool:
        if self._computed is None:
            return False
        own_cos, cos_version, own_sin, sin_version = self._computed
        same = cos is own_cos and sin is own_sin
        return same and cos._version == cos_version and sin._version == sin_version
