"""The exercises' texts: Markdown files of named entries, one an exercise and language.

Purpose: an entry with its placeholders filled, as safe HTML. `common.md` holds what several exercises say.
Must not know: which exercises there are. What a learner typed is never put into a text.

Form of a file: as in explorer.draw.words; inside an entry the marks of explorer.stages.prose.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from explorer.axes import AXES
from explorer.draw.numbers import WRITER
from explorer.draw.words import entries, join
from explorer.inspector import mathml, symbol
from explorer.quantities import QUANTITIES, weight_of
from explorer.stages.prose import marked

HERE = Path(__file__).parent
COMMON = "common"


@cache
def known(name: str, lang: str) -> dict[str, str]:
    """Key -> template as HTML; the exercise's own take the place of common ones. Raises OSError for a missing file."""
    return {key: marked(text) for file in (COMMON, name) for key, text in entries(HERE / lang / f"{file}.md").items()}


@dataclass(frozen=True)
class Texts:
    """The texts of one exercise in one language."""

    name: str
    lang: str

    def say(self, key: str, /, **values: Any) -> str:
        """An entry as HTML; values that are text are HTML already. Raises KeyError or ValueError as WRITER does."""
        return WRITER.write(known(self.name, self.lang)[key], values)

    def listed(self, parts: Iterable[str]) -> str:
        """Parts one after another, as this language separates them."""
        return join(self.lang, "items", list(parts))


def symbol_of(name: str) -> str:
    """The symbol of a quantity or weight in its role's colour, HTML."""
    role = QUANTITIES[name].role if name in QUANTITIES else weight_of(name).role
    return f'<span class="role-{role}">{mathml(symbol(name))}</span>'


def axis(letter: str) -> str:
    """An axis as HTML: "d_model" -> d with a lowered "model"."""
    name, _, low = AXES[letter].symbol.partition("_")
    return f"<i>{name}</i>" + (f"<sub>{low}</sub>" if low else "")


def times(lengths: Iterable[object]) -> str:
    """2×3×5×4."""
    return "×".join(map(str, lengths))
