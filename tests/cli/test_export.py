"""The exported page: complete, true, without a request, and with nothing of a visitor's text as markup."""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict
from html import unescape
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from explorer import Edit, RunSpec, run
from explorer.__main__ import main
from explorer.export import page
from explorer.export.page import LOCALES
from explorer.export.texts import TEXTS, Texts
from explorer.link import LANGUAGES, decode
from explorer.offers import OFFERS
from explorer.sources import offer
from explorer.spec import PRESETS
from tests.small_checkpoint import write_checkpoint

CELL = re.compile(
    r'<td(?: class="([\w ]+)")? data-q="([\w.]+)" data-i="([\d,]+)" title="([^"]*)"(?: style="[^"]*")?>([^<]*)</td>'
)
EDITED = RunSpec(edits=(Edit("resid_pre", (0, 0, 1), 2.0), Edit("probs", (0, 0, 1, 0), 0.75)), switches=("no_rope",))
MOE = RunSpec(B=2, T=6, d_model=16, h=4, h_kv=2, weights="random", experts=4, experts_per_token=2, past=2)


def cells(text: str) -> dict[tuple[str, tuple[int, ...]], tuple[str, str, str]]:
    """(quantity, index) -> classes, full text, shown text."""
    return {
        (q, tuple(map(int, i.split(",")))): (marks, title, shown) for marks, q, i, title, shown in CELL.findall(text)
    }


@pytest.mark.parametrize(
    "spec",
    [RunSpec(), EDITED, PRESETS["capstone"], PRESETS["minimind3"], MOE],
    ids=("toy", "edited", "capstone", "minimind3", "moe"),
)
def test_every_number_on_it_is_the_trace_s(spec: RunSpec) -> None:
    trace, found = run(spec), cells(page(spec, row=1, head=1))
    assert len(found) > 60
    for (name, index), (_, title, _) in found.items():
        value = float(title.split(" = ")[1].split(",")[0])
        expected = trace.value(name, index)
        assert value == expected or (math.isnan(value) and math.isnan(expected)), (name, index)


def test_edits_and_what_they_changed_are_marked() -> None:
    found = cells(page(EDITED))
    assert found["resid_pre", (0, 0, 1)] == ("edited changed", "resid_pre[0,0,1] = 2.0, unedited 1.0", "2")
    assert found["probs", (0, 0, 1, 0)][0] == "edited changed"
    assert found["masked_scores", (0, 0, 0, 1)] == ("hidden", "masked_scores[0,0,0,1] = -inf", "−∞")
    assert found["attn_norm", (0, 1, 0)][0] == ""
    assert not [marks for marks, _, _ in cells(page(RunSpec())).values() if "changed" in marks or "edited" in marks]


def test_colours_say_sign_and_size() -> None:
    spec = RunSpec(T=3, d_model=8, h=2, weights="random")
    shades = dict(re.findall(r'data-q="(\w+)" data-i="0,0,2,1"[^>]*?(?: style="--(\w+:\d+)%")?>', page(spec)))
    q, probs = run(spec)["q"][0, 0], run(spec)["probs"][0, 0, 2, 1]
    side, far = shades["q"].split(":")
    assert side == ("plus" if q[2, 1] > 0 else "minus")
    limit = next(step for step in (1, 1.5, 2, 3, 5, 7, 10) if abs(run(spec)["q"][0]).max() <= step)
    assert abs(int(far) / 100 - abs(q[2, 1]) / limit) <= 0.006
    assert shades["probs"] == f"unit:{probs:.0%}"[:-1]
    assert "style" not in re.search(r"<td[^>]*>−∞", page(spec))[0]  # type: ignore[index]


def test_it_tells_the_whole_walk_and_how_to_open_it_again() -> None:
    text = page(EDITED)
    assert re.findall(r'<section class="stage" id="stage-(\d)">', text) == list("12345678")
    assert text.count("<math") >= 8
    assert "<li>no RoPE: only the mask still tells order</li>" in text
    assert "?v=1&amp;e=resid_pre@0.0.1~2!probs@0.0.1.0~0.75&amp;s=no_rope&amp;stage=1" in text
    assert len(re.findall(r'<tr data-row="', text)) == len(run(EDITED).names)
    drawings = json.loads(re.search(r'id="drawings">(.*?)</script>', text, re.DOTALL)[1])  # type: ignore[index]
    assert len(drawings["figures"]) == len(re.findall(r'data-figure="', text)) >= 8


def test_it_opens_again_where_the_link_was(tmp_path: Path) -> None:
    file = tmp_path / "walk.html"
    link = "v=1&B=2&T=3&d=8&h=2&w=random&s=only_head:1&stage=5&row=1&head=1&token=2&cell=probs@1.1.2.0&show=both"
    assert main(["export", str(file), "--link", link]) == 0
    text = file.read_text(encoding="utf-8")
    again = re.search(r"<code>\?(v=1.*?)</code>", text)
    assert again and decode(unescape(again[1])) == decode(link)
    assert "<li>only this head contributes: 1</li>" in text and 'data-q="probs" data-i="1,1,2,0"' in text
    assert main(["export", str(file), "--link", link, "--head", "0"]) == 0
    assert "head=1" not in file.read_text(encoding="utf-8")


