"""Whatever is wrong with a request, the Chinese page says it in Chinese and the English page in English.

Independent of how messages are made: what comes out of `answer` is read as text.
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from explorer import sources
from explorer.limits import LIMITS
from explorer.link import KEYS, decode
from explorer.messages import in_language
from explorer.offers import OFFERS
from explorer.quantities import QUANTITIES, WEIGHTS
from explorer.spec import RunSpec
from explorer.switches import KINDS
from explorer.ui.live_figure import LONGEST_REQUEST, Explorer
from explorer.ui.page import answer
from tests.ui.in_chinese import CJK, check, is_chinese
from tests.ui.reading_checkpoint import write_reader

pytestmark = pytest.mark.usefixtures("checkpoints")

FIELDS = [field.name for field in fields(RunSpec) if field.name not in ("edits", "switches")]
TYPED: list[Any] = [
    "", " ", "abc", "-1", "0", "1", "1.5", "3", "5", "1e400", "nan", "9" * 30, "9" * 5000, 2**63, 1e308, True, None,
    [], [1], ["x"], [[[[1]]]], {}, {"a": 1}, "on", "0 2", "0,1,2", "toy", "random", "checkpoint:", "checkpoint:gone",
    "checkpoint:reader", "checkpoint:lost", "flash", "cuda", "mps", "float16", "x" * (LIMITS.text + 1),
]  # fmt: skip
BASES: list[dict[str, Any]] = [
    {},
    {"B": "2", "T": "5", "d_model": "12", "h": "3", "weights": "random"},
    {"T": "3", "d_model": "8", "h": "2", "weights": "random", "experts": "3", "past": "2"},
    {"weights": "checkpoint:reader", "text": "once upon a time", "T": "4"},
]


def test_the_rule_itself() -> None:
    assert is_chinese("h = 5 不能整除 d_model = 12。") and is_chinese("'Once upon a time' 不是数。")
    assert not is_chinese("h = 5 does not divide d_model = 12.")
    assert not is_chinese("链接里的 h = '5' 没有采用。It does not divide d_model.")


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("base", range(len(BASES)))
def test_fields(name: str, base: int) -> None:
    for value in TYPED:
        for fit in (False, True):
            check({"spec": {**BASES[base], name: value}, "fit": fit})


@pytest.mark.parametrize(
    "spec",
    [
        {"h": "5", "T": "nine", "seed": "", "padding": "x", "attention": "fast", "qk_norm": "maybe"},
        {"h": "3", "d_model": "7", "weights": "random"},
        {"h": "4", "h_kv": "3", "d_model": "8", "weights": "random"},
        {"d_h": "3", "weights": "random"},
        {"d_model": "6", "h": "2", "weights": "random"},
        {"T": LIMITS.T, "d_model": LIMITS.d_model, "weights": "random", "B": LIMITS.B, "h": "8"},
        {"d_model": LIMITS.d_model, "d_ff": LIMITS.d_ff, "experts": LIMITS.experts, "weights": "random", "h": "8"},
        {"T": LIMITS.T, "h": "32", "d_model": "64", "weights": "random", "attention": "explicit", "B": LIMITS.B},
        {"T": LIMITS.T, "h": "32", "d_model": "64", "weights": "random", "past": "1", "B": LIMITS.B},
        {"padding": "1 2"}, {"B": "2", "padding": "0 9", "weights": "random"}, {"colour": "red"},
        {"weights": "checkpoint:reader", "text": "once\n" * (LIMITS.B + 1)},
        {"weights": "checkpoint:reader", "text": "once " * 300, "T": 300},
        {"weights": "checkpoint:reader", "text": "once upon", "T": 3}, {"weights": "checkpoint:reader", "text": "\n"},
        {"weights": "checkpoint:reader", "text": "once upon", "T": 2, "B": 2},
        {"weights": "checkpoint:lost", "text": "once"}, {"weights": "checkpoint:mute", "text": "once"},
        {"weights": "checkpoint:lost"}, {"weights": "checkpoint:mute"},
    ],
)  # fmt: skip
def test_specs(spec: dict[str, Any]) -> None:
    check({"spec": spec}, says=True)
    if "text" in spec:
        check({"spec": spec, "fit": True})


def test_texts_that_a_checkpoint_cannot_read(tmp_path: Path) -> None:
    folder = write_reader(tmp_path / "small")
    config = orjson.loads((folder / "config.json").read_bytes())
    tokenizer = orjson.loads((folder / "tokenizer.json").read_bytes())
    (folder / "config.json").write_bytes(orjson.dumps(config | {"max_position_embeddings": 3}))
    tokenizer["model"]["vocab"] |= {"far": config["vocab_size"] + 5}
    (folder / "tokenizer.json").write_bytes(orjson.dumps(tokenizer))
    sources.offer("small", folder)
    try:
        weights = {"weights": "checkpoint:small"}
        for text, field in (("once upon a time", "T"), ("once far", "weights")):
            for lang in ("en", "zh"):
                assert list(answer({"spec": weights | {"text": text}, "fit": True, "lang": lang})["errors"]) == [field]
            check({"spec": weights | {"text": text}, "fit": True}, says=True)
        assert answer({"spec": weights | {"text": "once upon a"}, "fit": True})["ok"]
    finally:
        del OFFERS["small"]


@pytest.mark.parametrize("base", range(len(BASES)))
def test_edits(base: int) -> None:
    values = [1, "1", "x", None, True, [1], [[[1, 2]]], "1e400", "nan", "-inf", 1e39, 7e4, 2.5, -1, "z1x2_!", {"a": 1}]
    targets = [*QUANTITIES, *WEIGHTS, "scroes", "", "x" * 200, "mlp.experts.9.up_proj.weight", "mlp.gate.weight", 7]
    for target in targets:
        for index in ([], [0], [0, 0], [0, 0, 0], [0, 0, 0, 0], [0, 0, 99], [None, None, 0], [-1, 0, 0], "x", None):
            check({"spec": BASES[base], "edits": [{"t": target, "i": index, "x": 1}]})
        for value in values:
            for index in ([0, 0, 0], []):
                check({"spec": BASES[base], "edits": [{"t": target, "i": index, "x": value}]})


def test_too_many_edits_and_what_is_no_edit() -> None:
    one = {"t": "resid_pre", "i": [0, 0, 0], "x": 1}
    check({"edits": [one] * (LIMITS.edits + 1)}, says=True)
    for edits in ([{}], [3], [None], ["x"], [{"t": "q"}], [one, {"t": "q", "i": [0], "x": "?"}]):
        check({"edits": edits}, says=True)
    check({"spec": {"dtype": "float16"}, "edits": [{**one, "x": 1e6}]}, says=True)
    moe = {"T": "2", "d_model": "4", "h": "1", "weights": "random", "experts": "2"}
    check({"spec": moe, "edits": [{"t": "expert_index", "i": [0, 0, 0], "x": 5}]}, says=True)
    check({"spec": moe, "edits": [{"t": "gate", "i": [0, 0, 0], "x": 5}]}, says=True)
    check({"spec": {"T": "2"}, "edits": [{"t": "resid_pre", "i": [], "x": [[[1, 2], [3, 4], [5, 6]]]}]}, says=True)


@pytest.mark.parametrize("base", range(3))
def test_switches(base: int) -> None:
    for name in [*KINDS, "upside_down", "", ":", "x" * 300]:
        for argument in ("", ":", ":0", ":1", ":99", ":-1", ":x", ":1.5", ":nan", ":0.0001", ":1e9"):
            check({"spec": BASES[base], "switches": [name + argument]})
    check({"switches": [f"temperature:{n + 1}" for n in range(80)]}, says=True)
    check({"switches": [3, None, {"a": 1}]}, says=True)
    for field in (["x"], "no_such_one", 3, {"a": 1}):
        check({"spec": {"switches": field}})


@pytest.mark.parametrize("preset", ["unknown", "", 3, [], {"a": 1}, "x" * 500])
def test_presets(preset: Any) -> None:
    check({"preset": preset}, says=True)


@pytest.mark.parametrize("row", ["x", "1, two", "nan", "inf", "1 " * 65, "9" * 3000, ",", "−inf x", "1;2;drei"])
def test_trials(row: str) -> None:
    check({"want": ["softmax"], "softmax": {"row": row}}, says=True)
    for name in ("gamma", "beta"):
        check({"want": ["norms"], "norms": {"t": 0, name: row}}, says=True)
        check({"want": ["norms"], "norms": {"t": 0, name: "1 2 3"}}, says=True)
    keys = answer({"want": ["norms"], "norms": {"gamma": "9" * 3000}})["errors"]
    assert list(keys) == ["norms.gamma"], "the field that it stands beside"


def test_what_takes_too_long_and_what_no_link_holds() -> None:
    large = {"T": "512", "d_model": "512", "h": "8", "weights": "random"}
    check({"spec": large, "want": ["effects"]}, says=True)
    long: dict[str, Any] = {"spec": {"T": "64", "d_model": "256", "h": "2", "weights": "random"}}
    noise = np.random.default_rng(0).standard_normal((1, 64, 256)).tolist()
    long["edits"] = [{"t": "resid_pre", "i": [], "x": noise}]
    check(long, says=True)
    check({**long, "want": ["share"], "share": {"base": "http://x/"}}, says=True)


def test_a_request_that_is_out_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "seconds", 0.0)
    check({"spec": {"T": "4", "seed": 77, "weights": "random"}, "want": ["effects"]}, says=True)


# ----------------------------------------------------------------------------------------------------------- links


@pytest.mark.parametrize(
    "query",
    [
        "T=abc", "w=random&d=12&h=5", "w=random&d=3", "T=999999", "T=3&e=probs@0.0.9.0~1", "e=scroes@0.0.0.0~1",
        "e=resid_pre@0.0.1~two", "s=no_mask!only_head:4!upside_down!no_mask:3!temperature:x!expert:1",
        "w=checkpoint:gone", "colour=red", "v=7", "pad=1,2", "stage=9&row=1&head=3&show=all&lang=tlh&present=yes",
        "cell=probs@0.0.2.0", "x" * (LIMITS.link + 1), "&".join(f"k{n}=1" for n in range(90)),
        "&".join(f"k{n}=1" for n in range(30)), "e=" + "!".join(["q@0~x"] * 300), "qk=maybe&yarn=2&topk=x",
        "e=resid_pre@~z1x9x2_eNpjYACBH_YMEHCAAQVwOAAALIcCQA", "e=resid_pre@~z1x1x2_eNpjYACBH_YMEHCAAQVwOAAALIcCQA",
        "e=resid_pre@~z1x2x2_eNpjYACBH_YMEHCAAQVwOAAALIcCQA&T=3", "w=checkpoint:lost&text=once", "dev=cuda&att=x",
        "dev=mps", "dev=gpu", "eps=0&theta=0&step=1e9&E=99&k=9&past=9999&seed=-1", "w=checkpoint:reader&text=x&layer=9",
    ],
)  # fmt: skip
def test_links(query: str) -> None:
    check({"query": "?" + query}, says=True)


PIECES = (
    "", "-1", "0", "2", "3", "64", "1e400", "-inf", "nan", "9" * 400, "1_0", "２", "x", "toy", "random", "checkpoint:",
    "checkpoint:gone", "probs@0.0.0.0~1", "-probs@0.0.1.0~0.5!resid_pre@*.*.*~2", "resid_pre@0.0.0~nan", "@~", "!!!",
    "expert_index@0.0.0~0", "mlp.experts.0.gate_proj.weight@0.0~1", "resid_pre@~z1x2x2_eNpjYACBH_YMEHCAAQVwOAAALIcCQA",
    "no_mask!only_head:9!temperature:0", "only_head:0!expert:1", "probs@0.0.0.0", "flash", "float16", "0 1", "on",
)  # fmt: skip
KEY = st.sampled_from([*KEYS.values(), "v", "stage", "cell", "show", "row", "head", "lang", "present", "off", "x"])
VALUE = st.sampled_from(PIECES) | st.integers(-3, 70).map(str) | st.floats().map(repr)


@settings(max_examples=300, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(KEY, VALUE), max_size=8))
def test_no_link_has_a_note_in_another_language(pairs: list[tuple[str, str]]) -> None:
    _, _, notes = decode("&".join(f"{key}={value}" for key, value in pairs))
    for note in notes:
        assert is_chinese(in_language(note, "zh")), note
        assert not CJK.search(note), note


# -------------------------------------------------------------------------------------------- what cannot be read


@pytest.mark.parametrize(
    "text", ['["lang"]', "null", "{", '{"lang":"zh",', '{"lang":"zh","spec":{"text":"' + "x" * LONGEST_REQUEST + '"}}']
)
def test_what_is_no_request(text: str, tmp_path: Path) -> None:
    component = Explorer(answer, {}, {}, tmp_path / "plotly.js")
    update = component.server_fns[0] if hasattr(component, "server_fns") else component.server_functions[0]
    (message,) = orjson.loads(update(text))["errors"].values()
    assert is_chinese(message) if '"zh"' in text else not CJK.search(message)


def test_the_page_that_finds_no_script_says_so_in_both_languages(tmp_path: Path) -> None:
    lost = Explorer(answer, {}, {}, tmp_path / "plotly.js").props["lost"]
    assert lost.keys() == {"en", "zh"} and is_chinese(lost["zh"]) and not CJK.search(lost["en"])
