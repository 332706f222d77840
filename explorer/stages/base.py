"""What a stage is.

Purpose: the Stage class: one of the eight steps with its equation, its tensors, its sentences and its figures.
Must not know: which stages there are, the page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from explorer.quantities import EXPERT_WEIGHT, QUANTITIES, W_ROUTER
from explorer.stages.look import Look
from explorer.stages.prose import Prose, prose
from explorer.stages.quiz import Question, questions
from explorer.stages.source import Excerpt, Lines, excerpt
from explorer.stages.terms import translated

if TYPE_CHECKING:
    from explorer.capture import Trace

Figure = dict[str, Any]


@dataclass(frozen=True)
class Stage:
    """One step of the block.

    number, key: 1–8 and the name of its texts
    equation:    MathML, with role colours as classes; equation_moe replaces it when experts are used
    inputs, weights, outputs: quantities and state_dict names in the order they are shown; a run may lack some. The
                 weights of each expert follow those of the router.
    describe:    Look -> the values that the prose asks for
    draw:        (Look, language) -> its figures
    lines:       which lines of the models ran for it (explorer.stages.source)
    """

    number: int
    key: str
    equation: str
    inputs: tuple[str, ...]
    weights: tuple[str, ...]
    outputs: tuple[str, ...]
    describe: Callable[[Look], Mapping[str, Any]] = field(repr=False)
    draw: Callable[[Look, str], list[Figure]] = field(repr=False)
    lines: tuple[Lines, ...] = field(default=(), repr=False)
    equation_moe: str = ""

    def text(self, lang: str = "en") -> Prose:
        """Title, facts, mixes and notice in one language. Raises LookupError."""
        return prose(self.key, lang)

    @property
    def title(self) -> str:
        """Its English name."""
        return self.text().title

    @property
    def mixes(self) -> str:
        """Which axes mix and which do not, English HTML."""
        return self.text().mixes

    @property
    def notice(self) -> str:
        """What to notice, English HTML."""
        return self.text().notice

    def equation_in(self, lang: str = "en", moe: bool = False) -> str:
        """Its equation, or the one with experts where it has one, with its words in another language."""
        if moe and self.equation_moe:
            return translated(self.equation_moe, f"{self.key}.moe", lang)
        return translated(self.equation, self.key, lang)

    def facts(self, trace: Trace, b: int = 0, h: int = 0, t: int | None = None, lang: str = "en") -> list[str]:
        """Short sentences with the current numbers of one token (the last when t is None), as safe HTML."""
        return self.text(lang).fill(self.describe(Look.at(trace, b, h, t)))

    def figures(self, trace: Trace, b: int = 0, h: int = 0, lang: str = "en") -> list[Figure]:
        """Its figures: {"id", "title", "text", "data", "layout"} each."""
        return self.draw(Look.at(trace, b, h), lang)

    def panels(self, trace: Trace) -> dict[str, tuple[str, ...]]:
        """{"input", "weights", "output"} -> the names that this run has and that add something.

        Without a cache, the keys and values "of all tokens" are those of this call and are left out; with one, a
        stage that reads all of them does not list those of this call beside them.
        """
        skip = {"past_k", "past_v", "present_k", "present_v"} if trace.sizes["P"] == 0 else set()
        parts = {QUANTITIES[n].alias for n in self.inputs if n in trace and n not in skip}
        experts = filter(EXPERT_WEIGHT.fullmatch, trace.weights) if W_ROUTER in self.weights else ()
        return {
            "input": tuple(n for n in self.inputs if n in trace and n not in skip | parts),
            "weights": (*(n for n in self.weights if n in trace.weights), *experts),
            "output": tuple(n for n in self.outputs if n in trace and n not in skip),
        }

    def questions(
        self, trace: Trace, b: int = 0, h: int = 0, t: int | None = None, lang: str = "en", seed: int = 0
    ) -> list[Question]:
        """Questions about this stage of this run, one of each kind that can be asked, each with four answers."""
        outputs = self.panels(trace)["output"]
        return questions(Look.at(trace, b, h, t), self.number, outputs, seed, lang)

    @property
    def code(self) -> tuple[Excerpt, ...]:
        """The lines of MiniMind's block and of the course's model for this stage, read from the source."""
        return tuple(excerpt(lines) for lines in self.lines)

    def ran(self, trace: Trace) -> tuple[int, ...]:
        """Places in `code` of the lines that this run went through: dense or experts, explicit or flash attention.

        A page that has `code` already needs only these.
        """
        ways = {"", "moe" if trace.moe else "dense", "flash" if trace.recomputed else "explicit"}
        return tuple(n for n, lines in enumerate(self.lines) if lines.when in ways)

    def code_that_ran(self, trace: Trace) -> tuple[Excerpt, ...]:
        """Those lines themselves."""
        return tuple(self.code[n] for n in self.ran(trace))