def test_grids_have_row_and_column_numbers() -> None:
    text = page(RunSpec(T=3, d_model=24, h=2, weights="random"))
    for name, (rows, columns) in {"resid_pre": (3, 24), "self_attn.q_proj.weight": (8, 8), "probs": (3, 3)}.items():
        table = next(t for t in re.findall(r"<table>.*?</table>", text) if f'data-q="{name}"' in t)
        head, *lines = table.split("</tr>")
        assert re.findall(r"<th>(\d*)</th>", head) == ["", *map(str, range(columns))]
        assert [re.findall(r"<th>(\d+)</th>", line) for line in lines[:rows]] == [[str(r)] for r in range(rows)]
    table = next(t for t in re.findall(r"<table>.*?</table>", text) if 'data-q="input_layernorm.weight"' in t)
    assert table.count("<th>") == 24, "a vector has one row, without a number"


def test_what_a_visitor_wrote_is_text(tmp_path: Path) -> None:
    name = "<img src=x onerror=alert(1)>"
    offer(name, write_checkpoint(tmp_path / "tiny"))
    try:
        text = page(RunSpec(weights=f"checkpoint:{name}", text="the </p><script>alert(1)</script> cat", T=3))
    finally:
        del OFFERS[name]
    assert "<img" not in text
    assert "<script>alert" not in text
    assert name in unescape(text)


def test_it_speaks_chinese_throughout() -> None:
    text = page(EDITED, lang="zh")
    assert '<html lang="zh-Hans">' in text
    assert cells(text)["resid_pre", (0, 0, 1)] == ("edited changed", "resid_pre[0,0,1] = 2.0, 未改动时为 1.0", "2")
    body = re.sub(r"<(script|style|code|pre|math)\b.*?</\1>|<[^>]+>", " ", text.split("<body>")[1], flags=re.DOTALL)
    english = {
        w for w in re.findall(r"[A-Za-z]{4,}", body) if w.lower() in ("changes", "stage", "token", "head", "rows")
    }
    assert not english
    assert "&amp;lang=zh" in text
    assert "<td>已编辑</td>" in text and "<td>与 k_rot 共用内存</td>" in text and "same memory" not in text
    whole = page(RunSpec(edits=(Edit("attn_out", (), [[[1, 2], [3, 4]]]),)), lang="zh")
    assert "attn_out = 给定的数值" in whole and "given values" not in whole
    with pytest.raises(LookupError, match="There is no page in 'fr'. Languages: en, zh."):
        page(EDITED, lang="fr")


def test_languages_have_the_same_words_and_places_for_them() -> None:
    def places(texts: Texts) -> dict[str, set[str]]:
        return {name: set(re.findall(r"{(\w+)}", str(value))) for name, value in asdict(texts).items()}

    assert set(TEXTS) == set(LANGUAGES) == set(LOCALES)
    assert all(places(texts) == places(TEXTS["en"]) for texts in TEXTS.values())
    assert all(all(value) for texts in TEXTS.values() for value in asdict(texts).values())


@pytest.mark.browser
def test_it_opens_from_disk_without_any_request(tmp_path: Path, chromium: Browser) -> None:
    file = tmp_path / "walk.html"
    file.write_text(page(MOE), encoding="utf-8")
    troubles: list[str] = []
    tab = chromium.new_page(viewport={"width": 390, "height": 800}, color_scheme="dark")
    tab.on("console", lambda message: troubles.append(message.text))
    tab.on("pageerror", lambda error: troubles.append(str(error)))
    tab.on("request", lambda request: troubles.append(request.url) if request.url != file.as_uri() else None)
    tab.goto(file.as_uri())
    tab.wait_for_selector("[data-drawn=true]", timeout=30_000)
    drawn = tab.locator("[data-figure] .main-svg").count()
    assert drawn >= tab.locator("[data-figure]").count() >= 8
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing sticks out on a phone"
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 23, 27)"
    faces = "document.fonts.ready.then(all => [...all].filter(f => f.status === 'loaded').map(f => f.family))"
    assert {"Source Sans 3", "Source Serif 4"} <= {name.strip('"') for name in tab.evaluate(faces)}
    tab.close()
    assert not [t for t in troubles if not t.startswith("data:")], troubles


def test_scores_that_were_not_kept_are_shown_as_far_as_they_are_seen() -> None:
    spec = RunSpec(B=2, T=1024, d_model=64, h=32, weights="random")
    done = run(spec)
    assert "probs" in done.recomputed
    text = page(spec, row=1, head=5)
    shown = dict(re.findall(r'data-q="probs" data-i="1,5,(\d,\d)" title="probs\[[^=]*= ([^",]*)', text))
    rows = done.rows("probs", 1, 5, 0, 8)
    assert len(shown) == 64
    for index, value in shown.items():
        i, j = map(int, index.split(","))
        assert float(value) == rows[i, j]


@pytest.mark.parametrize("index", [(0, 1, 2), (None, 1, None), ()])
def test_marks_of_edits_are_those_of_the_matrix_shown(index: tuple[int | None, ...]) -> None:
    value = 7.0 if index else tuple(tuple((7.0, 7.0, 7.0, 7.0) for _ in range(3)) for _ in range(2))
    spec = RunSpec(B=2, T=3, d_model=4, h=2, weights="random", edits=(Edit("resid_pre", index, value),))
    text = page(spec)
    marked = set(re.findall(r'<td class="edited[^"]*" data-q="resid_pre" data-i="([\d,]+)"', text))
    every = {(b, t, d) for b in (0,) for t in range(3) for d in range(4)}
    wanted = {cell for cell in every if all(i is None or i == at for i, at in zip(index, cell, strict=False))}
    assert marked == {",".join(map(str, cell)) for cell in wanted}
