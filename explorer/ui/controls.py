"""The settings panel, declared: which RunSpec fields it shows, in which groups, as which kind of field.

Purpose: a new field is one line here and its words in texts/.
Must not know: how a field is drawn, what a field does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from explorer import device
from explorer.offers import OFFERS
from explorer.spec import CHECKPOINT_PREFIX, RunSpec
from explorer.typed import FLAG, OPTIONAL, WHOLE
from explorer.ui.symbols import symbol_html
from explorer.validation import ATTENTION_PATHS, DTYPES

MAY_BE_EMPTY = {*OPTIONAL, "padding", "text"}
OF_CHECKPOINT, OF_EXPERTS = {"layer", "text"}, {"experts_per_token", "norm_topk"}


@dataclass(frozen=True)
class Field:
    """One RunSpec field. symbol: LaTeX; step: what an arrow key adds; options: the choices of a list."""

    name: str
    symbol: str = ""
    step: float = 1
    least: float | None = None
    options: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """How it is typed: whole, real, list (of whole numbers), text (several lines), choice or flag."""
        if self.options:
            return "choice"
        special = {"padding": "list", "text": "text"}
        return special.get(self.name) or ("flag" if self.name in FLAG else "whole" if self.name in WHOLE else "real")

    @property
    def optional(self) -> bool:
        """Whether an empty field is fine: the value then follows from others, or nothing is meant."""
        return self.name in MAY_BE_EMPTY


@dataclass(frozen=True)
class Group:
    """Fields under one title. folds: whether it can be closed, and starts so."""

    name: str
    fields: tuple[Field, ...]
    folds: bool = field(default=False)


GROUPS: tuple[Group, ...] = (
    Group("sizes", (
        Field("B", "B", least=1), Field("T", "T", least=1), Field("d_model", r"d_\mathrm{model}", least=1),
        Field("h", "h", least=1), Field("h_kv", r"h_\mathrm{kv}", least=1), Field("d_h", "d_h", step=2, least=2),
        Field("d_ff", r"d_\mathrm{ff}", least=1),
    )),
    Group("weights", (
        Field("weights", options=("toy", "random")), Field("seed", least=0), Field("layer", least=0), Field("text"),
    )),
    Group("positions", (
        Field("angle_step", r"\theta", step=0.1), Field("rope_theta", "b", step=1000, least=0), Field("yarn"),
    )),
    Group("norms", (Field("qk_norm"), Field("norm_eps", r"\varepsilon", step=1e-6, least=0)), folds=True),
    Group("cache", (Field("past", "P", least=0), Field("padding")), folds=True),
    Group("experts", (
        Field("experts", "E", least=0), Field("experts_per_token", "k", least=1), Field("norm_topk"),
    ), folds=True),
    Group("runtime", (
        Field("attention", options=ATTENTION_PATHS), Field("dtype", options=DTYPES),
        Field("device", options=("auto",)),
    ), folds=True),
)  # fmt: skip
FIELDS = {about.name: about for group in GROUPS for about in group.fields}


def declarations(texts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The groups as the page builds them."""

    def declared(about: Field) -> dict[str, Any]:
        return {
            "name": about.name, "kind": about.kind, "label": texts[f"field_{about.name}"], "step": about.step,
            "least": about.least, "symbol": symbol_html(about.symbol) if about.symbol else "",
            "hint": texts.get(f"hint_{about.name}", ""), "options": _options(about, texts),
            "why": {"dictated": texts["dictated"], "idle": texts["idle_experts"]},
        }  # fmt: skip

    return [
        {"name": group.name, "title": texts[f"control_{group.name}"], "folds": group.folds,
         "fields": [declared(about) for about in group.fields]}
        for group in GROUPS
    ]  # fmt: skip


def _options(about: Field, texts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(value, words) of a list: what this server has, and for a flag on, off and, where it may be left open, that."""
    if about.kind == "flag":
        left_open = [("", texts["auto"])] if about.optional else []
        return [*left_open, ("true", texts["on"]), ("false", texts["off"])]
    names = about.options
    if about.name == "device":
        names = ("auto", *device.available())
    elif about.name == "weights":
        names = (*names, *(CHECKPOINT_PREFIX + name for name in OFFERS))
    return [(name, _words_for(name, texts)) for name in names]


def _words_for(choice: str, texts: Mapping[str, Any]) -> str:
    if choice.startswith(CHECKPOINT_PREFIX):
        name = choice.removeprefix(CHECKPOINT_PREFIX)
        return str(texts["choice_checkpoint"]).format(name=name, layers=OFFERS[name].layers)
    return str(texts.get(f"choice_{choice}", choice))


def shown_values(spec: RunSpec) -> dict[str, Any]:
    """What each field of the panel says: an optional field that was left open stays empty."""
    return {name: _shown(name, getattr(spec, name)) for name in FIELDS}


def _shown(name: str, value: Any) -> Any:
    if name in FLAG:
        return "" if value is None else str(value).lower()
    if name == "padding":
        return " ".join(map(str, value))
    return "" if value is None else value


def derived(spec: RunSpec) -> dict[str, Any]:
    """What an empty optional field stands for, as its placeholder."""
    return {"h_kv": spec.kv_heads, "d_h": spec.head_dim, "d_ff": spec.ffn_width, "angle_step": spec.step,
            "padding": " ".join("0" * min(spec.B, 4))}  # fmt: skip


def states(spec: RunSpec) -> dict[str, str]:
    """Field -> "dictated" (by the checkpoint), "idle" (nothing depends on it now) or "absent" (of no use here)."""
    if spec.checkpoint in OFFERS:
        found = dict.fromkeys(OFFERS[spec.checkpoint].fields, "dictated") | {"seed": "absent"}
    else:
        found = dict.fromkeys(sorted(OF_CHECKPOINT), "absent")
    if not spec.experts:
        found |= dict.fromkeys(sorted(OF_EXPERTS), "idle")
    return {name: state for name, state in found.items() if name in FIELDS}
