from __future__ import annotations

import numpy as np
import pytest
import torch

from explorer.model.norm import RMSNorm
from tests.model.helpers import close, normal, randomise


def test_it_divides_by_the_root_of_the_mean_square() -> None:
    norm = randomise(RMSNorm(6, eps=1e-3))
    x = normal(2, 3, 6)
    wide, gamma = x.double().numpy(), norm.weight.detach().double().numpy()
    expected = np.empty_like(wide)
    for place in np.ndindex(2, 3):
        row = wide[place]
        expected[place] = gamma * row / np.sqrt(np.dot(row, row) / 6 + 1e-3)
    close(norm(x), expected, 1e-6)


def test_a_row_of_unit_rms_stays_as_it_is() -> None:
    x = torch.tensor([[1.0, 1.0], [1.0, -1.0]])
    close(RMSNorm(2, eps=1e-12)(x), x, 1e-7)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_goes_through_float32(dtype: torch.dtype) -> None:
    """300² overflows float16, 1e-4² vanishes in it."""
    x = torch.tensor([[300.0, -300.0, 300.0], [1e-4, 1e-4, -1e-4]], dtype=dtype)
    out = RMSNorm(3, eps=1e-12).to(dtype)(x)
    assert out.dtype == dtype
    close(out, x.sign().double(), 1e-2)


def test_a_row_of_zeros_gives_zeros() -> None:
    assert torch.equal(RMSNorm(4)(torch.zeros(1, 4)), torch.zeros(1, 4))
