"""Every language says all that English says, with the same placeholders, and nothing else."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from explorer import run
from explorer.axes import AXES
from explorer.draw import words as figure_words
from explorer.quantities import QUANTITIES, WEIGHTS, UnknownName
from explorer.stages import STAGES
from explorer.stages import prose as prose_module
from explorer.stages.prose import prose
from explorer.stages.quiz.question import texts as question_texts
from explorer.stages.terms import PASSED_ON, meaning, terms, title, title_in
from explorer.switches import KINDS
from explorer.ui import words as page_words
from tests.stages.cases import SPECS

PLOTLY = re.compile(r"%\{\{[^}]+\}\}")
CJK = re.compile(r"[一-鿿]")
PROSE = (*(stage.key for stage in STAGES), "softmax_check", "norm_comparison")
SAME = {"RMSNorm", "LayerNorm", "SiLU", "SwiGLU", "softmax", "attn", "next", "gate", "up", "down"}  # in every language


def languages() -> set[str]:
    page = {path.stem for path in page_words.HERE.glob("*.json")}
    return page | set(figure_words.languages()) | set(prose_module.languages())


OTHERS = sorted(languages() - {"en"})


def flat(texts: Mapping[str, Any]) -> dict[str, str]:
    """Nested lists as entries of their own: {"keys.0.1": text}."""

    def walk(key: str, value: Any) -> Iterator[tuple[str, str]]:
        if isinstance(value, str):
            yield key, value
        else:
            items = value.items() if isinstance(value, Mapping) else enumerate(value)
            for name, part in items:
                yield from walk(f"{key}.{name}", part)

    return {key: text for name, value in texts.items() for key, text in walk(name, value)}


def placeholders(template: str) -> list[str]:
    """Named placeholders and Plotly's own, sorted, each as often as it stands there."""
    names = [name for _, name, _, _ in string.Formatter().parse(template) if name is not None]
    return sorted(names + PLOTLY.findall(template))


def catalogues(lang: str) -> dict[str, dict[str, str]]:
    """Everything that is kept as key and text."""
    return {
        "page": flat(page_words.words(lang)), "figures": dict(figure_words.words(lang)),
        "questions": dict(question_texts(lang)),
    }  # fmt: skip


