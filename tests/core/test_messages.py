"""Messages: English where they are said, Chinese where the page is; none is missing, none is left over."""

from __future__ import annotations

import ast
import copy
import pickle
import re
import string
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from explorer.messages import Message, either, in_language, said, say
from explorer.messages.message import HERE, templates
from explorer.spec import RunSpec, SpecError

EXPLORER = Path(__file__).resolve().parents[2] / "explorer"
OTHERS = sorted(path.stem for path in HERE.glob("*.json"))
CJK = re.compile(r"[一-鿿]")
SAME = {"{text!r}"}  # has no word
# Sentences that no visitor of the page reads, by module or package.
NOT_FOR_THE_PAGE = {
    "formulas": "for whoever declares a formula",
    "asked": "the words of the command line and the HTTP API",
    "bridge.text": "for whoever writes a row's text",
    "capture": "what the recorder says to a programmer; the page checks edits before it runs them",
    "checkpoints": "what is wrong with a file is for its owner: the log, `check`, the start of the server",
    "course": "says to a programmer what a model cannot be, and what its demo prints",
    "draw": "titles by language are in draw/*.md",
    "inspector": "for whoever asks for a cell that is not there",
    "limits": "said when the server starts",
    "model": "says to a programmer what a model cannot be",
    "stages.figures": "for who asks for a figure by name",
    "stages.prose": "for whoever writes a stage's text",
    "stages.source": "for whoever names lines of code",
    "stages.terms": "English titles, and what is said to whoever adds a language",
    "ui.symbols": "for whoever declares a symbol",
    "ui.words": "for whoever adds a language",
    "messages": "for whoever adds a language",
}
DECLARED = {"Axis", "Quantity", "Weight", "Kind"}  # their titles are translated in explorer/stages/*/terms.md
EQUATION = re.compile(r"^\w+(, [A-Z])? = |^key j ")  # so are the words of equations
ERRORS = {"SpecError", "SwitchError", "DeviceError", "LinkTooLong", "UnknownName", "OutOfTime", "Left"}
NOT_RAISED_ON_THE_PAGE = ("asked", "answers", "generation", "cli.", "export.", "ui.endpoints", "ui.options")
SENTENCE = re.compile(r"[A-Za-z]{2,} [a-z]{2,} [a-z]{2,}")


@cache
def modules() -> dict[str, ast.Module]:
    """Name below explorer, such as "ui.page" -> syntax tree."""
    found = {}
    for path in sorted(EXPLORER.rglob("*.py")):
        name = ".".join(path.relative_to(EXPLORER).with_suffix("").parts).removesuffix(".__init__")
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def says(name: str, tree: ast.Module) -> bool:
    """Whether `say` in a module is the one of messages; figures have another."""
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return name == "messages.message" or any(
        (node.module or "").startswith("explorer.messages") and any(alias.name == "say" for alias in node.names)
        for node in imports
    )


def calls(name: str, tree: ast.Module) -> Iterator[ast.Call]:
    """Every call of `say`."""
    if says(name, tree):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "say":
                yield node


def sentences() -> dict[str, set[str]]:
    """Template -> names of what fills it, from the code."""
    found: dict[str, set[str]] = {}
    for name, tree in modules().items():
        for call in calls(name, tree):
            literal = call.args[0]
            assert isinstance(literal, ast.Constant) and isinstance(literal.value, str), (name, call.lineno)
            assert len(call.args) == 1 and all(keyword.arg for keyword in call.keywords), (name, call.lineno)
            found.setdefault(literal.value, {str(keyword.arg) for keyword in call.keywords})
            assert found[literal.value] == {str(keyword.arg) for keyword in call.keywords}, (name, call.lineno)
    return found


def placeholders(template: str) -> set[tuple[str, str | None, str | None]]:
    """(name, format, conversion) of each."""
    return {(name, spec, how) for _, name, spec, how in string.Formatter().parse(template) if name is not None}


# ----------------------------------------------------------------------------------------------- the translations


@pytest.mark.parametrize("lang", OTHERS)
def test_every_sentence_is_translated_and_no_other(lang: str) -> None:
    english, other = sentences().keys(), templates(lang).keys()
    assert (sorted(english - other), sorted(other - english)) == ([], [])
    assert len(english) > 80


def test_sentences_are_filled_with_what_they_ask_for() -> None:
    for template, given in sentences().items():
        assert {name for name, _, _ in placeholders(template)} == given, template


@pytest.mark.parametrize("lang", OTHERS)
def test_placeholders_are_the_same(lang: str) -> None:
    for english, other in templates(lang).items():
        assert placeholders(other) == placeholders(english), english


def test_chinese_is_chinese() -> None:
    for english, chinese in templates("zh").items():
        assert english in SAME or CJK.search(chinese), english
        assert not CJK.search(english), english
        bare = re.sub(r"\{[^}]*\}", "0", chinese)
        assert not SENTENCE.search(bare), chinese
        assert not re.search(r"[一-鿿][,;:?!.()]", bare), f"half-width punctuation: {chinese}"
        assert english.endswith(".") == chinese.endswith("。") or "{" in english[-9:], english


@pytest.mark.parametrize("lang", OTHERS)
def test_files_are_plain(lang: str) -> None:
    text = (HERE / f"{lang}.json").read_text(encoding="utf-8")
    assert text.endswith("}\n") and not set(text) & {"\u200b", "\ufeff", "\u202e", "\u00a0"}


# ---------------------------------------------------------------------------------------------------- no others


