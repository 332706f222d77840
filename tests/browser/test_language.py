"""English and Chinese: by the browser, by the switch, by the link; the same state and numbers in both."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from explorer.ui.told import names
from tests.browser.explorer_page import ExplorerPage
from tests.browser.server import Server

CJK = re.compile(r"[\u4e00-\u9fff]")
LANG = "document.documentElement.lang"


def opened(page: Page, url: str) -> ExplorerPage:
    explorer = ExplorerPage(page)
    explorer.open(url)
    return explorer


def test_the_browser_chooses(new_page: Callable[..., Page], server: Server) -> None:
    for locale, lang, title in [
        ("zh-CN", "zh-Hans", "归一化"),
        ("en-GB", "en", "Normalize"),
        ("fr-FR", "en", "Normalize"),
    ]:
        explorer = opened(new_page(locale=locale), server.url)
        assert explorer.page.evaluate(LANG) == lang
        expect(explorer.page.locator("h1")).to_contain_text(title)
        assert "lang=" not in explorer.page.url


def test_the_link_overrules_the_browser(new_page: Callable[..., Page], server: Server) -> None:
    explorer = opened(new_page(locale="zh-CN"), server.url + "?stage=4&lang=en")
    assert explorer.page.evaluate(LANG) == "en"
    expect(explorer.page.locator("h1")).to_have_text("Score and mask")
    explorer = opened(new_page(), server.url + "?stage=4&lang=zh")
    assert CJK.search(explorer.page.locator("h1").inner_text())
    assert "lang=zh" in explorer.page.url


def test_the_switch_keeps_the_state(explorer: ExplorerPage) -> None:
    page = explorer.page
    explorer.stage(4)
    with explorer.repaint():
        explorer.type_cell("scores", (0, 0, 1, 0), "3")
    before = explorer.texts()
    page.locator("[data-act=language]").click()
    page.wait_for_function(f"{LANG} === 'zh-Hans' && document.querySelectorAll('[data-q]').length > 0")
    explorer.settle()
    assert explorer.texts() == before
    page.wait_for_function("location.search.includes('lang=zh') && location.search.includes('e=scores')")
    assert page.evaluate("document.activeElement.dataset.act") == "language"
    with explorer.repaint():
        page.keyboard.press("ControlOrMeta+z")  # once: the keys of the page before are dead
    assert explorer.texts() != before
    assert page.locator("[data-edit]").count() == 0
    with explorer.repaint():
        page.keyboard.press("ArrowRight")
    expect(page.locator('button[data-stage="5"]')).to_have_attribute("aria-current", "step")
    page.locator("[data-act=language]").click()
    page.wait_for_function(f"{LANG} === 'en' && document.querySelector('h1').textContent.includes('Softmax')")


NEUTRAL = "pre, code, .code figcaption, .brand, math, .sym, kbd, [hidden], .share"  # names and what is not shown
TEXTS = """
    NEUTRAL => {
        const found = [], page = document.querySelector('.mbx');
        const walk = document.createTreeWalker(page, NodeFilter.SHOW_TEXT);
        for (let node; (node = walk.nextNode());) {
            const box = node.parentElement;
            if (!node.data.trim() || box.closest(NEUTRAL)) continue;
            found.push(node.data.trim());
        }
        return found; }
"""
NAMES = re.compile(
    r"RMSNorm|[WX]_\w+|Shift|flash|LayerNorm|RMS|RoPE|YaRN|MiniMind(-3)?|SiLU|SwiGLU|[Ss]oftmax|GQA|NaN|attn|next|model|FLOPs|float32|KiB|MiB"
    r"|bfloat16|float16|float64|Esc|Ctrl|CPU|GPU|CUDA|max|exp|rms|mean|cos|sin|concat|transformer_model\\.py|block\\.py"
)


def test_no_english_is_left_on_any_stage(open_explorer: Callable[..., ExplorerPage]) -> None:
    explorer = open_explorer("?lang=zh&T=3&d=4&h=2&w=random&s=no_mask")
    left: dict[str, int] = {}
    for stage in range(1, 9):
        explorer.stage(stage)
        for text in explorer.page.evaluate(TEXTS, NEUTRAL):
            if re.search(r"[A-Za-z]{4,}", NAMES.sub("", text)):
                left[text] = stage
    assert not left


def test_what_is_wrong_is_said_in_chinese(open_explorer: Callable[..., ExplorerPage]) -> None:
    page = open_explorer("?lang=zh&colour=red&d=4&h=3&w=random").page
    notes = page.locator(".notes p").all_inner_texts()
    assert len(notes) == 2 and all(CJK.search(note) and "ignored" not in note for note in notes), notes
    for name, typed in (("T", "nine"), ("seed", "1.5"), ("h", "3")):
        page.locator(f"input[name={name}]").fill(typed)
        page.keyboard.press("Tab")
        expect(page.locator(f"[data-error-for={name}]")).to_have_text(
            re.compile(f"{names('zh')[name]} = .*[\u4e00-\u9fff].*。")
        )
        page.locator(f"input[name={name}]").fill("2")


def test_the_first_paint_asks_for_no_texts(new_page: Callable[..., Page], server: Server) -> None:
    page = new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "component_server" in request.url else None)
    opened(page, server.url)
    assert asked == []
