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
from numpy.typing import NDArray
from torch import Tensor, nn

from explorer.capture import ledger as ledger_module
from explorer.expression import Expr
from explorer.quantities import QUANTITIES, SCORE_TAPS, unknown_name

if TYPE_CHECKING:
    from explorer.spec import RunSpec

Array = NDArray[Any]


class StaleValue(RuntimeError):
    """A captured tensor was changed in place after it was captured."""


class Kept:
    """A tensor by reference and the version it had."""

    __slots__ = ("tensor", "version")

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.version = 0 if tensor.is_inference() else tensor._version

    def read(self, name: str) -> Tensor:
        """The tensor. Raises StaleValue when it was changed since."""
        now = 0 if self.tensor.is_inference() else self.tensor._version
        if now != self.version:
            raise StaleValue(
                f"{name} was changed in place after it was captured (version {self.version}, now {now}). "
                "Record again, and read values before changing the model."
            )
        return self.tensor


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
        masked: Tensor,
        block: nn.Module,
        spec: RunSpec | None = None,
    ) -> None:
        self._values = dict(values)
        self._before = dict(before)
        self._weights = dict(weights)
        self._masked = masked
        self._arrays: dict[str, Array] = {}
        self.spec = spec
        self.tokens: tuple[tuple[str, ...], ...] | None = None
        self.norm_eps = float(getattr(getattr(block, "input_layernorm", None), "eps", 1e-6))
        self.norm_topk = bool(getattr(getattr(block, "mlp", None), "normalise", True))
        self.recomputed = frozenset(SCORE_TAPS) - self._values.keys()
        self.sizes = _sizes(self._values)
        self.weights: Mapping[str, Array] = _Weights(self._weights)
        ledger_module.check_shapes({n: tuple(k.tensor.shape) for n, k in self._values.items()}, self.sizes)

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
        """The quantities that an edit or a switch replaced."""
        return tuple(self._before)

    @cached_property
    def masked(self) -> Array:
        return _frozen(self._masked.cpu().numpy())

    def __contains__(self, name: object) -> bool:
        return name in self._values or name in self.recomputed

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __getitem__(self, name: str) -> Array:
        """The whole quantity. Raises UnknownName, StaleValue."""
        if name not in self._arrays:
            tensor = self.tensor(name)
            self._arrays[name] = _to_numpy(tensor)
        return self._arrays[name]

    def tensor(self, name: str) -> Tensor:
        """The captured tensor itself; do not change it."""
        if name in self._values:
            return self._values[name].read(name)
        if name in self.recomputed:
            return self._recompute(name, slice(None), slice(None), slice(None))
        raise unknown_name(name, list(self.names))

    def rows(self, name: str, b: int, h: int, start: int = 0, stop: int | None = None) -> Array:
        """Query rows start..stop of scores, masked_scores or probs for one batch row and head, [rows, Tk].

        Recomputed from q_rot, the keys and the mask when the run took the flash path.
        """
        if name in self._values:
            part = self._values[name].read(name)[b, h, start:stop]
        else:
            part = self._recompute(name, slice(b, b + 1), slice(h, h + 1), slice(start, stop))[0, 0]
        return _to_numpy(part.clone())

    def before(self, name: str) -> Array:
        """What the block computed for `name` before an edit replaced it (the quantity itself when none did)."""
        return _to_numpy(self._before[name].read(name)) if name in self._before else self[name]

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
        """The dtype the block computed it in, for example "bfloat16"."""
        kept = self._values.get(name) or self._values["q_rot"]
        return str(kept.tensor.dtype).removeprefix("torch.")

    @property
    def device(self) -> str:
        return str(next(iter(self._values.values())).tensor.device)

    @property
    def nbytes(self) -> int:
        """Bytes kept alive by this trace, weights not counted."""
        return sum(k.tensor.nbytes for k in (*self._values.values(), *self._before.values()))

    def ledger(self) -> list[ledger_module.LedgerRow]:
        """One row a quantity: names, symbolic and actual shape, dtype, bytes, FLOPs. Raises ShapeMismatch."""
        return ledger_module.ledger(self)

    def value(self, name: str, index: tuple[int, ...]) -> float:
        """One number; "masked" and weights are found as well."""
        if name == "masked":
            return float(self.masked[index])
        if name in self._weights:
            return float(self.weights[name][index])
        if name in self.recomputed and name not in self._arrays:
            b, h, i, j = index
            return float(self.rows(name, b, h, i, i + 1)[0, j])
        if name in ("present_k", "present_v") and name not in self._values:
            name = QUANTITIES[name].alias
        return float(self[name][index])

    def explain(self, name: str, index: tuple[int, ...]) -> Expr:
        """How that cell was made from other cells (before an edit replaced it)."""
        if name not in self:
            raise unknown_name(name, list(self.names))
        formula = QUANTITIES[name].formula
        if formula is None:
            raise ValueError(f"{name} is given to the block; nothing in the block computes it.")
        return formula(self, *index)

    def figure(self, name: str, **choices: int) -> Any:
        """A plotly Figure of this run, for example trace.figure("attention", b=0, h=1)."""
        from importlib import import_module

        return import_module("explorer.stages.figures").figure(self, name, **choices)

    def _recompute(self, name: str, b: slice, h: slice, rows: slice) -> Tensor:
        """Scores, masked scores or probabilities of some queries, as the explicit path computes them."""
        with torch.no_grad():
            queries = self._values["q_rot"].read("q_rot")[b, h, rows]
            keys = self._values["present_k" if "present_k" in self._values else "k_rot"].read("present_k")
            group = self.sizes["H"] // self.sizes["Hkv"]
            keys = keys.repeat_interleave(group, dim=1)[b, h]
            scores = queries @ keys.transpose(-2, -1) / math.sqrt(self.sizes["Dh"])
            if name == "scores":
                return scores
            masked = scores.masked_fill(self._masked[b][:, :, rows], -math.inf)
            if name == "masked_scores":
                return masked
            hidden = (masked == -math.inf).all(-1, keepdim=True)
            return masked.float().softmax(-1).masked_fill(hidden, 0.0).to(queries.dtype)


class _Weights(Mapping[str, Array]):
    """Weights by state_dict name, converted when asked for."""

    def __init__(self, kept: Mapping[str, Kept]) -> None:
        self._kept = kept
        self._arrays: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        if name not in self._kept:
            raise unknown_name(name, list(self._kept))
        if name not in self._arrays:
            self._arrays[name] = _to_numpy(self._kept[name].read(name))
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)


def _sizes(values: Mapping[str, Kept]) -> dict[str, int]:
    """Axis letter -> length, read off the tensors themselves."""
    sizes = {"P": 0, "E": 0, "k": 0, "F": 0}
    for name in ("resid_pre", "q", "k", "past_k", "gate", "router_logits", "expert_index", "expert_gate"):
        if name in values:
            sizes |= dict(zip(QUANTITIES[name].axes, values[name].tensor.shape, strict=True))
    sizes |= {"Tq": sizes["T"], "Tk": sizes["P"] + sizes["T"]}
    return sizes | {"C": sizes["H"] * sizes["Dh"], "Ckv": sizes["Hkv"] * sizes["Dh"]}


def _to_numpy(tensor: Tensor) -> Array:
    tensor = tensor.detach()
    tensor = tensor.float() if tensor.is_floating_point() else tensor.long()
    return _frozen(tensor.cpu().numpy().copy())


def _frozen(array: Array) -> Array:
    array = np.ascontiguousarray(array)
    array.setflags(write=False)
    return array