@cache
def reached() -> frozenset[str]:
    """The modules that the page imports, one through the other."""
    waiting, found = ["ui.page", "ui.live_figure"], set()
    while waiting:
        name = waiting.pop()
        if name in found or name not in modules():
            continue
        found.add(name)
        for node in ast.walk(modules()[name]):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "explorer":
                base = str(node.module).removeprefix("explorer").removeprefix(".")
                waiting += [base, *(f"{base}.{alias.name}".removeprefix(".") for alias in node.names)]
    return frozenset(found)


def test_the_page_is_reached() -> None:
    assert {"validation", "edit_checks", "typed", "link.repair", "ui.trials", "sources", "device"} <= reached()
    assert not {name for name in reached() if name.startswith("cli")}


def inside(name: str, prefixes: object) -> bool:
    return any(name == p or name.startswith(f"{p.rstrip('.')}.") for p in prefixes)  # type: ignore[attr-defined]


def untranslated(name: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Literals that read as sentences and are neither said, nor logged, nor docstrings."""
    skip: set[ast.AST] = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
    skip |= {literal for call in calls(name, tree) for literal in ast.walk(call.args[0])}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            skip |= set(node.args) if called.startswith(("log.", "LOG.")) or called in DECLARED else set()
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and node not in skip else None
        if isinstance(text, str) and SENTENCE.search(text) and not EQUATION.match(text):
            yield node.lineno, text


def test_what_the_page_reaches_says_its_sentences() -> None:
    found = [
        (name, *literal)
        for name in sorted(reached())
        if not inside(name, NOT_FOR_THE_PAGE)
        for literal in untranslated(name, modules()[name])
    ]
    assert not found


def test_no_exception_is_idle() -> None:
    """Each part that is named as an exception has a sentence of its own."""
    idle = set(NOT_FOR_THE_PAGE)
    for name in reached():
        if any(untranslated(name, modules()[name])):
            idle -= {part for part in NOT_FOR_THE_PAGE if inside(name, [part])}
    assert not idle


def bare(value: ast.expr) -> bool:
    """Whether a message is made here without `say`: a literal, an f-string, a sum of such, or str(error)."""
    if isinstance(value, ast.Dict):
        return any(bare(part) for part in value.values)
    text = isinstance(value, ast.Constant) and isinstance(value.value, str)
    lost = isinstance(value, ast.Call) and ast.unparse(value.func) == "str"
    joined = isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Mod))
    return text or lost or joined or isinstance(value, ast.JoinedStr)


def test_errors_that_reach_the_page_carry_messages() -> None:
    found = []
    for name, tree in modules().items():
        if inside(name, NOT_RAISED_ON_THE_PAGE):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ERRORS:
                found += [(name, node.lineno) for part in node.args if bare(part)]
    assert not found


def test_bare_texts_are_noticed() -> None:
    tree = ast.parse(
        "raise SpecError({'a': f'{x} is wrong'})\nraise SwitchError('This is wrong here.')\nlog.info('a b')"
    )
    raised = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and "Error" in ast.unparse(node.func)]
    assert all(bare(node.args[0]) for node in raised) and len(raised) == 2
    assert [line for line, _ in untranslated("x", tree)] == [2]


# ------------------------------------------------------------------------------------------------ what a message is


def test_a_message_is_its_english_text() -> None:
    message = say("{name} = {value:g} is out of range. Choose a number from {low} to {high}.", name="T", value=0.5,
                  low=1, high=9)  # fmt: skip
    assert message == "T = 0.5 is out of range. Choose a number from 1 to 9." and isinstance(message, str)


def test_messages_inside_messages_are_translated_too() -> None:
    reason = say("There is no checkpoint {name!r} here. Offered: {offered}. Choose one of these, toy or random.",
                 name="x y z", offered=say("none"))  # fmt: skip
    note = say("The link's {key} = {value} was ignored. {reason}", key="w", value="'{reason}'", reason=reason)
    assert in_language(note, "en") == str(note)
    assert note.startswith("The link's w = '{reason}' was ignored. There is no checkpoint 'x y z' here. Offered: none.")
    assert in_language(note, "zh") == (
        "链接里的 w = '{reason}' 没有采用。这里没有检查点 'x y z'。提供的有：无。请从中选一个，或者选 toy、random。"
    )


def test_what_is_no_message_stays_as_it_is() -> None:
    assert in_language("{typed} text", "zh") == "{typed} text"
    assert (
        in_language(Message("There is no such sentence as {x}.", {"x": 1}), "zh") == "There is no such sentence as 1."
    )
    with pytest.raises(LookupError, match="no messages in 'xx'. Languages: en, zh"):
        in_language(say("none"), "xx")


def test_either() -> None:
    assert (either("a"), either("a", "b", "c")) == ("a", "a or b or c")
    assert in_language(either("a", "b", "c"), "zh") == "a 或 b 或 c"


def test_an_error_says_the_message_that_it_was_raised_with() -> None:
    message = say("none")
    assert said(ValueError(message)) is message
    assert said(ValueError("plain")) == "plain" and said(ValueError()) == ""


def test_messages_survive_copies_and_processes() -> None:
    with pytest.raises(SpecError) as caught:
        RunSpec(h=3, T=10**20)
    for again in (
        pickle.loads(pickle.dumps(caught.value)),  # noqa: S301
        copy.deepcopy(caught.value),
    ):
        assert again.errors == caught.value.errors and str(again) == str(caught.value)
        for name, message in again.errors.items():
            assert CJK.search(in_language(message, "zh")), name
            assert in_language(message, "zh") == in_language(caught.value.errors[name], "zh")
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        message = caught.value.errors["T"]
        assert in_language(pickle.loads(pickle.dumps(message, protocol)), "zh") == in_language(message, "zh")  # noqa: S301
