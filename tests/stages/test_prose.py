"""Prose: small Markdown to safe HTML, strict placeholders, and every language complete."""

from __future__ import annotations

import re

import pytest

from explorer import run
from explorer.stages import STAGES
from explorer.stages.checks import norm_comparison, softmax_check
from explorer.stages.look import Look
from explorer.stages.prose import HERE, Prose, ProseError, languages, marked, parse, prose
from tests.stages.cases import SPECS, recorded

TEXT = """# A <title>
## Facts
- Plain {x} and {v:.1f}.
- [moe] Only with experts: {e}.
- [!moe] Only without,
  on two lines.
## Mixes
**All** of it.
## Notice
Look at [Q](q).
"""


def test_parse_and_fill() -> None:
    text = parse(TEXT)
    assert text.title == "A &lt;title&gt;"
    assert text.mixes == "<b>All</b> of it."
    assert text.notice == 'Look at <span class="role-q">Q</span>.'
    assert text.fill({"x": 1 / 3, "v": [1, -2], "moe": False}) == [
        "Plain 0.3333 and (1.0, −2.0).",
        "Only without, on two lines.",
    ]
    assert text.fill({"x": 1, "v": [1.0], "moe": True, "e": 2})[1] == "Only with experts: 2."
    assert text.names() == {"x", "v", "e", "moe"}


def test_marks() -> None:
    html = marked("d~h~ is `a < b` & [O~attn~](attn) **{x}** [not](a-role)")
    assert html == (
        'd<sub>h</sub> is <code>a &lt; b</code> &amp; <span class="role-attn">O<sub>attn</sub></span> '
        "<b>{x}</b> [not](a-role)"
    )


def test_text_values_are_escaped() -> None:
    text = parse("# T\n## Facts\n- {s}\n## Mixes\nm\n## Notice\nn\n")
    assert text.fill({"s": "<script>&"}) == ["&lt;script&gt;&amp;"]


def test_what_does_not_fit_is_refused() -> None:
    text = parse(TEXT)
    with pytest.raises(ProseError, match="No value fills v in"):
        text.fill({"x": 1, "moe": False})
    with pytest.raises(ProseError, match="No value 'moe' decides"):
        text.fill({"x": 1, "v": [1]})
    with pytest.raises(ProseError, match="needs a title and the parts"):
        parse("# T\n## Facts\n- a\n## Mixes\nb\n", "x.md")
    with pytest.raises(LookupError, match=r"'xx'.*en"):
        prose("normalize", "xx")


CHECKS = ("softmax_check", "norm_comparison")
KEYS = (*(stage.key for stage in STAGES), *CHECKS)


@pytest.mark.parametrize("lang", languages())
def test_every_language_has_every_text_and_no_other(lang: str) -> None:
    assert {path.stem for path in (HERE / lang).glob("*.md")} - {"questions", "terms"} == set(KEYS)


@pytest.mark.parametrize("lang", languages())
@pytest.mark.parametrize("key", KEYS)
def test_languages_ask_for_the_same_values(lang: str, key: str) -> None:
    assert prose(key, lang).names() == prose(key).names()


def asked_and_given() -> dict[str, tuple[set[str], set[str]]]:
    """Stage key -> what its text asks for, and what `describe` gives over all kinds of runs."""
    given: dict[str, set[str]] = {stage.key: set() for stage in STAGES}
    for spec in SPECS.values():
        look = Look.at(run(spec))
        for stage in STAGES:
            given[stage.key] |= stage.describe(look).keys()
    return {stage.key: (stage.text().names(), given[stage.key]) for stage in STAGES}


def test_no_placeholder_without_a_value_and_no_value_without_a_placeholder() -> None:
    for key, (asked, given) in asked_and_given().items():
        assert asked == given, f"{key}: only asked {asked - given}, only given {given - asked}"


def test_every_sentence_is_said_in_some_run() -> None:
    said: dict[str, set[str]] = {stage.key: set() for stage in STAGES}
    for trace in (*map(run, SPECS.values()), recorded(), recorded(1.25)):
        look = Look.at(trace)
        for stage in STAGES:
            values = stage.describe(look)
            said[stage.key] |= {fact.template for fact in stage.text().facts if fact.shown(values)}
    for stage in STAGES:
        unsaid = {fact.template for fact in stage.text().facts} - said[stage.key]
        assert not unsaid, f"{stage.key}: no run says {unsaid}"


def test_the_checks_fill_their_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, set[str]] = {}
    fill = Prose.fill

    def watch(self: Prose, values: dict[str, object]) -> list[str]:
        given.setdefault(self.title, set()).update(values)
        return fill(self, values)

    monkeypatch.setattr(Prose, "fill", watch)
    softmax_check()
    norm_comparison([1, 2])
    for key in CHECKS:
        assert given[prose(key).title] == prose(key).names()


@pytest.mark.parametrize("lang", languages())
@pytest.mark.parametrize("name", SPECS)
def test_facts_of_every_run_are_short_balanced_html(name: str, lang: str) -> None:
    trace = run(SPECS[name])
    for stage in STAGES:
        facts = stage.facts(trace, lang=lang)
        assert 2 <= len(facts) <= 4, (stage.key, facts)
        for fact in facts:
            assert len(re.sub(r"<[^>]+>", "", fact)) < 420, fact
            assert not re.search(r"[{}]|\bnan\b|\binf\b|None|True|False|(?<![\w−])-\d", fact), fact
            opened = re.findall(r"<(\w+)", fact)
            assert sorted(opened) == sorted(re.findall(r"</(\w+)>", fact)), fact
            assert set(opened) <= {"b", "span", "sub", "code"}
