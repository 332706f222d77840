"""What quantities, weights, switches and axes are called, and the words in equations, by language.

Purpose: `title` and `meaning`. English stands in the tables (explorer.quantities, axes, switches); other languages in
`terms.md` beside their stages' texts.
Must not know: the page.

Keys of `terms.md`: the name of a quantity, weight or switch; `expert` before a weight's own title for one of several
experts; `q_norm: passed on` where there is no such norm; `axis B`; `equation: words` for words inside an equation;
`alt: stage` for what an equation says in plain text.
"""

from __future__ import annotations

import re
from functools import cache
from html import escape, unescape
from typing import TYPE_CHECKING

from explorer.axes import AXES
from explorer.draw.words import Words, entries
from explorer.quantities import EXPERT_WEIGHT, QUANTITIES, WEIGHTS, unknown_name, weight_of
from explorer.stages.prose import HERE, languages
from explorer.switches import KINDS

if TYPE_CHECKING:
    from explorer.capture import Trace

ENGLISH = "en"
PASSED_ON = {
    "q_norm": "queries, passed on unchanged: no q/k norm here",
    "k_norm": "keys, passed on unchanged: no q/k norm here",
}
INSIDE = re.compile(r"(?<=<mtext>)[^<]*(?=</mtext>)")
ALT = re.compile(r'(?<=alttext=")[^"]*(?=")')


@cache
def terms(lang: str) -> Words:
    """Key -> words; empty for English. Raises LookupError for a language without texts."""
    if lang not in languages():
        raise LookupError(f"There are no terms in {lang!r}. Languages: {', '.join(languages())}.")
    return {} if lang == ENGLISH else entries(HERE / lang / "terms.md")


def title(name: str, lang: str = ENGLISH) -> str:
    """A few plain words for a quantity, a weight by its state_dict name, or a switch ("no_mask", "only_head:2").

    Raises UnknownName for anything else, LookupError for a language without texts.
    """
    switch = name.partition(":")[0]
    if name not in QUANTITIES and not is_weight(name) and switch not in KINDS:
        raise unknown_name(name, [*QUANTITIES, *WEIGHTS, *KINDS])
    known = terms(lang)
    if name in known:
        return known[name]
    if of_expert := EXPERT_WEIGHT.fullmatch(name):
        number, part = of_expert.groups()
        return known["expert weight"].format(number=number, title=known[f"mlp.{part}_proj.weight"]) if known else (
            weight_of(name).title
        )  # fmt: skip
    if known:
        return known[switch]
    if switch in KINDS:
        return KINDS[switch].title
    return QUANTITIES[name].title if name in QUANTITIES else weight_of(name).title


def title_in(trace: Trace, name: str, lang: str = ENGLISH) -> str:
    """As `title`, but of queries and keys that no norm of this run touches it says so."""
    plain = not trace.qk_norm or (trace.spec is not None and "no_qk_norm" in trace.spec.switches)
    if plain and name in PASSED_ON:
        return terms(lang).get(f"{name}: passed on", PASSED_ON[name])
    return title(name, lang)


def is_weight(name: str) -> bool:
    """Whether a weight can have this name."""
    return name in WEIGHTS or EXPERT_WEIGHT.fullmatch(name) is not None


def meaning(letter: str, lang: str = ENGLISH) -> str:
    """What one step along an axis is, for example "one query head". Raises KeyError for an unknown letter."""
    return terms(lang)[f"axis {letter}"] if terms(lang) else AXES[letter].meaning


def translated(equation: str, key: str, lang: str = ENGLISH) -> str:
    """A stage's MathML with its words and its plain text in another language. key: "score" or "feed_forward.moe"."""
    known = terms(lang)
    if not known or not equation:
        return equation
    inside = INSIDE.sub(lambda m: escape(known.get(f"equation: {unescape(m[0])}", unescape(m[0]))), equation)
    return ALT.sub(lambda m: escape(known.get(f"alt: {key}", unescape(m[0]))), inside)
