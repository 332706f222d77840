"""Messages on the page name what its fields show; everywhere else they keep the names of the code."""

from __future__ import annotations

import re
from typing import Any

import pytest

from explorer.link import KEYS
from explorer.messages.message import templates
from explorer.spec import RunSpec, SpecError
from explorer.ui import told
from explorer.ui.controls import FIELDS
from explorer.ui.page import answer, fixed
from tests.ui.in_chinese import check

RANDOM = {"weights": "random"}
CODE = re.compile(r"angle_step|rope_theta|norm_eps|experts_per_token|norm_topk|\bqk_norm|\bdtype\b|\bpast\b|[Ss]witch")


def errors(spec: dict[str, Any], lang: str = "en") -> dict[str, str]:
    found: dict[str, str] = answer({"spec": spec, "lang": lang})["errors"]
    return found


@pytest.mark.parametrize(
    ("spec", "field", "text", "in_code"),
    [
        ({"angle_step": "2000"}, "angle_step", "θ = 2000 ", "angle_step = 2000 is out of range"),
        ({"angle_step": "x"}, "angle_step", "θ = 'x' ", "angle_step = 'x' is not a number"),
        ({"rope_theta": "0"}, "rope_theta", "b = 0 ", "rope_theta = 0 is"),
        ({"norm_eps": "5"}, "norm_eps", "ε = 5 ", "norm_eps = 5 is"),
        ({**RANDOM, "experts": "2", "experts_per_token": "7"}, "experts_per_token", "k = 7 ", "experts_per_token = 7"),
        ({"past": "-1"}, "past", "P = -1 ", "past = -1 is"),
        ({"padding": "9"}, "padding", "P + T = 2", "past + T = 2"),
    ],
)
def test_a_setting_is_called_what_its_field_shows(spec: dict[str, str], field: str, text: str, in_code: str) -> None:
    for lang in ("en", "zh"):
        assert text in errors(spec, lang)[field] and not CODE.search(errors(spec, lang)[field])
    with pytest.raises(SpecError) as refused:
        RunSpec.parse(spec)
    assert in_code in refused.value.errors[field], "code, shell and API keep their names"


def test_a_field_without_a_symbol_is_called_by_its_label() -> None:
    assert errors({"dtype": "float12"})["dtype"].startswith("“numbers” = 'float12' is unknown")
    assert errors({"dtype": "float12"}, "zh")["dtype"].startswith("“数值类型” 没有")
    assert errors({"yarn": "perhaps"})["yarn"].startswith("YaRN = 'perhaps' is neither on nor off")
    assert errors({"norm_topk": "x"})["norm_topk"].startswith("“shares sum to 1” = 'x'")


def test_an_empty_field_is_called_so_too() -> None:
    assert errors({"rope_theta": ""}) == {"rope_theta": "b is empty. Type a number."}
    assert errors({"norm_eps": " "}, "zh")["norm_eps"].startswith("ε 是空的")


def test_gamma_and_beta_of_the_norms() -> None:
    for name, letter in (("gamma", "γ"), ("beta", "β")):
        said = answer({"want": ["norms"], "norms": {"t": 0, name: "1 2 3"}})["errors"][f"norms.{name}"]
        assert said.startswith(f"{letter} has 3 numbers, the row 2.")


def test_a_choice_of_one_is_not_offered_as_a_range() -> None:
    spec = {**RANDOM, "d_model": "6", "h": "4"}
    fitting = [h for h in range(1, 7) if 6 % h == 0 and (6 // h) % 2 == 0]
    assert errors(spec)["h"].endswith(f"Use h from {', '.join(map(str, fitting))}, another d_model, or set d_h.")
    assert [h for h in range(1, 3) if 2 % h == 0 and (2 // h) % 2 == 0] == [1]
    assert errors({**RANDOM, "d_model": "2", "h": "4"})["h"] == (
        "h = 4 does not divide d_model = 2. Use h = 1, another d_model, or set d_h."
    )
    assert "可用的只有 h = 1" in errors({**RANDOM, "d_model": "2", "h": "4"}, "zh")["h"]
    assert errors({"h_kv": "3"})["h_kv"] == "h_kv = 3 is out of range. Here it must be 1."
    assert "1 到 1" not in errors({"h_kv": "3"}, "zh")["h_kv"]
    check({"spec": {"h_kv": "3"}}, says=True)


def test_notes_on_a_link_speak_of_what_ifs() -> None:
    notes = " ".join(answer({"query": "?s=upside_down&step=2000"})["notes"])
    assert "There is no what-if 'upside_down'. What-ifs: no_mask" in notes and "θ = 2000" in notes
    assert not CODE.search(notes)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_message_can_be_said_in_the_pages_names(lang: str) -> None:
    """Placeholders stay as they are, and no name of the code is left."""
    for english, other in templates("zh").items():
        template = english if lang == "en" else other
        renamed = told._renamed(template, lang)
        assert re.findall(r"{[^}]*}", renamed) == re.findall(r"{[^}]*}", template)
        bare = re.sub(r"{[^}]*}|RunSpec\(.*?\)", "", renamed)
        assert not CODE.search(bare), renamed


def test_the_names_are_those_of_the_fields() -> None:
    shown = {about["name"]: about for group in fixed()["controls"] for about in group["fields"]}
    assert set(told.names("en")) - {"gamma", "beta"} == set(FIELDS) == set(shown) and set(FIELDS) <= set(KEYS)
    for name, about in shown.items():
        plain = re.sub(r"<sub>", "_", about["symbol"])
        assert told.names("en")[name] in (re.sub(r"<[^>]+>", "", plain), about["label"], f"“{about['label']}”")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_one_word_stands_for_what_ifs(lang: str) -> None:
    texts = fixed(lang)["texts"]
    assert texts["whatif"].startswith({"en": "What if", "zh": "假设"}[lang])
    everything = str(texts)
    assert not re.search("假如|开关|被问到的格子会遮住|全送|输出移动", everything)
