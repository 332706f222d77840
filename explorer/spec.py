"""What to run: a frozen, validated description that the page, links, notebook, command line and API all share.

Purpose: RunSpec (sizes, weights, positions, cache, edits, device) and Edit, with errors that help.
Must not know: torch, how the block is computed, gradio.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from operator import index
from typing import Any

from explorer.axes import actual_shape
from explorer.limits import LIMITS
from explorer.messages import said, say
from explorer.offers import OFFERS
from explorer.quantities import QUANTITIES, SCORE_TAPS, weight_of
from explorer.switches import parse_switch
from explorer.typed import WHOLE, read_field, shown
from explorer.validation import check_choices, check_rest, check_sizes, check_types

CHECKPOINT_PREFIX = "checkpoint:"
MOST_AXES = 4


class SpecError(ValueError):
    """A RunSpec that cannot be run. `errors` maps a field to one sentence: given, allowed, what to do."""

    def __init__(self, errors: Mapping[str, str]) -> None:
        self.errors = dict(errors)
        super().__init__(" ".join(self.errors.values()))

    def __reduce__(self) -> tuple[type[SpecError], tuple[dict[str, str]]]:
        return type(self), (self.errors,)


@dataclass(frozen=True)
class Edit:
    """One thing set by hand: after `target` is computed, the cells at `index` take `value`, and the block goes on.

    target: a quantity (explorer.quantities.QUANTITIES) or a weight by its state_dict name
    index:  one entry an axis, heads first; None stands for every position; () means the whole tensor
    value:  a number, or for the whole tensor a nested tuple of its shape
    on:     False keeps the edit in the list without applying it
    """

    target: str
    index: tuple[int | None, ...] = ()
    value: float | tuple[Any, ...] = 0.0
    on: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", tuple(map(_whole, _listed(self.index))))
        object.__setattr__(self, "value", _frozen(self.value))

    def label(self) -> str:
        """For example "resid_pre[0, 0, 1] = 2"."""
        where = "[" + ", ".join(":" if i is None else str(i) for i in self.index) + "]" if self.index else ""
        if isinstance(self.value, float):
            return f"{self.target}{where} = {self.value:.6g}"
        return say("{target} = given values", target=self.target + where)


@dataclass(frozen=True)
class RunSpec:
    """Everything that one run of one block depends on. The default is the two-token toy of the course.

    B, T, d_model, h, h_kv, d_h, d_ff: sizes; h_kv, d_h and d_ff follow from the others when None
    weights:    "toy" (all identity, a real SwiGLU solved for the course's update), "random" (drawn from `seed`)
                or "checkpoint:NAME", one that explorer.sources.offer has made known, of which block `layer` is used
    text:       what a checkpoint reads, one batch row a line; its tokens are cut to past + T, and
                explorer.sources.fit_to_text gives B, T and padding that cut none
    past:       tokens already in the cache when this call begins
    padding:    left-padded positions, one count a batch row; () for none
    angle_step: radians that feature pair 0 turns a position; rope_theta the RoPE base; yarn MiniMind's YaRN
    qk_norm:    per-head RMSNorm of queries and keys; norm_eps the ε of every RMSNorm
    experts:    0 for a dense feed-forward, else the number of experts, `experts_per_token` of them a token
    attention:  "explicit", "flash" (scores computed on demand), or "auto" (explicit while scores fit the budget)
    switches:   named what-ifs made of edits (explorer.switches)

    A checkpoint has its own d_model, h, h_kv, d_h, d_ff, qk_norm, norm_eps, rope_theta, yarn, experts,
    experts_per_token and norm_topk: they take the place of what is given, and `seed` has no effect. Other weights make
    no use of `layer` and `text`.

    Raises SpecError, naming every wrong field at once.
    """

    B: int = 1
    T: int = 2
    d_model: int = 2
    h: int = 1
    h_kv: int | None = None
    d_h: int | None = None
    d_ff: int | None = None
    weights: str = "toy"
    seed: int = 0
    layer: int = 0
    text: str = ""
    past: int = 0
    padding: tuple[int, ...] = ()
    angle_step: float | None = None
    rope_theta: float = 1e6
    yarn: bool = False
    qk_norm: bool | None = None
    norm_eps: float = 1e-6
    experts: int = 0
    experts_per_token: int = 1
    norm_topk: bool = True
    attention: str = "auto"
    dtype: str = "float32"
    device: str = "auto"
    edits: tuple[Edit, ...] = ()
    switches: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("edits", "switches", "padding"):
            object.__setattr__(self, name, _listed(getattr(self, name)))
        whole = {name: _whole(getattr(self, name)) for name in WHOLE} | {"padding": tuple(map(_whole, self.padding))}
        for name, value in whole.items():
            object.__setattr__(self, name, value)
        if not all(isinstance(edit, Edit) for edit in self.edits):
            message = say("edits takes a list of Edit, for example Edit('resid_pre', (0, 0, 1), 2.0).")
            raise SpecError({"edits": message})
        errors = check_types(self)
        if not errors and self.checkpoint in OFFERS:
            for name, value in OFFERS[self.checkpoint].fields.items():
                object.__setattr__(self, name, value)
        if not errors:
            wrong = check_sizes(self, LIMITS)
            errors = check_choices(self, LIMITS) | wrong | check_rest(self, LIMITS, wrong.keys())
        if errors:
            raise SpecError(errors)

    # What follows from the fields.

    @property
    def kv_heads(self) -> int:
        return self.h if self.h_kv is None else self.h_kv

    @property
    def head_dim(self) -> int:
        return self.d_model // self.h if self.d_h is None else self.d_h

    @property
    def ffn_width(self) -> int:
        return default_d_ff(self.d_model, self.weights) if self.d_ff is None else self.d_ff

    @property
    def step(self) -> float:
        """The angle step in force: π/2 for the toy, 1 elsewhere, unless it was given."""
        return self.angle_step if self.angle_step is not None else math.pi / 2 if self.weights == "toy" else 1.0

    @property
    def normalizes_heads(self) -> bool:
        """Whether q_norm/k_norm apply: not in the toy, everywhere else, unless it was given."""
        return self.qk_norm if self.qk_norm is not None else self.weights != "toy"

    @property
    def checkpoint(self) -> str | None:
        """The name of the checkpoint in use, or None."""
        return self.weights.removeprefix(CHECKPOINT_PREFIX) if self.weights.startswith(CHECKPOINT_PREFIX) else None

    @property
    def sizes(self) -> dict[str, int]:
        """Axis letter -> length."""
        return {
            "B": self.B, "T": self.T, "Tq": self.T, "Tk": self.past + self.T, "P": self.past, "D": self.d_model,
            "H": self.h, "Hkv": self.kv_heads, "Dh": self.head_dim, "C": self.h * self.head_dim,
            "Ckv": self.kv_heads * self.head_dim, "F": self.ffn_width, "E": self.experts, "k": self.experts_per_token,
        }  # fmt: skip

    @property
    def block_flops(self) -> int:
        """Multiplications and additions of the matrix products of one block's run; a cache is computed too."""
        n = self.sizes
        feed_forward = 3 * n["F"] * max(1, self.experts_per_token if self.experts else 1)
        projections = n["D"] * (2 * n["C"] + 2 * n["Ckv"] + feed_forward)
        return 2 * self.B * n["Tk"] * (projections + 2 * n["C"] * n["Tk"])

    @property
    def score_bytes(self) -> int:
        """What scores, masked scores and probabilities take together in float32, which a Trace keeps."""
        return 3 * 4 * self.B * self.h * self.T * (self.past + self.T)

    @property
    def explicit(self) -> bool:
        """Whether the run records scores: asked for, forced by an edit of them, or small enough."""
        if self.attention == "explicit" or self.needs_scores:
            return True
        return self.attention == "auto" and self.score_bytes <= LIMITS.score_bytes

    @property
    def needs_scores(self) -> bool:
        """Whether the flash path is out of the question: an edit of scores, a cache, padding, or one token alone."""
        return self.edits_scores or self.past > 0 or any(self.padding) or self.T == 1

    @property
    def edits_scores(self) -> bool:
        """Whether an edit or switch in force sets scores, masked_scores or probs."""
        by_edit = any(e.on and e.target in SCORE_TAPS for e in self.edits)
        return by_edit or any(parse_switch(s).sets_scores for s in self.switches)

    def shape(self, target: str) -> tuple[int, ...]:
        """The shape that a quantity or weight has under this spec. Raises UnknownName."""
        return actual_shape(axes_of(target), self.sizes)

    def with_edit(self, edit: Edit) -> RunSpec:
        """This spec with `edit` in force, in place of an earlier edit of the same cells."""
        kept = tuple(e for e in self.edits if (e.target, e.index) != (edit.target, edit.index))
        return replace(self, edits=(*kept, edit))

    def unedited(self) -> RunSpec:
        """This spec without edits and switches."""
        return replace(self, edits=(), switches=())

    def given(self) -> dict[str, Any]:
        """The fields that differ from the defaults."""
        return {f.name: v for f in fields(self) if (v := getattr(self, f.name)) != f.default}

    @classmethod
    def parse(cls, typed: Mapping[str, object], **more: Any) -> RunSpec:
        """A spec from what a person typed: text is read as the field's type, empty text or None means the default.

        Raises SpecError naming every wrong field.
        """
        values = dict(more)
        errors: dict[str, str] = {}
        known = {f.name: f for f in fields(cls)}
        for name, text in typed.items():
            if name not in known:
                errors[name] = say(
                    "There is no setting {name}. Settings: {known}.", name=shown(name), known=", ".join(known)
                )
                continue
            try:
                if text is not None and (name == "text" or not isinstance(text, str) or text.strip()):
                    values[name] = read_field(name, text)
            except ValueError as error:
                errors[name] = said(error)
        if errors:
            raise SpecError(errors)
        return cls(**values)


def axes_of(target: str) -> tuple[str, ...]:
    """The axis letters of a quantity, or of a weight as stored. Raises UnknownName."""
    return QUANTITIES[target].axes if target in QUANTITIES else weight_of(target).axes


def default_d_ff(d_model: int, weights: str) -> int:
    """The hidden width when none is given: 2 for the toy, MiniMind's ⌈π·d_model / 64⌉·64 from 64 on, else 2·d_model."""
    if weights == "toy":
        return 2
    return math.ceil(d_model * math.pi / 64) * 64 if d_model >= 64 else 2 * d_model


def _listed(value: Any) -> Any:
    """A tuple of what was given one by one or as one thing."""
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else (value,)


def _whole(entry: Any) -> Any:
    """numpy's whole numbers as Python's; anything else as it is, for validation to name."""
    with suppress(TypeError):
        return entry if isinstance(entry, bool) else index(entry)
    return entry


def _frozen(value: Any, axes: int = MOST_AXES) -> float | tuple[Any, ...]:
    """Lists and arrays as tuples, whole numbers as floats; nothing is read deeper than any quantity goes."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)) and axes:
        return tuple(_frozen(v, axes - 1) for v in value)
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value) if abs(value) < 1 << 1023 else math.inf * (1 if value > 0 else -1)
    return value  # type: ignore[no-any-return]


_PRESETS: dict[str, dict[str, Any]] = {
    "toy": {},
    "capstone": {"B": 2, "T": 5, "d_model": 12, "h": 3, "weights": "random"},
    "gqa": {"B": 1, "T": 6, "d_model": 16, "h": 4, "h_kv": 2, "weights": "random"},
    "minimind3": {"T": 64, "d_model": 768, "h": 8, "h_kv": 4, "d_h": 96, "d_ff": 2432, "weights": "random"},
}
PRESETS: dict[str, RunSpec] = {}


def fit_presets() -> None:
    """Make PRESETS those that the limits in force allow; call it again when limits were changed."""
    PRESETS.clear()
    for name, given in _PRESETS.items():
        with suppress(SpecError):
            PRESETS[name] = RunSpec(**given)


fit_presets()
