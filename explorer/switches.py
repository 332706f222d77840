"""What-ifs by name: each is a rule that replaces one quantity, written over the quantities before it.

Purpose: "no mask", "no RoPE", "one head only" and the like, as the same kind of thing as a typed-in number.
Must not know: torch modules, the page. A rule works on any array type that has the operators it uses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from explorer.messages import say


class SwitchError(ValueError):
    """A switch that does not exist or cannot be set here."""


class Values(Protocol):
    """What a rule may read: earlier tensors of this run by quantity name, and sizes by letter."""

    def __getitem__(self, name: str) -> Any: ...
    def size(self, letter: str) -> int: ...


Rule = Callable[[Values, Any, float], Any]


def _no_mask(values: Values, computed: Any, _: float) -> Any:
    return values["scores"]


def _no_rope_q(values: Values, computed: Any, _: float) -> Any:
    return values["q_norm"]


def _no_rope_k(values: Values, computed: Any, _: float) -> Any:
    return values["k_norm"]


def _no_scale(values: Values, computed: Any, _: float) -> Any:
    return computed * math.sqrt(values.size("Dh"))


def _temperature(values: Values, computed: Any, tau: float) -> Any:
    return computed / tau


def _plain_q(values: Values, computed: Any, _: float) -> Any:
    return values["q"]


def _plain_k(values: Values, computed: Any, _: float) -> Any:
    return values["k"]


def _update_only_mid(values: Values, computed: Any, _: float) -> Any:
    return values["attn_out"]


def _update_only_post(values: Values, computed: Any, _: float) -> Any:
    return values["ffn_out"]


def _uniform(values: Values, computed: Any, _: float) -> Any:
    seen = (values["masked_scores"] != -math.inf).to(computed.dtype)  # what the mask in force leaves over
    return seen / seen.sum(-1, keepdim=True).clamp(min=1)


def _one_head(values: Values, computed: Any, head: float) -> Any:
    kept = computed.new_zeros(computed.shape)
    kept[:, int(head)] = computed[:, int(head)]
    return kept


def _without_head(values: Values, computed: Any, head: float) -> Any:
    kept = computed.clone()
    kept[:, int(head)] = 0
    return kept


def _expert(values: Values, computed: Any, expert: float) -> Any:
    others = computed.clone()
    others[..., 0] = int(expert)
    for slot in range(1, computed.shape[-1]):  # a token never goes to one expert twice
        clash = others[..., slot] == int(expert)
        others[..., slot] = computed[..., 0].where(clash, others[..., slot])
    return others


@dataclass(frozen=True)
class Kind:
    """A switch without its argument.

    rules:    quantity -> how it is replaced
    argument: "" for none, "head", "expert", or "number"
    """

    name: str
    title: str
    rules: Mapping[str, Rule]
    argument: str = ""


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("no_mask", "no mask: every query sees every key", {"masked_scores": _no_mask}),
        Kind("no_rope", "no RoPE: only the mask still tells order", {"q_rot": _no_rope_q, "k_rot": _no_rope_k}),
        Kind("no_scale", "no division by √d_h", {"scores": _no_scale}),
        Kind("no_qk_norm", "no norm of queries and keys", {"q_norm": _plain_q, "k_norm": _plain_k}),
        Kind("no_first_residual", "attention replaces the stream", {"resid_mid": _update_only_mid}),
        Kind("no_second_residual", "the feed-forward replaces the stream", {"resid_post": _update_only_post}),
        Kind("uniform_attention", "every allowed key gets the same weight", {"probs": _uniform}),
        Kind("only_head", "only this head contributes", {"heads": _one_head}, "head"),
        Kind("without_head", "this head contributes nothing", {"heads": _without_head}, "head"),
        Kind("temperature", "scores divided by a temperature", {"scores": _temperature}, "number"),
        Kind("expert", "every token goes to this expert", {"expert_index": _expert}, "expert"),
    )
}


@dataclass(frozen=True)
class Switch:
    """A kind with its argument, written "no_mask", "only_head:2" or "temperature:0.5"."""

    kind: Kind
    argument: float = 0.0

    @property
    def sets_scores(self) -> bool:
        """Whether it replaces scores, masked_scores or probs, which forces the explicit path."""
        return any(name in ("scores", "masked_scores", "probs") for name in self.kind.rules)

    def check(self, sizes: Mapping[str, int]) -> None:
        """Raises SwitchError when the argument does not exist under `sizes` (keys "h" and "experts")."""
        if self.kind.argument == "head" and not 0 <= self.argument < sizes["h"]:
            raise SwitchError(
                say(
                    "{name}: there is no head {head:g}. Heads go from 0 to {last}.",
                    name=self.kind.name, head=self.argument, last=sizes["h"] - 1,
                )
            )  # fmt: skip
        if self.kind.argument == "expert":
            if not sizes["experts"]:
                raise SwitchError(say("expert: this feed-forward is dense. Choose a number of experts first."))
            if not 0 <= self.argument < sizes["experts"]:
                raise SwitchError(
                    say(
                        "expert: there is no expert {expert:g}. Experts go from 0 to {last}.",
                        expert=self.argument, last=sizes["experts"] - 1,
                    )
                )  # fmt: skip
        if self.kind.argument == "number" and not 1e-3 <= self.argument <= 1e3:
            raise SwitchError(
                say("temperature = {number:g} is out of range. It goes from 0.001 to 1000.", number=self.argument)
            )


def parse_switch(text: str) -> Switch:
    """ "only_head:2" -> Switch. Raises SwitchError."""
    name, colon, argument = text.partition(":")
    kind = KINDS.get(name)
    if kind is None:
        raise SwitchError(
            say("There is no switch {name!r}. Switches: {known}.", name=name[:40], known=", ".join(KINDS))
        )
    if bool(colon) != bool(kind.argument):
        wanted = f"{name}:{kind.argument.upper()}" if kind.argument else name
        raise SwitchError(say("Switch {text!r} is not complete. Write it as {wanted}.", text=text[:40], wanted=wanted))
    if not kind.argument:
        return Switch(kind)
    try:
        number = float(argument)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or (kind.argument != "number" and number != int(number)):
        raise SwitchError(
            say("{name}: {given!r} is not a number. Write for example {name}:1.", name=name, given=argument[:40])
        )
    return Switch(kind, number)
