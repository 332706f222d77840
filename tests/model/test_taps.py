from __future__ import annotations

import torch
from torch import nn

from explorer.model.taps import taps, watched


class Doubler(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.taps = taps("inner", "outer")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.taps["outer"](2 * self.taps["inner"](x))


def test_a_tap_changes_nothing_and_leaves_no_trace_in_the_state_dict() -> None:
    model = Doubler()
    assert model(torch.tensor(3.0)) == 6
    assert not model.state_dict()
    assert list(model.taps) == ["inner", "outer"]


def test_what_a_hook_returns_flows_on() -> None:
    model = Doubler()
    model.taps["inner"].register_forward_hook(lambda *_: torch.tensor(5.0))
    assert model(torch.tensor(3.0)) == 10


def test_watched_sees_hooks_before_and_after_and_only_on_the_named_taps() -> None:
    model = Doubler()
    assert not watched(model.taps, ("inner", "outer"))
    handle = model.taps["inner"].register_forward_hook(lambda *_: None)
    assert watched(model.taps, ("inner",))
    assert not watched(model.taps, ("outer",))
    handle.remove()
    model.taps["inner"].register_forward_pre_hook(lambda *_: None)
    assert watched(model.taps, ("inner",))
