"""Runs a block once, keeping a reference to everything its taps show and applying edits on the way.

Purpose: `record`. A tap is an `nn.Identity` under a ModuleDict called `taps`, named after the quantity it shows; a
forward hook on it that returns a tensor replaces what the block goes on with.
Must not know: how the block computes, where its weights come from, the page.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from explorer.capture.arguments import check_inputs, read_edits, read_switches
from explorer.capture.blocks import is_own
from explorer.capture.edits import CaptureError, check_experts, set_cells
from explorer.capture.kept import Kept, Mask
from explorer.capture.taps import find_taps, survey, warn_of_near_names
from explorer.capture.trace import Trace
from explorer.quantities import QUANTITIES, SCORE_TAPS, unknown_name
from explorer.spec import Edit
from explorer.switches import Switch

Pair = tuple[Tensor, Tensor]
_active: ContextVar[Recorder | None] = ContextVar("active_recorder", default=None)
_locks: WeakKeyDictionary[nn.Module, threading.RLock] = WeakKeyDictionary()
_locks_guard = threading.Lock()


def record(
    block: nn.Module,
    hidden_states: Tensor,
    position_embeddings: Pair,
    past_key_value: Pair | None = None,
    attention_mask: Tensor | None = None,
    edits: Iterable[Edit] | Edit = (),
    *,
    switches: Iterable[str] = (),
    keep_scores: bool = True,
) -> Trace:
    """Run `block` once and return everything its taps showed.

    block:               a MiniMindBlock, a course TransformerBlock, or any module with taps, called as
                         block(hidden_states, position_embeddings), with past_key_value and attention_mask by these
                         names where they are given
    hidden_states:       [B, T, D], the residual stream entering the block
    position_embeddings: (cos, sin), each [T, Dh], for the positions of this call
    past_key_value:      (K, V), each [B, Hkv, P, Dh], heads first; None without a cache
    attention_mask:      [B, P + T], 1 for a real token and 0 for padding; None for no padding
    edits:               what to set by hand; an edit of scores, masked_scores or probs forces the explicit path
    switches:            named what-ifs (explorer.switches)
    keep_scores:         False leaves scores, masked scores and probabilities unrecorded, so that the block may take
                         its flash path; the trace of one of the explorer's blocks recomputes the rows that are asked
                         for, that of another block has none

    The run happens under no_grad. Hooks that others put on the block stay and work; ours are removed in any case.
    A switch changes this call only: keys that are cached already stay as they were made.
    Warns with a TapWarning of an nn.Identity that is named almost like a quantity.
    Raises CaptureError when a tap fires twice, when an edit does not fit its tensor, and when an edit or switch needs a
    tap that never fires; UnknownName for an edit of something that does not exist; SwitchError for a switch that does
    not exist or fit; ShapeMismatch for a value without its quantity's shape; TypeError for arguments of another kind.
    """
    block = getattr(block, "_orig_mod", block)  # a compiled module is captured uncompiled
    check_inputs(block, hidden_states, position_embeddings, past_key_value, attention_mask)
    if not is_own(block):
        warn_of_near_names(block, stacklevel=2)
    recorder = Recorder(block, read_edits(edits), read_switches(switches), keep_scores)
    return recorder.run(hidden_states, position_embeddings, past_key_value, attention_mask)


class Recorder:
    """One recording: hooks, edits, and what was seen. Used once."""

    def __init__(self, block: nn.Module, edits: Sequence[Edit], switches: Sequence[Switch], keep_scores: bool) -> None:
        self.block = block
        self.taps: dict[str, nn.Module] = {}
        self.edits = [e for e in edits if e.on]
        self.tap_edits: dict[str, list[Edit]] = {}
        self.switches = switches
        self.keep_scores = keep_scores
        self.seen: dict[str, Kept] = {}
        self.before: dict[str, Kept] = {}
        self.given: dict[str, Tensor] = {}
        self.weights: dict[str, Tensor] = {}

    def run(self, hidden_states: Tensor, position_embeddings: Pair, past: Pair | None, mask: Tensor | None) -> Trace:
        with _lock_of(self.block), _versions_counted(), torch.no_grad():
            hidden_states, cos, sin = map(_ordinary, (hidden_states, *position_embeddings))
            past = (_ordinary(past[0]), _ordinary(past[1])) if past is not None else None
            edited_weights = self._sort_edits(with_cache=past is not None)
            self._given(hidden_states, cos, sin, past, mask)
            if past is not None:
                past = (self.given["past_k"], self.given["past_v"])
            inputs = (hidden_states, (self.given["rope_cos"], self.given["rope_sin"]))
            options: dict[str, Any] = {} if past is None else {"past_key_value": past}
            if mask is not None:
                options["attention_mask"] = mask
            with self._hooked():
                if edited_weights:
                    torch.func.functional_call(self.block, edited_weights, inputs, options)
                else:
                    self.block(*inputs, **options)
        self._check_all_used()
        given = {name: Kept(tensor) for name, tensor in self.given.items()}
        weights = {name: Kept(tensor) for name, tensor in self.weights.items()}
        silent = self.taps.keys() - self.seen.keys()
        return Trace({**given, **self.seen}, self.before, weights, self.mask, self.block, silent=silent)

    def _sort_edits(self, with_cache: bool) -> dict[str, Tensor]:
        """Note taps, weights as this run uses them, and which edits go to which tap; returns the edited weights.

        Runs under the block's lock: while another run has weights edited, the block's own parameters are those.
        """
        self.taps, self.weights = survey(self.block)
        given = ("rope_cos", "rope_sin", *(("past_k", "past_v") if with_cache else ()))
        edited: dict[str, Tensor] = {}
        for edit in self.edits:
            name = edit.target
            if name in self.weights:
                self.before.setdefault(name, Kept(self.weights[name]))
                self.weights[name] = edited[name] = set_cells(self.weights[name], edit, own=name in edited)
            elif name in self.taps or name in given:
                self.tap_edits.setdefault(name, []).append(edit)
            elif name in QUANTITIES:
                raise _nothing_computes(name)
            else:
                raise unknown_name(name, [*self.taps, *given, *self.weights])
        return edited

    def _given(self, hidden: Tensor, cos: Tensor, sin: Tensor, past: Pair | None, mask: Tensor | None) -> None:
        """Note the inputs, edited, and the mask. Raises CaptureError for shapes that do not fit each other."""
        if hidden.ndim != 3:
            raise CaptureError(
                f"hidden_states has shape {tuple(hidden.shape)}; it takes [B, T, D]. Add the axis missing."
            )
        self.given = {"rope_cos": cos, "rope_sin": sin}
        if past is not None:
            self.given |= {"past_k": past[0], "past_v": past[1]}
        for name, tensor in self.given.items():
            self.given[name] = self._edited(name, tensor)
            if self.given[name] is not tensor:
                self.before[name] = Kept(tensor)
        batch, tokens, cached = hidden.shape[0], hidden.shape[1], past[0].shape[2] if past is not None else 0
        if mask is not None and mask.shape != (batch, cached + tokens):
            raise CaptureError(
                f"attention_mask has shape {tuple(mask.shape)}; it takes [B, P + T] = "
                f"[{batch}, {cached + tokens}], one entry for each key, cached ones first."
            )
        padded = None if mask is None else (mask == 0).to(hidden.device)
        self.mask = Mask(batch, tokens, cached, padded, hidden.device)

    @contextmanager
    def _hooked(self) -> Iterator[None]:
        """Our hooks, under one number that no other hook has: registering each tap by itself costs a run at d_model
        768 and T = 64 another percent.
        """
        number, hooked, token = RemovableHandle(OrderedDict()).id, [], _active.set(self)
        try:
            for name, tap in self.taps.items():
                if self.keep_scores or name not in SCORE_TAPS or self._touches_scores():
                    tap._forward_hooks[number] = self._hook(name)
                    hooked.append(tap)
            yield
        finally:
            _active.reset(token)
            for tap in hooked:
                tap._forward_hooks.pop(number, None)

    def _touches_scores(self) -> bool:
        return any(n in self.tap_edits for n in SCORE_TAPS) or any(s.sets_scores for s in self.switches)

    def _hook(self, name: str) -> Any:
        seen = self.seen
        changes = name in self.tap_edits or any(name in s.kind.rules for s in self.switches)

        def hook(module: nn.Module, args: tuple[Any, ...], output: Tensor) -> Tensor | None:
            if _active.get() is not self:  # somebody else's forward passes through the same block
                return None
            if name in seen:
                raise CaptureError(f"The tap {name!r} fired twice in one run; a record holds one value a quantity.")
            computed = output.detach() if output.requires_grad else output
            if not changes:
                seen[name] = Kept(computed)
                return None
            used = self._edited(name, computed)
            seen[name], self.before[name] = Kept(used), Kept(computed)
            return used

        return hook

    def _edited(self, name: str, computed: Tensor) -> Tensor:
        """`computed` itself when nothing applies to `name`, else a new tensor."""
        used = computed
        for switch in self.switches:
            rule = switch.kind.rules.get(name)
            if rule is not None:
                if switch.kind.argument == "head":
                    switch.check({"h": used.shape[1]})
                used = rule(_Seen(self), used, switch.argument).to(computed.dtype)
        for n, edit in enumerate(self.tap_edits.get(name, ())):
            used = set_cells(used, edit, own=n > 0)
        if name == "expert_index" and used is not computed and "router_probs" in self.seen:
            check_experts(used, self.seen["router_probs"].tensor.shape[-1])
        return used

    def _check_all_used(self) -> None:
        for name in self.tap_edits:
            if name not in self.seen and name not in self.given:
                raise _nothing_computes(name)
        for switch in self.switches:
            for name in switch.kind.rules:
                if name not in self.seen:
                    raise _nothing_computes(name, f"which the switch {switch.kind.name} replaces")


class _Seen:
    """What a switch's rule may read (explorer.switches.Values)."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._recorder.seen:
            raise _nothing_computes(name, "which a switch reads")
        return self._recorder.seen[name].read(name)

    def size(self, letter: str) -> int:
        for name, kept in self._recorder.seen.items():
            axes = QUANTITIES[name].axes
            if letter in axes:
                return int(kept.tensor.shape[axes.index(letter)])
        raise KeyError(letter)


def _nothing_computes(name: str, so: str = "so it cannot be edited") -> CaptureError:
    return CaptureError(
        f"Nothing in this block computes {name!r} in this run, {so}. It takes a tap of that name that the value passes."
    )


def _ordinary(tensor: Tensor) -> Tensor:
    """Tensors made under inference_mode have no version counter: take a copy of those."""
    return tensor.clone() if tensor.is_inference() else tensor


def _versions_counted() -> AbstractContextManager[Any]:
    """Leaves inference mode, under which tensors do not count their changes."""
    return torch.inference_mode(False) if torch.is_inference_mode_enabled() else nullcontext()


def _lock_of(block: nn.Module) -> threading.RLock:
    with _locks_guard:
        return _locks.setdefault(block, threading.RLock())


def hooks_on(block: nn.Module) -> Mapping[str, int]:
    """Tap name -> number of forward hooks on it; for tests that look for leftovers."""
    return {name: len(tap._forward_hooks) for name, tap in find_taps(block).items()}
