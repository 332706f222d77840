"""Taps: named places in a forward pass where a value can be read or replaced.

A tap is an `nn.Identity` named after the quantity that flows through it. On its own it does nothing and holds no
parameter, so a model with taps has the same state dict as one without. A forward hook on it reads the value; a hook
that returns a tensor replaces the value, and the rest of the forward pass goes on from there.

This module must not know which quantities exist, nor who listens.
"""

from __future__ import annotations

from collections.abc import Iterable

from torch import nn


def taps(*names: str) -> nn.ModuleDict:
    """One identity module for each name, in the order in which the forward pass calls them.

    Assign the result to an attribute called `taps`; a recorder then finds each one at the path `….taps.<name>`.
    """
    return nn.ModuleDict({name: nn.Identity() for name in names})


def watched(modules: nn.ModuleDict, names: Iterable[str]) -> bool:
    """True if any of the named taps carries a forward hook, that is, if somebody reads or replaces its value."""
    return any(modules[name]._forward_hooks or modules[name]._forward_pre_hooks for name in names)
