"""Every row's check holds for MiniMind as it is, in every kind of run, and says the numbers that it found."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from explorer import PRESETS, Edit, RunSpec, allowance
from explorer.bridge import ROWS, Row
from explorer.bridge.case import Case, apart, plain, tolerance
from explorer.bridge.text import FOUND, languages, parse
from explorer.draw.numbers import WRITER
from explorer.limits import LIMITS
from explorer.spec import SpecError
from explorer.stages.prose import ProseError
from tests.bridge.cases import SPECS

ROOT = Path(__file__).resolve().parents[2]
CJK = re.compile(r"[一-鿿]")
by_key = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key)


@by_key
@pytest.mark.parametrize("name", SPECS)
def test_minimind_holds(row: Row, name: str) -> None:
    found = row.check(SPECS[name])
    for point, text in zip(found.points, row.sentences(found), strict=True):
        assert point.holds, text
        assert not re.search(r"[{}]|\bnan\b", text), text
    assert found.holds
    assert len(row.sentences(found, "zh")) == len(found.points) >= 4


def test_the_real_size_holds() -> None:
    for row in ROWS:
        assert row.check(replace(PRESETS["minimind3"], T=16)).holds, row.key


def test_what_cannot_be_looked_at_says_so() -> None:
    def nearest(key: str, name: str) -> dict[str, bool]:
        row = next(row for row in ROWS if row.key == key)
        return {point.key: point.nearest for point in row.check(SPECS[name]).points}

    assert nearest("attention", "gqa") == dict.fromkeys(("repeat", "own", "shape", "circle", "offset"), False)
    assert nearest("attention", "capstone")["repeat_equal"] and nearest("attention", "one head for all")["repeat_one"]
    assert nearest("attention", "one token")["offset_alone"]
    assert nearest("decode", "one token")["cached_alone"] and not nearest("decode", "toy")["cached"]
    assert nearest("runtime", "one token")["flash_alone"] and nearest("runtime", "toy")["cache_none"]
    assert not nearest("runtime", "cache and padding")["cache"]
    assert nearest("feed_forward", "experts")["formula_moe"] and nearest("feed_forward", "shares off")["shares_off"]
    assert nearest("wrapper", "one token")["loss_alone"]


def test_numbers_are_those_of_the_run() -> None:
    attention, decode = ROWS[1], ROWS[2]
    points = {point.key: point for point in decode.check(SPECS["cache and padding"]).points}
    assert (points["cache"].values["before"], points["cache"].values["after"]) == ("2×2×6×4", "2×2×7×4")
    assert points["start"].values["start"] == 6 and points["start"].values["astray"] > 1e-3
    assert attention.check(SPECS["bfloat16"]).points[1].values["tolerance"] == tolerance("bfloat16") > 0.01
    toy = attention.check(SPECS["toy"]).points[1].values["gap"]
    assert toy != attention.check(SPECS["capstone"]).points[1].values["gap"]


def test_edited_weights_count_and_other_edits_stay_out() -> None:
    edit = Edit("self_attn.k_proj.weight", (0, 1), 3.0)
    off = replace(edit, index=(1, 1), on=False)
    spec = RunSpec(edits=(edit, off, Edit("q", (0, 0, 0, 0), 9.0)), switches=("no_mask", "no_rope"))
    assert plain(spec) == RunSpec(edits=(edit,))
    state = Case.of(spec, 1).block().state_dict()
    assert state["self_attn.k_proj.weight"][0, 1] == 3 and state["self_attn.k_proj.weight"][1, 1] == 1
    assert Case.of(RunSpec(), 1).state["self_attn.k_proj.weight"][0, 1] == 0, "the block itself is untouched"


@by_key
def test_too_much_work_is_refused_in_words(row: Row) -> None:
    spec = RunSpec(T=LIMITS.T, d_model=768, h=8, h_kv=4, attention="flash", weights="random")
    if row.key == "config":
        return
    with pytest.raises(SpecError, match="Choose a smaller T, past, B or d_model") as caught:
        row.check(spec)
    assert list(caught.value.errors) == ["bridge"]
    with pytest.raises(SpecError, match="more than one visitor"):
        row.check(RunSpec(T=2, past=LIMITS.T, d_model=2, weights="random"))


@by_key
def test_nobody_waits_any_longer(row: Row) -> None:
    spec = RunSpec(T=3, d_model=4, h=2, seed=900 + row.number, weights="random")
    with pytest.raises(allowance.Left), allowance.held(allowance.Allowance(5, gone=lambda: True)):
        row.check(spec)


def test_apart() -> None:
    import torch

    a = torch.tensor([1.0, 4.0])
    assert apart(a, a) == 0 and apart(a + torch.tensor([0.0, 0.5]), a) == 0.125
    for odd in (torch.tensor([1.0]), torch.tensor([1.0, float("nan")]), torch.tensor([1.0, float("inf")])):
        assert not apart(odd, a) <= 1e9, "neither another shape nor what is not finite is near"


# ------------------------------------------------------------------------------------------------- texts and code


def test_six_rows_in_order() -> None:
    assert [row.number for row in ROWS] == [1, 2, 3, 4, 5, 6]
    titles = [row.text().title for row in ROWS]
    assert titles == ["Config", "Attention", "Decode", "Runtime", "Feed-forward", "Model wrapper"]
    assert [row.slow for row in ROWS] == [False] * 5 + [True]


@by_key
def test_languages_say_the_same(row: Row) -> None:
    assert languages() == ("en", "zh")
    english, chinese = row.text("en"), row.text("zh")
    assert list(english.points) == list(chinese.points)
    for key, template in english.points.items():
        assert WRITER.fields(template) == WRITER.fields(chinese.points[key]), key
    for text in (chinese.title, chinese.adds, chinese.check, *chinese.points.values()):
        assert CJK.search(text)
    for text in (english.title, english.adds, english.check, *english.points.values()):
        assert not CJK.search(text)
    codes = re.findall(r"<code>(.*?)</code>", english.adds)
    assert sorted(codes) == sorted(re.findall(r"<code>(.*?)</code>", chinese.adds))


@by_key
def test_every_sentence_is_said_by_the_check(row: Row) -> None:
    name = {"config": "configuration"}.get(row.key, row.key)
    code = (ROOT / "explorer" / "bridge" / f"{name}.py").read_text(encoding="utf-8")
    for key in row.text().points:
        stem, _, end = key.rpartition("_")
        assert f'"{key}"' in code or (end in ("refused", "taken", "near") and f'"{stem}"' in code), key


@by_key
def test_code_is_the_files_own(row: Row) -> None:
    for found in row.code:
        lines = (ROOT / found.file).read_text(encoding="utf-8").splitlines()
        text = found.text.splitlines()
        assert found.model == "minimind" and 1 <= len(text) <= 26, (found.name, len(text))
        assert [line.strip() for line in lines[found.line - 1 : found.line - 1 + len(text)]] == [
            line.strip() for line in text
        ]


def test_a_bad_text_is_named() -> None:
    with pytest.raises(ProseError, match="needs a title and the parts Adds, Check, Points"):
        parse("# Title\n## Adds\nx\n", "en/x.md")
    with pytest.raises(ProseError, match="Config has no sentence 'none'"):
        ROWS[0].text().say("none", {})
    with pytest.raises(LookupError, match="no texts of the bridge in 'xx'"):
        ROWS[0].text("xx")


@by_key
def test_what_a_comparison_found_is_said_plainly(row: Row) -> None:
    phrases = {lang: row.text(lang).phrases for lang in ("en", "zh")}
    assert list(phrases["en"]) == list(phrases["zh"])
    assert all(WRITER.fields(phrases["en"][key]) == WRITER.fields(phrases["zh"][key]) for key in phrases["en"])
    for spec in (SPECS["toy"], SPECS["gqa"], SPECS["one token"], SPECS["cache and padding"]):
        found = row.check(spec)
        for point, text, chinese in zip(found.points, row.sentences(found), row.sentences(found, "zh"), strict=True):
            if wanted := WRITER.fields(row.text().points[point.key]) & FOUND.keys():
                equal = point.values[FOUND[next(iter(wanted))]] == 0
                assert equal == ("to the last bit" in text) == ("一位不差" in chinese), text
            assert not re.search(r"\b0 of (the|its|largest)|than 0 of", text) or point.key == "start", text


def test_what_differs_is_said_too() -> None:
    attention, decode = ROWS[1].text(), ROWS[2].text()
    said = attention.say("repeat", {"shape": "a", "repeated": "b", "times": 2, "wrong": 2, "all": 4})
    assert said.endswith("2 of the 4 heads differ, and none may.")
    said = decode.say("cache", {"before": "a", "after": "b", "changed": 1})
    assert said.endswith("Of keys and values, 1 of 2 tensors changed in what they held before, and none may.")


def test_what_comes_from_outside_is_escaped() -> None:
    said = ROWS[0].text().say("heads_refused", {"given": 3, "error": "<b> & more"})
    assert "&lt;b&gt; &amp; more" in said and "<code>num_attention_heads" in said
