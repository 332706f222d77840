from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch

from explorer.model import MiniMindConfig, RotaryEmbedding, rope_tables
from explorer.model.rope import rotate
from tests.model.helpers import close, normal, tiny

YARN = {"factor": 8, "original_max_position_embeddings": 64, "beta_fast": 32, "beta_slow": 1, "attention_factor": 1.25}


def expected_angle(config: MiniMindConfig, position: int, pair: int) -> float:
    """The angle by the definition, in float64; YaRN written as turns within the training length."""
    width, theta = config.head_dim, config.rope_theta
    frequency = theta ** (-2 * pair / width)
    yarn = config.yarn
    if yarn and config.max_position_embeddings > yarn.original_max_position_embeddings:

        def boundary(turns: float) -> float:  # the pair i with original · theta^(−2i/width) / 2π = turns
            return width / 2 * math.log(yarn.original_max_position_embeddings / (2 * math.pi * turns), theta)

        low = max(math.floor(boundary(yarn.beta_fast)), 0)
        high = min(math.ceil(boundary(yarn.beta_slow)), width // 2 - 1)
        share = np.interp(pair, [low, max(high, low + 0.001)], [0, 1])
        frequency = share * frequency / yarn.factor + (1 - share) * frequency
    return position * frequency * config.angle_step


@pytest.mark.parametrize(
    "config",
    [
        tiny(),
        tiny(head_dim=16, rope_theta=100.0, angle_step=0.3),
        tiny(head_dim=32, max_position_embeddings=512, inference_rope_scaling=True, rope_scaling=YARN),
        tiny(head_dim=32, max_position_embeddings=64, inference_rope_scaling=True, rope_scaling=YARN),
    ],
    ids=["plain", "step", "yarn", "yarn within the training length"],
)
def test_the_tables_hold_cos_and_sin_of_every_angle(config: MiniMindConfig) -> None:
    cos, sin = rope_tables(config, 60)
    half = config.head_dim // 2
    angles = np.array([[expected_angle(config, m, i % half) for i in range(config.head_dim)] for m in range(60)])
    factor = config.yarn.attention_factor if config.yarn else 1
    close(cos, np.cos(angles) * factor)
    close(sin, np.sin(angles) * factor)
    assert cos.dtype == sin.dtype == torch.float32


def test_pair_zero_turns_one_radian_a_position() -> None:
    cos, sin = rope_tables(tiny(), 3)
    close(torch.atan2(sin[:, 0], cos[:, 0]), torch.tensor([0.0, 1.0, 2.0]), 1e-6)


def test_a_quarter_turn_is_exact() -> None:
    cos, sin = rope_tables(tiny(head_dim=2, angle_step=math.pi / 2), 2)
    turned = rotate(torch.tensor([[[[1.0, 1.0], [1.0, -1.0]]]]), cos, sin)
    assert torch.equal(turned, torch.tensor([[[[1.0, 1.0], [1.0, 1.0]]]]))


def test_a_feature_is_paired_with_the_one_half_a_head_away() -> None:
    """Each pair turns as a complex number does, counter-clockwise."""
    config = tiny(head_dim=8, rope_theta=50.0)
    x = normal(2, 3, 5, 8)
    number = torch.complex(x[..., :4].double(), x[..., 4:].double())
    angles = torch.tensor([[expected_angle(config, m, i) for i in range(4)] for m in range(5)], dtype=torch.float64)
    turned = number * torch.exp(1j * angles)
    close(rotate(x, *rope_tables(config, 5)), torch.cat((turned.real, turned.imag), -1))


def test_a_score_depends_on_the_distance_alone() -> None:
    config = tiny(head_dim=8)
    q, k = normal(1, 1, 1, 8, seed=1), normal(1, 1, 1, 8, seed=2)
    rope = RotaryEmbedding(config)

    def score(m: int, n: int) -> torch.Tensor:
        return (rotate(q, *rope(m, 1)) * rotate(k, *rope(n, 1))).sum()

    close(score(3, 10), score(40, 47))
    close(score(3, 10), (q * rotate(k, *rope(7, 1))).sum())
    assert (score(3, 10) - score(3, 11)).abs() > 1e-3


def test_tables_that_do_not_fit_the_tokens_are_refused() -> None:
    cos, sin = rope_tables(tiny(), 4)
    with pytest.raises(ValueError, match=r"\(1, 6\).*do not fit 4 tokens"):
        rotate(normal(1, 2, 4, 6), cos[:1], sin[:1])


@pytest.mark.parametrize(("start", "count"), [(60, 5), (-1, 2), (64, 1)])
def test_positions_outside_the_model_are_refused(start: int, count: int) -> None:
    with pytest.raises(ValueError, match="positions 0 to 63; shorten the text"):
        RotaryEmbedding(tiny())(start, count)


def test_slices_start_where_the_cache_ends() -> None:
    rope = RotaryEmbedding(tiny())
    close(rope(7, 3)[0], rope_tables(tiny(), 64)[0][7:10], 0)
    assert [table.shape for table in rope(64, 0)] == [(0, 6), (0, 6)]


def test_tables_grow_with_the_positions_and_are_kept() -> None:
    rope = RotaryEmbedding(tiny(max_position_embeddings=100_000))
    first = rope(0, 3)[0]
    assert rope(5, 2)[0].data_ptr() == first.data_ptr() + 5 * 6 * 4, "computed again without need"
    close(rope(90_000, 2)[1], rope_tables(tiny(), 90_002)[1][90_000:], 0)


class TestMemoryThatCannotBeTrusted:
    """The tables come out right whatever the buffers hold."""

    config = tiny()

    def check(self, rope: RotaryEmbedding) -> None:
        for got, expected in zip(rope(0, 50), rope_tables(self.config, 50), strict=True):
            assert torch.equal(got, expected)
            assert got.dtype == torch.float32

    def test_nan_before_the_first_use(self) -> None:
        rope = RotaryEmbedding(self.config)
        rope.cos = torch.full((64, 6), math.nan)
        rope.sin = torch.full((64, 6), math.nan)
        self.check(rope)

    @pytest.mark.parametrize("value", [math.nan, 0.0, 0.5])
    def test_written_over_in_place(self, value: float) -> None:
        rope = RotaryEmbedding(self.config)
        rope(0, 50)
        rope.cos.fill_(value)
        self.check(rope)
        with torch.inference_mode():
            rope.sin.fill_(value)
        self.check(rope)

    def test_replaced_by_other_memory(self) -> None:
        rope = RotaryEmbedding(self.config)
        rope(0, 50)
        rope.sin = torch.empty_like(rope.sin).fill_(3)
        self.check(rope)

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
    def test_cast(self, dtype: torch.dtype) -> None:
        rope = RotaryEmbedding(self.config)
        rope(0, 50)
        self.check(rope.to(dtype))
        self.check(copy.deepcopy(rope))

    def test_built_on_the_meta_device(self) -> None:
        with torch.device("meta"):
            rope = RotaryEmbedding(self.config)
            assert rope(0, 5, "meta")[0].is_meta
        rope.to_empty(device="cpu")
        self.check(rope)

    def test_computed_in_inference_mode_and_used_in_training(self) -> None:
        rope = RotaryEmbedding(self.config)
        with torch.inference_mode():
            rope(0, 50)
        x = normal(1, 1, 50, 6).requires_grad_()
        rotate(x, *rope(0, 50)).sum().backward()
        self.check(rope)

    def test_they_stay_out_of_checkpoints(self) -> None:
        rope = RotaryEmbedding(self.config)
        rope(0, 50)
        assert not rope.state_dict()
        assert {name for name, _ in rope.named_buffers()} == {"cos", "sin"}


@pytest.mark.gpu
def test_on_a_gpu_they_are_bit_for_bit_those_of_the_cpu() -> None:
    rope = RotaryEmbedding(tiny())
    first = rope(0, 50, "cuda")[0]
    assert torch.equal(first.cpu(), rope_tables(tiny(), 50)[0])
    assert rope(0, 50, "cuda")[0].data_ptr() == first.data_ptr()
