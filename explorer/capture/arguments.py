"""Whether what `record` was called with is of the kinds that it takes.

Must not know: how a block is run, traces, the page.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor, nn

from explorer.spec import Edit
from explorer.switches import Switch, parse_switch
from explorer.typed import shown

AN_EDIT = "Edit, for example Edit('probs', (0, 0, 1, 0), 0.5)"
A_SWITCH = "names, for example ['no_mask', 'only_head:1']"


def check_inputs(block: object, hidden: object, positions: object, past: object, mask: object) -> None:
    """Raises TypeError: what was given, what is taken, what to do."""
    if not isinstance(block, nn.Module):
        raise TypeError(f"block is {_kind(block)}; record takes an nn.Module with taps. Give it the module itself.")
    _check_tensor("hidden_states", hidden, "[B, T, D]")
    _check_pair("position_embeddings", positions, "(cos, sin)", "each [T, Dh]")
    if past is not None:
        _check_pair("past_key_value", past, "(K, V)", "each [B, Hkv, P, Dh]")
    if mask is not None:
        _check_tensor("attention_mask", mask, "[B, P + T]")


def read_edits(edits: Iterable[Edit] | Edit) -> tuple[Edit, ...]:
    """The edits of one call, a single one too. Raises TypeError for anything else."""
    if isinstance(edits, Edit):
        return (edits,)
    return _listed("edits", edits, Edit, AN_EDIT)


def read_switches(switches: Iterable[str]) -> tuple[Switch, ...]:
    """The switches of one call. Raises SwitchError, and TypeError for what is no list of names."""
    read = tuple(map(parse_switch, _listed("switches", switches, str, A_SWITCH)))
    for switch in read:
        if switch.kind.argument == "number":
            switch.check({})
    return read


def _listed(name: str, given: Any, kind: type, wanted: str) -> tuple[Any, ...]:
    if isinstance(given, (str, bytes, dict)) or not isinstance(given, Iterable):
        raise TypeError(f"{name} is {shown(given)}, {_kind(given)}; it takes a list of {wanted}.")
    listed = tuple(given)
    for entry in listed:
        if not isinstance(entry, kind):
            raise TypeError(f"{name} holds {shown(entry)}, {_kind(entry)}; it takes a list of {wanted}.")
    return listed


def _check_tensor(name: str, given: object, shape: str) -> None:
    if not isinstance(given, Tensor):
        raise TypeError(
            f"{name} is {_kind(given)}; record takes a torch.Tensor {shape}. Make one with torch.as_tensor."
        )


def _check_pair(name: str, given: Any, parts: str, shapes: str) -> None:
    parted = isinstance(given, (tuple, list, Tensor))
    if not parted or len(given) != 2 or not all(isinstance(part, Tensor) for part in given):
        held = f" of {', '.join(map(_kind, given)) or 'nothing'}" if parted else ""
        raise TypeError(
            f"{name} is {_kind(given)}{held}; record takes the pair {parts} of torch.Tensor, {shapes}. "
            "Make tensors with torch.as_tensor."
        )


def _kind(value: object) -> str:
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
