"""The immutable record of one run: every quantity by name, as numpy, converted only when asked for.

Purpose: Trace. Tensors are kept by reference together with their version; one that somebody changed afterwards is
refused, since it no longer holds what the block computed.
Must not know: how a run is started, figures, the page.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from explorer.capture import ledger as ledger_module
from explorer.capture.kept import Array, Kept, Mask, Weights, read_only, to_numpy
from explorer.expression import Expr
from explorer.limits import LIMITS
from explorer.quantities import QUANTITIES, SCORE_TAPS, unknown_name

if TYPE_CHECKING:
    from explorer.spec import RunSpec

STANDS_FOR = {"q_norm": "q", "k_norm": "k", "present_k": "k_rot", "present_v": "v"}  # in blocks without these taps
MOST_ROWS = 64  # recomputed rows kept for the inspector


class TooLarge(MemoryError):
    """Scores that would not fit the memory budget were asked for as a whole."""


class Trace:
    """What one run of a block computed, by quantity name, heads first.

    trace["probs"] is a read-only numpy array (float32; int64 for expert_index), [B, H, Tq, Tk].
    trace.axes("probs") gives its letters, trace.sizes a letter's length, trace.names what there is.
    trace.weights["self_attn.q_proj.weight"] is a weight as it was used; trace.masked is True where a query may not
    see a key, [B, 1, Tq, Tk]. trace.spec is the RunSpec it came from, or None; trace.tokens the text of each token,
    cached ones first, [B][P + T], where a checkpoint read a text, else None.
    """

    def __init__(
        self,
        values: Mapping[str, Kept],
        before: Mapping[str, Kept],
        weights: Mapping[str, Kept],
        mask: Mask,
        block: nn.Module,
        spec: RunSpec | None = None,
    ) -> None:
        self._values = dict(values)
        self._before = dict(before)
        self._weights = dict(weights)
        self._mask = mask
        self._arrays: dict[str, Array] = {}
        self._arrays_before: dict[str, Array] = {}
        self._rows: dict[tuple[str, int, int, int], Array] = {}
        self.spec = spec
        self.tokens: tuple[tuple[str, ...], ...] | None = None
        self.norm_eps = float(getattr(getattr(block, "input_layernorm", None), "eps", 1e-6))
        self.norm_topk = bool(getattr(getattr(block, "mlp", None), "normalise", True))
        self.aux_loss_weight = float(getattr(getattr(block, "mlp", None), "loss_weight", 0.0))
        self.activation = str(getattr(getattr(getattr(block, "mlp", None), "act", None), "__name__", "silu"))
        self.recomputed = frozenset(SCORE_TAPS) - self._values.keys()
        self.sizes = _sizes(self._values)
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
        return "self_attn.q_norm.weight" in self._weights

    @property
    def edited(self) -> tuple[str, ...]:
        """The quantities that an edit or a switch replaced, in the block's order."""
        return tuple(n for n in QUANTITIES if n in self._before)

    @cached_property
    def masked(self) -> Array:
        return read_only(self._hidden.cpu().numpy())

    @cached_property
    def _hidden(self) -> Tensor:
        return self._mask.hidden(self._values["q"].tensor.device)

    @property
    def aux_loss(self) -> float | None:
        """What this routing would add to the loss in training; None without experts.

        coef · E · Σ_e load_e · mean(p_e), load_e being how many of a token's k slots expert e takes on average
        (Fedus et al. 2021, section 2.2). Equal shares give coef · k, the smallest value for equal probabilities.
        """
        if not self.moe:
            return None
        experts = self.sizes["E"]
        index, probs = self["expert_index"], self["router_probs"].astype(np.float64)
        load = np.bincount(index.ravel(), minlength=experts) / index[..., 0].size
        return float(self.aux_loss_weight * experts * (load * probs.reshape(-1, experts).mean(0)).sum())

    def __contains__(self, name: object) -> bool:
        return name in self._values or name in self.recomputed

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __getitem__(self, name: str) -> Array:
        """The whole quantity; one that is computed on demand is computed each time. Raises UnknownName, StaleValue."""
        if name in self.recomputed:  # kept, it would cost the memory that was spared
            return to_numpy(self.tensor(name))
        if name not in self._arrays:
            tensor = self.tensor(name)
            self._arrays[name] = to_numpy(tensor)
        return self._arrays[name]

    def tensor(self, name: str) -> Tensor:
        """The captured tensor itself; do not change it."""
        if name in self._values:
            return self._values[name].read(name)
        if name not in self.recomputed:
            raise unknown_name(name, list(self.names))
        cells = math.prod(self.shape(name))
        if 4 * cells > LIMITS.score_bytes:
            raise TooLarge(
                f"{name} has {'×'.join(map(str, self.shape(name)))} cells, {4 * cells / 2**20:.0f} MiB in float32; at "
                f"most {LIMITS.score_bytes / 2**20:.0f} MiB are computed at once. Ask for a part: "
                f"trace.rows({name!r}, b, h, start, stop)."
            )
        return self._recompute(name, slice(None), None, slice(None))

    def rows(self, name: str, b: int, h: int, start: int = 0, stop: int | None = None) -> Array:
        """Query rows start..stop of scores, masked_scores or probs for one batch row and head, [rows, Tk].

        Recomputed from q_rot, the keys and the mask when the run took the flash path. Raises UnknownName, IndexError.
        """
        if name not in SCORE_TAPS:
            raise unknown_name(name, list(SCORE_TAPS))
        if not (0 <= b < self.sizes["B"] and 0 <= h < self.sizes["H"]):
            raise IndexError(
                f"{name} has {self.sizes['B']} batch rows and {self.sizes['H']} heads; not row {b}, head {h}."
            )
        if name in self._values:
            return to_numpy(self._values[name].read(name)[b, h, start:stop])
        return to_numpy(self._recompute(name, slice(b, b + 1), h, slice(start, stop))[0, 0])

    def before(self, name: str) -> Array:
        """What `name`, a quantity or a weight, was before an edit replaced it (the thing itself when none did)."""
        if name not in self._before:
            return self.weights[name] if name in self._weights else self[name]
        if name not in self._arrays_before:
            self._arrays_before[name] = to_numpy(self._before[name].read(name))
        return self._arrays_before[name]

    def axes(self, name: str) -> tuple[str, ...]:
        """The axis letters of a quantity, heads first."""
        if name not in self:
            raise unknown_name(name, list(self.names))
        return QUANTITIES[name].axes

    def shape(self, name: str) -> tuple[int, ...]:
        """The lengths of a quantity's axes."""
        return tuple(self.sizes[letter] for letter in self.axes(name))

    def observed_shape(self, name: str) -> tuple[int, ...]:
        """The shape the tensor really had; the declared one for what is computed on demand."""
        return tuple(self._values[name].tensor.shape) if name in self._values else self.shape(name)

    def dtype(self, name: str) -> str:
        """The dtype the block computed it in, for example "bfloat16", or that of a weight."""
        kept = self._values.get(name) or self._weights.get(name) or self._values["q_rot"]
        return str(kept.tensor.dtype).removeprefix("torch.")

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
        """One number; "masked" and weights are found as well."""
        if name == "masked":
            return float(self.masked[index])
        if name in self._weights:
            return float(self.weights[name][index])
        if name in self.recomputed:
            b, h, i, j = index
            return float(self._recomputed_row(name, b, h, i)[j])
        if name in STANDS_FOR and name not in self._values:
            name = STANDS_FOR[name]
        return float(self[name][index])

    def computed(self, name: str, index: tuple[int, ...]) -> float:
        """One number of a quantity as the block computed it, before an edit replaced it."""
        return float(self.before(name)[index]) if name in self._before else self.value(name, index)

    def explain(self, name: str, index: tuple[int, ...]) -> Expr:
        """How that cell was made from other cells (before an edit replaced it).

        Raises UnknownName, IndexError, and ValueError for what is given to the block or learned.
        """
        if name in self._weights:
            raise ValueError(f"{name} is a weight: it was learned, nothing in the block computes it.")
        if name not in self:
            raise unknown_name(name, list(self.names))
        shape = self.shape(name)
        if len(index) != len(shape) or not all(0 <= i < n for i, n in zip(index, shape, strict=True)):
            raise IndexError(
                f"{name} has shape {'×'.join(map(str, shape))}; index {list(index)} is outside of it. "
                f"Give {len(shape)} numbers, each below its length."
            )
        formula = QUANTITIES[name].formula
        if formula is None:
            raise ValueError(f"{name} is given to the block; nothing in the block computes it.")
        return formula(self, *index)

    def _repr_html_(self) -> str:
        from explorer.capture.display import trace_html

        return trace_html(self)

    def figure(self, name: str, **choices: int) -> Any:
        """A plotly Figure of this run, for example trace.figure("attention", b=0, h=1)."""
        from importlib import import_module

        return import_module("explorer.stages.figures").figure(self, name, **choices)

    def _recomputed_row(self, name: str, b: int, h: int, i: int) -> Array:
        """One query's row, kept for a while: explaining a cell asks for every number of it."""
        row = self._rows.get((name, b, h, i))
        if row is None:
            if len(self._rows) >= MOST_ROWS:
                self._rows.clear()
            row = self._rows[name, b, h, i] = self.rows(name, b, h, i, i + 1)[0]
        return row

    def _recompute(self, name: str, b: slice, h: int | None, rows: slice) -> Tensor:
        """Scores, masked scores or probabilities of some queries and one or all heads, as the explicit path does."""
        with torch.no_grad():
            group = self.sizes["H"] // self.sizes["Hkv"]
            queries = self.tensor("q_rot")[b, :, rows]
            keys = self.tensor("present_k" if "present_k" in self._values else "k_rot")[b]
            if h is None:
                keys = keys.repeat_interleave(group, dim=1)
            else:
                queries, keys = queries[:, h : h + 1], keys[:, h // group, None]
            scores = queries @ keys.transpose(-2, -1) / math.sqrt(self.sizes["Dh"])
            if name == "scores":
                return scores
            masked = scores.masked_fill(self._hidden[b][:, :, rows], -math.inf)
            if name == "masked_scores":
                return masked
            hidden = (masked == -math.inf).all(-1, keepdim=True)
            return masked.float().softmax(-1).masked_fill(hidden, 0.0).to(queries.dtype)


def _sizes(values: Mapping[str, Kept]) -> dict[str, int]:
    """Axis letter -> length, read off the tensors themselves. Raises ShapeMismatch where that is not possible."""
    sizes = {"P": 0, "E": 0, "k": 0, "F": 0}
    for name in ("resid_pre", "q", "k", "past_k", "gate", "router_logits", "expert_index", "expert_gate"):
        if name in values:
            ledger_module.check_axes(name, tuple(values[name].tensor.shape))
            sizes |= dict(zip(QUANTITIES[name].axes, values[name].tensor.shape, strict=True))
        elif name in ("resid_pre", "q", "k"):
            raise ledger_module.ShapeMismatch(
                f"The block's tap {name!r} never fired, so its sizes are not known. A block needs resid_pre, q and k."
            )
    sizes |= {"Tq": sizes["T"], "Tk": sizes["P"] + sizes["T"]}
    return sizes | {"C": sizes["H"] * sizes["Dh"], "Ckv": sizes["Hkv"] * sizes["Dh"]}
