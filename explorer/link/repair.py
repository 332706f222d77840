"""The largest valid RunSpec among the parts of a link.

Purpose: leave out what does not fit, keep the rest, and say which part was left out and why.
Must not know: the syntax of links.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from explorer.link.keys import KEYS
from explorer.messages import say
from explorer.offers import OFFERS
from explorer.spec import Edit, RunSpec, SpecError
from explorer.typed import read_field, shown

# Where an error names a field that the link does not hold, one of these made it so: the first that mends it goes.
SUSPECTS = (
    "d_h", "d_model", "h", "h_kv", "d_ff", "padding", "past", "T", "B", "experts_per_token", "experts", "attention",
    "qk_norm", "layer", "text", "weights",
)  # fmt: skip
AS_IT_IS = ("weights", "text")  # a name and a text are taken letter for letter, blanks included


@dataclass
class Parts:
    """What a link holds of a run, losing what does not fit; `notes` gets one sentence for each part lost."""

    typed: dict[str, str]
    edits: list[Edit]
    switches: list[str]
    notes: list[str] = field(default_factory=list)

    def largest_valid(self) -> RunSpec:
        """The spec that is left. Every round of errors loses at least one part, so this ends."""
        while errors := self.errors():
            held = self.count()
            self._lose_edits(errors)
            self._lose_switches(errors)
            for name in [name for name in errors if name in self.typed]:
                self._lose(name, errors[name])
            if self.count() == held:
                self._lose_suspect(errors)
        spec = self.parse(self.typed, self.edits, self.switches)
        self._lose_dictated(spec)
        return spec

    def count(self) -> int:
        return len(self.typed) + len(self.edits) + len(self.switches)

    @staticmethod
    def parse(typed: dict[str, str], edits: list[Edit], switches: list[str]) -> RunSpec:
        as_it_is = {name: typed[name] for name in AS_IT_IS if name in typed}
        rest = {name: text for name, text in typed.items() if name not in AS_IT_IS}
        return RunSpec.parse(rest, edits=tuple(edits), switches=tuple(switches), **as_it_is)

    def errors(self, without: str = "") -> dict[str, str]:
        """What is wrong with the parts held, or with them when one field is left out."""
        typed = {name: text for name, text in self.typed.items() if name != without}
        try:
            self.parse(typed, self.edits, self.switches)
        except SpecError as error:
            return error.errors
        return {}

    def _lose(self, name: str, message: str) -> None:
        given = shown(self.typed.pop(name))
        self.notes.append(
            say("The link's {key} = {value} was ignored. {reason}", key=KEYS[name], value=given, reason=message)
        )

    def _lose_dictated(self, spec: RunSpec) -> None:
        """What the link says otherwise than its checkpoint, which has the last word."""
        dictated = OFFERS[spec.checkpoint].fields if spec.checkpoint in OFFERS else {}
        for name in [name for name in dictated if self.typed.get(name, "").strip()]:
            if read_field(name, self.typed[name]) != dictated[name]:
                self._lose(name, say("The checkpoint has its own."))

    def _lose_edits(self, errors: dict[str, str]) -> None:
        kept = []
        for n, edit in enumerate(self.edits):
            message = errors.get(f"edits.{n}", errors.get("edits"))
            if message is None:
                kept.append(edit)
            else:
                self.notes.append(
                    say("The link's edit {edit} was ignored. {reason}", edit=shown(edit.label()), reason=message)
                )
        self.edits = kept

    def _lose_switches(self, errors: dict[str, str]) -> None:
        """Of the switches, those that are wrong by themselves; all where only together they are."""
        if "switches" not in errors:
            return
        alone = {text: self._switch_error([text]) for text in self.switches}
        if not any(alone.values()):
            alone = dict.fromkeys(self.switches, errors["switches"])
        for text, message in alone.items():
            if message:
                self.notes.append(
                    say("The link's switch {switch} was ignored. {reason}", switch=shown(text), reason=message)
                )
        self.switches = [text for text in self.switches if not alone[text]]

    def _switch_error(self, switches: list[str]) -> str:
        try:
            self.parse(self.typed, [], switches)
        except SpecError as error:
            return error.errors.get("switches", "")
        return ""

    def _lose_suspect(self, errors: dict[str, str]) -> None:
        """No part held carries the error's name: lose the first that mends it, or all that could have caused it."""
        name, message = next(iter(errors.items()))
        suspects = [suspect for suspect in SUSPECTS if suspect in self.typed]
        guilty = next((suspect for suspect in suspects if name not in self.errors(without=suspect)), None)
        for suspect in [guilty] if guilty else suspects or list(self.typed):
            self._lose(suspect, message)
        if not (guilty or suspects or self.typed):
            self.edits, self.switches = [], []
            self.notes.append(say("The link's edits and switches were ignored. {reason}", reason=message))