def differences(lang: str, english: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    found = [f"{lang} lacks {key}" for key in english.keys() - other.keys()]
    found += [f"{lang} has {key}, English does not" for key in other.keys() - english.keys()]
    for key in english.keys() & other.keys():
        if placeholders(english[key]) != placeholders(other[key]):
            found.append(f"{lang} {key}: {placeholders(other[key])} instead of {placeholders(english[key])}")
        if bool(english[key].strip()) != bool(other[key].strip()):
            found.append(f"{lang} {key} is empty")
    return sorted(found)


def test_the_same_languages_everywhere() -> None:
    assert {"en", "zh"} <= languages()
    assert set(figure_words.languages()) == set(prose_module.languages()) == languages()
    assert {path.stem for path in page_words.HERE.glob("*.json")} == languages()


@pytest.mark.parametrize("lang", OTHERS)
@pytest.mark.parametrize("place", ["page", "figures", "questions"])
def test_keys_and_placeholders(lang: str, place: str) -> None:
    assert differences(lang, catalogues("en")[place], catalogues(lang)[place]) == []


@pytest.mark.parametrize("lang", OTHERS)
def test_page_texts_stand_in_the_same_order(lang: str) -> None:
    """So that the two files can be read side by side."""
    assert list(page_words.words(lang)) == list(page_words.words("en"))


def test_differences_are_noticed() -> None:
    english = {"a": "{n} cells %{{x}}", "b": "text", "c": "x"}
    other = {"a": "{m} 格 %{{x}}", "b": " ", "d": "y"}
    assert differences("zh", english, other) == [
        "zh a: ['%{{x}}', 'm'] instead of ['%{{x}}', 'n']",
        "zh b is empty",
        "zh has d, English does not",
        "zh lacks c",
    ]


@pytest.mark.parametrize("lang", OTHERS)
@pytest.mark.parametrize("key", PROSE)
def test_sentences_match_one_by_one(lang: str, key: str) -> None:
    english, other = prose(key), prose(key, lang)
    assert [fact.condition for fact in other.facts] == [fact.condition for fact in english.facts]
    for one, two in zip(english.facts, other.facts, strict=True):
        assert set(placeholders(two.template)) == set(placeholders(one.template)), two.template
        assert roles(two.template) == roles(one.template), two.template
    assert roles(other.mixes + other.notice) <= roles(english.mixes + english.notice)
    assert other.title != english.title


def roles(html: str) -> set[str]:
    return set(re.findall(r'class="(role-\w+)"', html))


@pytest.mark.parametrize("lang", OTHERS)
def test_files_of_a_language(lang: str) -> None:
    here = prose_module.HERE / lang
    assert {path.name for path in here.iterdir()} == {f"{key}.md" for key in (*PROSE, "questions", "terms")}


def mtext() -> set[str]:
    return {word for stage in STAGES for moe in (False, True) for word in words_in(stage.equation_in("en", moe))}


def words_in(equation: str) -> list[str]:
    return re.findall(r"<mtext>(.*?)</mtext>", equation)


@pytest.mark.parametrize("lang", OTHERS)
def test_terms_are_complete(lang: str) -> None:
    alts = {f"alt: {stage.key}" for stage in STAGES} | {"alt: feed_forward.moe"}
    expected = {*QUANTITIES, *WEIGHTS, *KINDS, "expert weight", *(f"axis {a}" for a in AXES), *alts}
    expected |= {f"{name}: passed on" for name in PASSED_ON}
    expected |= {f"equation: {word}" for word in mtext() - SAME}
    assert terms(lang).keys() == expected


def test_titles() -> None:
    assert title("probs") == "attention probabilities"
    assert title("probs", "zh") == "注意力概率"
    assert title("mlp.experts.3.up_proj.weight") == "expert 3: up projection"
    assert title("mlp.experts.3.up_proj.weight", "zh") == "专家 3：升维投影"
    assert title("only_head:2") == title("only_head") == KINDS["only_head"].title
    assert title("temperature:0.5", "zh") == "分数除以温度"
    assert meaning("H") == "one query head"
    assert meaning("H", "zh") == "一个查询头"
    for name in (*QUANTITIES, *WEIGHTS, *KINDS):
        assert CJK.search(title(name, "zh")) and not CJK.search(title(name)), name
    with pytest.raises(UnknownName, match="No quantity or weight is named 'probz'. Did you mean 'probs'"):
        title("probz", "zh")
    with pytest.raises(LookupError, match=r"'xx'. Languages: en, zh"):
        title("probs", "xx")


def test_what_no_norm_touches_is_said_to_be_passed_on() -> None:
    toy, normed = run(SPECS["toy"]), run(SPECS["capstone"])
    assert title_in(toy, "q_norm") == "queries, passed on unchanged: no q/k norm here"
    assert title_in(toy, "k_norm", "zh") == "原样交出的键：这里没有 q/k 归一化"
    assert title_in(normed, "q_norm") == title("q_norm")
    assert title_in(toy, "q") == title("q")


def test_equations_speak_the_language() -> None:
    for stage in STAGES:
        for moe in (False, True):
            english, chinese = stage.equation_in("en", moe), stage.equation_in("zh", moe)
            assert re.sub(r"<mtext>.*?</mtext>|alttext=\".*?\"", "", english) == re.sub(
                r"<mtext>.*?</mtext>|alttext=\".*?\"", "", chinese
            )
            for one, two in zip(words_in(english), words_in(chinese), strict=True):
                assert (one == two) == (one in SAME), one
    assert STAGES[7].equation_in("en", moe=True) == STAGES[7].equation_moe
    assert STAGES[0].equation_in("en", moe=True) == STAGES[0].equation
    assert "键 j 可见" in STAGES[3].equation_in("zh")


@pytest.mark.parametrize("name", ["capstone", "experts", "cache and padding", "many edits", "all hidden"])
def test_nothing_on_a_stage_is_left_in_english(name: str) -> None:
    """Words of Latin letters that are neither names, symbols nor code stand out in Chinese text."""
    names = "RMSNorm|RMS|RoPE|MiniMind|SiLU|SwiGLU|Softmax|softmax|LayerNorm|NaN|attn|next|model|cos"
    known = re.compile(rf"(?<![A-Za-z])(?:{names})(?![A-Za-z])")
    trace = run(SPECS[name])
    for stage in STAGES:
        prose_zh = stage.text("zh")
        said = [*stage.facts(trace, lang="zh"), prose_zh.title, prose_zh.mixes, prose_zh.notice]
        for figure in stage.figures(trace, lang="zh"):
            said += [figure["title"], figure["text"], *(t.get("hovertemplate", "") for t in figure["data"])]
            said += [str(t["name"]) for t in figure["data"] if "name" in t]
            said += [a["text"] for a in figure["layout"].get("annotations", [])]
            said += [v["title"]["text"] for k, v in figure["layout"].items() if "axis" in k and v.get("title")]
        for text in said:
            bare = re.sub(r"<[^>]+>|%\{[^}]+\}", " ", text)
            assert not re.search(r"[A-Za-z]{3,}", known.sub("", bare)), (stage.key, text)


def test_numbers_are_the_same_in_every_language() -> None:
    trace = run(SPECS["capstone"])
    for stage in STAGES:
        for lang in OTHERS:
            one, two = (
                sorted(re.findall(r"\d+\.\d+", " ".join(stage.facts(trace, lang=code)))) for code in ("en", lang)
            )
            assert one == two
            assert [f["data"][0].get("z") for f in stage.figures(trace)] == [
                f["data"][0].get("z") for f in stage.figures(trace, lang=lang)
            ]


def test_files_are_plain_utf8_without_stray_marks() -> None:
    folders = [page_words.HERE, figure_words.HERE, *(prose_module.HERE / lang for lang in languages())]
    for path in (p for folder in folders for p in Path(folder).iterdir() if p.suffix in (".md", ".json")):
        text = path.read_text(encoding="utf-8")
        assert not set(text) & {"\u200b", "\ufeff", "\u202e", "\u00a0"}, path
        assert text.endswith("\n"), path
