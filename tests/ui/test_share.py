"""A state as link and QR code, and the words where it has none; the language of answers."""

from __future__ import annotations

import re
from typing import Any

import pytest

from explorer import Edit, RunSpec, link
from explorer.limits import LIMITS
from explorer.link import View
from explorer.ui import share
from explorer.ui.page import answer, fixed
from explorer.ui.words import language, words

TEXTS = words("en")
BASE = "https://example.org/explorer/"
CJK = re.compile(r"[\u4e00-\u9fff]")
CAPSTONE = RunSpec(B=2, T=5, d_model=12, h=3, weights="random")


def shared(spec: RunSpec = CAPSTONE, **asked: Any) -> dict[str, str]:
    return share.shared(spec, View(stage=5), {"base": BASE, **asked}, TEXTS)


def test_a_link_and_its_code() -> None:
    found = shared()
    assert link.decode(found["query"])[:2] == (CAPSTONE, View(stage=5))
    assert found["code"].startswith("<svg") and found["note"] == ""
    assert not re.search(r"<(?!/?(svg|path))", found["code"])
    assert "present=1" in shared(present=True)["query"]


@pytest.mark.parametrize("host", ["127.0.0.1:7860", "localhost:7860", "LOCALHOST", "[::1]:80"])
def test_an_address_of_this_computer_alone_says_so(host: str) -> None:
    found = shared(base=f"http://{host}/")
    assert found["code"] and found["note"] == "This address is this computer’s own: another device cannot open it."
    for other in ("localhost.example.org", "192.168.1.5:7860", "example.org/localhost"):
        assert shared(base=f"http://{other}/")["note"] == ""


def test_the_code_is_the_address() -> None:
    import segno

    assert share.code("https://example.org/") == segno.make_qr("https://example.org/", error="m").svg_inline(
        omitsize=True, border=4, dark="#000", light="#fff", svgclass=None, lineclass=None
    )


@pytest.mark.parametrize(
    "base",
    [
        None,
        7,
        "",
        "javascript:alert(1)//",
        "https://",
        "http://x/?q",
        "http://x/#h",
        "http://x y",
        "http://" + "x" * 600,
    ],
)
def test_an_address_that_is_none_gets_no_code(base: Any) -> None:
    found = shared(base=base)
    assert found["code"] == "" and found["query"]


def test_long_links_have_no_code_but_words() -> None:
    spec = CAPSTONE
    for n in range(40):
        spec = spec.with_edit(Edit("resid_pre", (0, n // 12, n % 12), 0.123456789 + n))
    found = shared(spec)
    assert found["query"] and found["code"] == ""
    assert re.fullmatch(r"A QR code holds links of up to 1000 .* this one has \d{4}\. Copy it instead\.", found["note"])


def test_a_state_beyond_a_link_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "link", 30)
    found = shared()
    assert found["query"] == found["code"] == ""
    assert "at most 30 are allowed" in found["note"]
    reply = answer({"spec": {"T": "3", "d_model": "4", "h": "2", "weights": "random"}})
    assert reply["query"] == "" and "at most 30 are allowed" in reply["unlinked"]


def test_the_page_asks_for_it_beside_its_picture() -> None:
    reply = answer({"want": ["share"], "share": {"base": BASE}, "stage": 4, "lang": "zh", "chosen_lang": "zh"})
    assert reply["ok"] and reply["share"]["query"] == "v=1&stage=4&lang=zh"


def test_language_and_present_are_part_of_the_link() -> None:
    reply = answer({"stage": 2, "chosen_lang": "zh", "lang": "zh", "present": True})
    assert reply["query"] == "v=1&stage=2&lang=zh&present=1" and reply["present"] is True
    again = answer({"query": "?" + reply["query"]})
    assert again["query"] == reply["query"] and again["present"] is True
    for odd in (
        {"lang": "xx", "chosen_lang": "xx"},
        {"lang": ["zh"], "chosen_lang": {}},
        {"lang": None, "present": "yes"},
    ):
        assert answer(odd)["query"] == "v=1&stage=1"


def test_an_answer_in_chinese() -> None:
    request = {"spec": {"T": "3", "weights": "random"}, "stage": 5, "select": {"q": "probs", "i": [0, 0, 1, 0]}}
    english, chinese = answer(request), answer({**request, "lang": "zh"})
    for one, two in zip(english["panels"], chinese["panels"], strict=True):
        assert one["slices"][0]["state"] == two["slices"][0]["state"]
        assert CJK.search(two["title"]) and not CJK.search(one["title"])
    assert CJK.search(chinese["inspect"]["title"]) and all(map(CJK.search, chinese["facts"]))
    assert not any(map(CJK.search, english["facts"]))
    aside = answer({"want": ["softmax", "norms"], "lang": "zh"})
    assert all(map(CJK.search, [*aside["softmax"]["sentences"], *aside["norms"]["sentences"]]))


def test_the_fixed_part_in_another_language() -> None:
    reply = answer({"want": ["fixed"], "lang": "zh"})
    assert reply["fixed"] == fixed("zh") and reply["first"]["ok"]
    assert fixed("zh").keys() == fixed("en").keys()
    assert CJK.search(fixed("zh")["stages"][3]["title"]) and CJK.search(fixed("zh")["quantities"]["probs"]["title"])
    assert fixed("zh")["texts"]["lang"] == "zh"


def test_the_language_of_a_request() -> None:
    asked = [({}, "en"), ({"lang": "zh"}, "zh"), ({"lang": "../zh"}, "en"), ({"lang": 3}, "en")]
    assert [language(request) for request, _ in asked] == [lang for _, lang in asked]
