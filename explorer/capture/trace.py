"""The immutable record of one run: every quantity by name, as numpy, converted only when asked for.

Purpose: Trace. Tensors are kept by reference together with their version; one that somebody changed afterwards is
refused, since it no longer holds what the block computed.
Must not know: how a run is started, figures, the page.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor, nn

from explorer.capture import ledger as ledger_module
from explorer.capture.blocks import about
from explorer.capture.display import describe, trace_html
from explorer.capture.kept import Array, Kept, Mask, Weights, read_only, to_numpy
from explorer.capture.names import NotRecorded, cell, inside, missing
from explorer.capture.scores import Recomputed
from explorer.capture.sizes import sizes_of
from explorer.expression import Expr
from explorer.quantities import QUANTITIES, SCORE_TAPS, UnknownName, unknown_name, weight_of

if TYPE_CHECKING:
    from explorer.spec import RunSpec

# In the course's block, which has no such step.
STANDS_FOR = {"q_norm": "q", "k_norm": "k", "present_k": "k_rot", "present_v": "v"}


class Trace:
    """What one run of a block computed, by quantity name, heads first.

    trace["probs"] is a read-only numpy array (float32; int64 for expert_index), [B, H, Tq, Tk].
    trace.axes("probs") gives its letters, trace.sizes a letter's length, trace.names what there is: what taps showed,
    and for the explorer's own block the scores that its flash path did not write down (trace.recomputed).
    trace.weights has the weights as they were used, by name; every look-up by name takes a weight's too.
    trace.spec is the RunSpec it came from, or None; trace.tokens the text of each token, cached ones first, [B][P + T],
    where a checkpoint read a text, else None.
    """

    def __init__(
        self,
        values: Mapping[str, Kept],
        before: Mapping[str, Kept],
        weights: Mapping[str, Kept],
        mask: Mask,
        block: nn.Module,
        spec: RunSpec | None = None,
        silent: Collection[str] = (),
    ) -> None:
        """silent: taps of the block that did not fire. Raises ShapeMismatch."""
        self._values = dict(values)
        self._before = dict(before)
        self._weights = dict(weights)
        self._mask = mask
        self._arrays: dict[str, Array] = {}
        self._arrays_before: dict[str, Array] = {}
        self.spec = spec
        self.tokens: tuple[tuple[str, ...], ...] | None = None
        self.about = about(block, self._weights)
        self.norm_eps, self.norm_topk = self.about.norm_eps, self.about.norm_topk
        self.activation, self.aux_loss_weight = self.about.activation, self.about.aux_loss_weight
        self.recomputed = frozenset(SCORE_TAPS) - self._values.keys() if self.about.own else frozenset()
        self.sizes = sizes_of(self._values)
        self._silent = tuple(silent)
        self.weights: Mapping[str, Array] = Weights(self._weights)
        ledger_module.check_shapes({n: k.tensor.shape for n, k in self._values.items()}, self.sizes)

    @property
    def names(self) -> tuple[str, ...]:
        """The quantities of this run, in the block's order."""
        return tuple(n for n in QUANTITIES if n in self._values or n in self.recomputed)

    @property
    def moe(self) -> bool:
        return "router_probs" in self._values

    @property
    def qk_norm(self) -> bool:
        """Whether queries are normalized per head."""
        if self.about.own:
            return "self_attn.q_norm.weight" in self._weights
        return "q_norm" in self._values and not self.shares("q_norm", "q")

    @cached_property
    def _scores(self) -> Recomputed:
        keys = self._values.get("present_k") or self._values["k_rot"]
        return Recomputed(self._values["q_rot"], keys, self._mask)

    @property
    def edited(self) -> tuple[str, ...]:
        """The quantities that an edit or a switch replaced, in the block's order, then the weights."""
        return tuple(n for names in (QUANTITIES, self._weights) for n in names if n in self._before)

    @cached_property
    def masked(self) -> Array:
        """True where a query may not see a key, bool [B, 1, Tq, Tk]; of a block of one's own where no head looks.

        Raises UnknownName for a block of one's own with neither masked_scores nor probs.
        """
        return read_only(self._hidden.cpu().numpy())

    @property
    def _hidden(self) -> Tensor:
        if self.about.own:
            return self._mask.hidden
        for name, nothing in (("masked_scores", -math.inf), ("probs", 0.0)):
            if name in self._values:
                return (self.tensor(name) == nothing).all(1, keepdim=True)
        raise NotRecorded(
            "This block has neither a tap masked_scores nor probs, so which keys its mask hides is not known. Add one."
        )

    @property
    def aux_loss(self) -> float | None:
        """What this routing would add to the loss in training; None without experts, or for a block of one's own.

        coef · E · Σ_e load_e · mean(p_e), load_e being how many of a token's k slots expert e takes on average
        (Fedus et al. 2021, section 2.2). Equal shares give coef · k, the smallest value for equal probabilities.
        """
        if not (self.moe and self.about.own):
            return None
        experts = self.sizes["E"]
        index, probs = self["expert_index"], self["router_probs"].astype(np.float64)
        load = np.bincount(index.ravel(), minlength=experts) / index[..., 0].size
        return float(self.aux_loss_weight * experts * (load * probs.reshape(-1, experts).mean(0)).sum())

    def __contains__(self, name: object) -> bool:
        """Whether there is a quantity of this name; `name in trace.weights` tells of a weight."""
        return name in self._values or name in self.recomputed

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __getitem__(self, name: str) -> Array:
        """The whole quantity or weight; what is computed on demand is computed each time. Raises UnknownName,
        StaleValue, TooLarge.
        """
        if name in self.recomputed:  # kept, it would cost the memory that was spared
            return to_numpy(self.tensor(name))
        if name not in self._arrays:
            self._arrays[name] = self.weights[name] if name in self._weights else to_numpy(self.tensor(name))
        return self._arrays[name]

    def tensor(self, name: str) -> Tensor:
        """The captured tensor itself; do not change it. Raises as trace[name] does."""
        if kept := self._values.get(name) or self._weights.get(name):
            return kept.read(name)
        if name not in self.recomputed:
            raise self._missing(name)
        return self._scores.whole(name)

    def rows(self, name: str, b: int, h: int, start: int = 0, stop: int | None = None) -> Array:
        """Query rows start..stop of scores, masked_scores or probs for one batch row and head, [rows, Tk].

        Recomputed from q_rot, the keys and the mask when the run took the flash path. Raises UnknownName, IndexError.
        """
        if name not in SCORE_TAPS:
            raise unknown_name(name, list(SCORE_TAPS))
        if name not in self:
            raise self._missing(name)
        if not (0 <= b < self.sizes["B"] and 0 <= h < self.sizes["H"]):
            raise IndexError(
                f"{name} has {self.sizes['B']} batch rows and {self.sizes['H']} heads; not row {b}, head {h}."
            )
        if name in self._values:
            return to_numpy(self._values[name].read(name)[b, h, start:stop])
        return to_numpy(self._scores.part(name, slice(b, b + 1), h, slice(start, stop))[0, 0])

    def before(self, name: str) -> Array:
        """What `name`, a quantity or a weight, was before an edit replaced it (the thing itself when none did)."""
        if name not in self._before:
            return self[name]
        if name not in self._arrays_before:
            self._arrays_before[name] = to_numpy(self._before[name].read(name))
        return self._arrays_before[name]

    def axes(self, name: str) -> tuple[str, ...]:
        """The axis letters of a quantity, heads first, or of a weight as stored. Raises UnknownName."""
        if name in self:
            return QUANTITIES[name].axes
        if name not in self._weights:
            raise self._missing(name)
        with suppress(UnknownName):
            letters = weight_of(name).axes
            if tuple(self.sizes[letter] for letter in letters) == self.shape(name):
                return letters
        raise NotRecorded(f"{name} is a weight of this block's own, so its axes have no letters. Read trace.shape.")

    def shape(self, name: str) -> tuple[int, ...]:
        """The lengths of the axes of a quantity or weight. Raises UnknownName."""
        if kept := self._values.get(name) or self._weights.get(name):
            return tuple(kept.tensor.shape)
        return tuple(self.sizes[letter] for letter in self.axes(name))

    observed_shape = shape  # record refuses a tensor whose shape is not the declared one

    def dtype(self, name: str) -> str:
        """The dtype the block computed it in, for example "bfloat16", or that of a weight. Raises UnknownName."""
        kept = self._values.get(name) or self._weights.get(name)
        if kept is None and name not in self:
            raise self._missing(name)
        return str((kept or self._values["q_rot"]).tensor.dtype).removeprefix("torch.")

    def shares(self, name: str, other: str) -> bool:
        """Whether two quantities are one piece of memory."""
        one, two = self._values.get(name), self._values.get(other)
        return one is not None and two is not None and one.tensor.data_ptr() == two.tensor.data_ptr()

    @property
    def device(self) -> str:
        return str(next(iter(self._values.values())).tensor.device)

    def memory(self) -> dict[int, int]:
        """What this trace keeps alive: address -> bytes, memory that names share only once, weights included.

        The arrays that reading every quantity makes are counted too, and the mask twice, under an address of their own.
        """
        values = [kept.tensor for kept in (*self._values.values(), *self._before.values())]
        mask = self.sizes["B"] * self.sizes["Tq"] * self.sizes["Tk"]
        held = {id(self): sum(4 * tensor.numel() for tensor in values) + 2 * mask}
        for tensor in (*values, *(kept.tensor for kept in self._weights.values())):
            storage = tensor.untyped_storage()
            held[storage.data_ptr()] = storage.nbytes()
        return held

    @property
    def nbytes(self) -> int:
        """Bytes kept alive by this trace and the weights it used."""
        return sum(self.memory().values())

    def ledger(self) -> ledger_module.Ledger:
        """A list of one row a quantity: names, symbolic and actual shape, dtype, bytes, FLOPs. Raises ShapeMismatch."""
        return ledger_module.ledger(self)

    def value(self, name: str, index: tuple[int, ...]) -> float:
        """One number; "masked" and weights are found as well. Raises UnknownName, IndexError."""
        if (array := self._arrays.get(name)) is not None:
            return cell(name, array, index)
        if name in self.recomputed:
            b, h, i, j = inside(name, self.shape(name), index)
            return float(self._scores.row(name, b, h, i)[j])
        if self.about.own and name in STANDS_FOR and name not in self._values:
            name = STANDS_FOR[name]
        return cell(name, self.masked if name == "masked" else self[name], index)

    def computed(self, name: str, index: tuple[int, ...]) -> float:
        """One number of a quantity as the block computed it, before an edit replaced it."""
        return cell(name, self.before(name), index) if name in self._before else self.value(name, index)

    def explain(self, name: str, index: tuple[int, ...]) -> Expr:
        """How that cell was made from other cells (before an edit replaced it).

        Raises UnknownName, IndexError, and ValueError for what is given to the block or learned, and for a block whose
        way to compute it is its own.
        """
        if name in self._weights:
            raise ValueError(f"{name} is a weight: it was learned, nothing in the block computes it.")
        if name not in self:
            raise self._missing(name)
        inside(name, self.shape(name), index)
        formula = QUANTITIES[name].formula
        if formula is None:
            raise ValueError(f"{name} is given to the block; nothing in the block computes it.")
        if not self.about.explains:
            raise ValueError(
                f"{name} was recorded; how this block computes it is its own and not known here, where formulas are "
                "MiniMind's. Read the value: trace[name]."
            )
        return formula(self, *index)

    def __repr__(self) -> str:
        return describe(self)

    def _repr_html_(self) -> str:
        return trace_html(self)

    def figure(self, name: str, **choices: int) -> Any:
        """A plotly Figure of this run, for example trace.figure("attention", b=0, h=1)."""
        from importlib import import_module

        return import_module("explorer.stages.figures").figure(self, name, **choices)

    def _missing(self, name: object) -> UnknownName:
        return missing(name, self.names, self._weights, self._silent, self.about.own)
