"""A block's taps: found by name, and told apart from what only looks like one.

Purpose: `survey`, `find_taps`, and TapWarning for a name that was probably meant for a quantity's.
Must not know: hooks, edits, traces, the page.
"""

from __future__ import annotations

import warnings
from difflib import get_close_matches

from torch import Tensor, nn

from explorer.capture.edits import CaptureError
from explorer.quantities import QUANTITIES

ALIKE = 0.82  # "prob" and "probs" are 0.89 alike; "norm", as many blocks call an identity, and "q_norm" 0.8


class TapWarning(UserWarning):
    """An nn.Identity of a block is named almost like a quantity, so it shows nothing."""


def find_taps(block: nn.Module) -> dict[str, nn.Module]:
    """Quantity name -> tap, for every tap below `block`."""
    return survey(block)[0]


def survey(block: nn.Module) -> tuple[dict[str, nn.Module], dict[str, Tensor]]:
    """Taps by quantity and parameters by state_dict name, in one walk that visits each module once.

    Raises CaptureError for a block without taps and for two taps of one name.
    """
    taps: dict[str, nn.Module] = {}
    weights: dict[str, Tensor] = {}
    visited: set[nn.Module] = set()

    def visit(module: nn.Module, path: str, holds_taps: bool) -> None:
        for name, parameter in module._parameters.items():
            if parameter is not None:
                weights[path + name] = parameter
        for name, child in module._modules.items():
            if child is None or child in visited:
                continue
            visited.add(child)
            if holds_taps:
                if name in taps:
                    raise CaptureError(f"Two taps are named {name!r}; a block shows each quantity once.")
                taps[name] = child
            if child._modules or child._parameters:
                visit(child, f"{path}{name}.", name == "taps")

    visit(block, "", False)
    if not taps:
        raise CaptureError(
            f"{type(block).__name__} has no taps, so nothing of it can be recorded. Give it self.taps = "
            'nn.ModuleDict({"resid_pre": nn.Identity(), "q": nn.Identity(), "k": nn.Identity()}), with more quantities '
            'by name, and let its forward pass each value through its tap: q = self.taps["q"](q).'
        )
    return taps, weights


def warn_of_near_names(block: nn.Module, stacklevel: int) -> None:
    """One TapWarning for every nn.Identity of `block` whose name is almost a quantity's."""
    paths = [path for path, module in block.named_modules() if type(module) is nn.Identity]
    found = {path: near for path in paths if (near := _almost(path.rpartition(".")[2]))}
    if found:
        told = "; ".join(f"{path} (did you mean {near}?)" for path, near in found.items())
        warnings.warn(
            f"{type(block).__name__} has an nn.Identity whose name is almost that of a quantity: {told}. It is no tap, "
            "so it shows nothing. Name it after the quantity, in the ModuleDict taps.",
            TapWarning,
            stacklevel=stacklevel + 1,
        )


def _almost(name: str) -> str:
    """The quantity that a name was probably meant for; "" for one that is a quantity's, or like none."""
    near = [] if name in QUANTITIES else get_close_matches(name, QUANTITIES, n=1, cutoff=ALIKE)
    return near[0] if near else ""
