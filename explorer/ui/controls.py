"""The settings panel, declared: which RunSpec fields it shows, in which groups, as which kind of field.

Purpose: a new field is one line here and its words in texts/.
Must not know: how a field is drawn, what a field does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from explorer.spec import RunSpec
from explorer.typed import FLAG, OPTIONAL, WHOLE
from explorer.ui.symbols import symbol_html


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
        return "choice" if self.options else "flag" if self.name in FLAG else "whole" if self.name in WHOLE else "real"

    @property
    def optional(self) -> bool:
        """Whether an empty field is fine: the value then follows from others."""
        return self.name in OPTIONAL


GROUPS: tuple[tuple[str, tuple[Field, ...]], ...] = (
    ("sizes", (
        Field("B", "B", least=1), Field("T", "T", least=1), Field("d_model", r"d_\mathrm{model}", least=1),
        Field("h", "h", least=1), Field("h_kv", r"h_\mathrm{kv}", least=1), Field("d_h", "d_h", step=2, least=2),
        Field("d_ff", r"d_\mathrm{ff}", least=1),
    )),
    ("positions", (Field("angle_step", r"\theta", step=0.1),)),
    ("weights", (Field("weights", options=("toy", "random")), Field("seed", least=0), Field("qk_norm"))),
)  # fmt: skip
FIELDS = {field.name: field for _, fields in GROUPS for field in fields}


def declarations(texts: dict[str, Any]) -> list[dict[str, Any]]:
    """The groups as the page builds them."""

    def field(about: Field) -> dict[str, Any]:
        return {
            "name": about.name, "kind": about.kind, "label": texts[f"field_{about.name}"], "step": about.step,
            "least": about.least, "symbol": symbol_html(about.symbol) if about.symbol else "",
            "hint": texts.get(f"hint_{about.name}", ""), "auto_text": texts["auto"],
            "on_text": texts["on"], "off_text": texts["off"],
            "options": [(option, texts[f"choice_{option}"]) for option in about.options],
        }  # fmt: skip

    return [{"title": texts[f"control_{name}"], "fields": [field(f) for f in fields]} for name, fields in GROUPS]


def shown_values(spec: RunSpec) -> dict[str, Any]:
    """What each field of the panel says: an optional field that was left open stays empty."""
    values = {name: getattr(spec, name) for name in spec.given() if name not in ("edits", "switches", "padding")}
    if spec.padding:
        values["padding"] = " ".join(map(str, spec.padding))
    values |= {name: getattr(spec, name) for name in FIELDS}
    return {name: "" if value is None else str(value).lower() if value in (True, False) and name in FLAG else value
            for name, value in values.items()}  # fmt: skip


def derived(spec: RunSpec) -> dict[str, float]:
    """What an empty optional field stands for."""
    return {"h_kv": spec.kv_heads, "d_h": spec.head_dim, "d_ff": spec.ffn_width, "angle_step": spec.step}
