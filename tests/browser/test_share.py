"""The share dialog: link, QR code and snippet; what a link cannot hold; hostile links."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from explorer import Edit, RunSpec, link
from tests.browser.explorer_page import ExplorerPage
from tests.browser.server import Server

OPEN = "dialog.share[open]"


def dialog(explorer: ExplorerPage) -> Page:
    explorer.page.locator("[data-act=share]").click()
    expect(explorer.page.locator(OPEN)).to_be_visible()
    return explorer.page


def test_the_link_opens_the_same_picture(
    open_explorer: Callable[..., ExplorerPage], new_page: Callable[..., Page]
) -> None:
    explorer = open_explorer("?T=3&d=4&h=2&w=random&stage=4")
    with explorer.repaint():
        explorer.type_cell("scores", (0, 1, 2, 0), "1.5")
    page = dialog(explorer)
    field = page.locator("[data-share=link]")
    expect(field).not_to_have_value("")
    other = ExplorerPage(new_page())
    other.open(field.input_value())
    assert other.texts() == explorer.texts()
    expect(page.locator("[data-qr] svg")).to_be_visible()
    snippet = page.locator("[data-share=embed]").input_value()
    assert snippet.startswith('<iframe src="http') and snippet.endswith("</iframe>") and "&amp;" in snippet


def test_copying(new_page: Callable[..., Page], server: Server) -> None:
    page = new_page(permissions=["clipboard-read", "clipboard-write"])
    explorer = ExplorerPage(page)
    explorer.open(server.url)
    dialog(explorer)
    expect(page.locator("[data-share=link]")).not_to_have_value("")
    page.locator("[data-copy=link]").click()
    expect(page.locator("[data-copy=link]")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == page.locator("[data-share=link]").input_value()


def test_copying_without_a_clipboard(explorer: ExplorerPage) -> None:
    page = explorer.page
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('closed'));"
                  " document.execCommand = () => false; }")  # fmt: skip
    dialog(explorer)
    expect(page.locator("[data-share=link]")).not_to_have_value("")
    page.locator("[data-copy=link]").click()
    expect(page.locator("[data-share-note]")).to_contain_text("Ctrl C")
    assert page.evaluate("document.activeElement.dataset.share") == "link"
    assert page.evaluate("document.activeElement.selectionEnd - document.activeElement.selectionStart") > 10


def test_a_link_for_present_mode(explorer: ExplorerPage) -> None:
    page = dialog(explorer)
    page.locator("#share-present").check()
    page.wait_for_function("document.querySelector('[data-share=link]').value.includes('present=1')")


@pytest.fixture
def narrow(tmp_path: Path) -> Iterator[str]:
    """The address of a server whose links are short."""
    with Server(tmp_path / "app.log", extra=["--limits", "link=1000"]) as running:
        yield running.url


def test_a_state_too_large_for_a_link_says_so(chromium: Browser, narrow: str) -> None:
    spec = RunSpec(T=8, d_model=8, h=2, weights="random")
    while len(link.encode(spec)) < 940:
        n = len(spec.edits)
        spec = spec.with_edit(Edit("resid_pre", (0, n // 8, n % 8), 0.123456789))
    context = chromium.new_context(viewport={"width": 1280, "height": 720})
    explorer = ExplorerPage(context.new_page())
    explorer.open(f"{narrow}?{link.encode(spec)}")
    for d, text in enumerate(("0.123456", "0.234567", "0.345678")):
        with explorer.repaint():
            explorer.type_cell("resid_pre", (0, 7, d), text)
    page = explorer.page
    expect(page.locator(".notes")).to_contain_text("The address does not hold this state.")
    page.wait_for_function("location.search === ''")  # no link rather than a wrong one
    dialog(explorer)
    expect(page.locator("[data-share-note]")).to_contain_text("at most 1,000 are allowed")
    expect(page.locator("[data-share=link]")).to_be_hidden()
    page.keyboard.press("Escape")
    with explorer.repaint():
        page.get_by_role("button", name="Remove all").click()
    page.wait_for_function("location.search.includes('T=8')")
    context.close()


HOSTILE = [
    "<img src=x onerror=window.harmed=1>", "\"><script>window.harmed=1</script>", "javascript:window.harmed=1",
    "{{7*7}}", "<math><mtext></mtext></math><svg onload=window.harmed=1>", "\x00\u202e\ud7ff",
]  # fmt: skip


@pytest.mark.parametrize("key", ["w", "text", "e", "s", "cell", "T", "lang", "present", "nonsense"])
def test_hostile_links_say_what_was_ignored_and_render_nothing(
    open_explorer: Callable[..., ExplorerPage], server: Server, key: str
) -> None:
    page = open_explorer().page
    for text in HOSTILE:
        page.goto(f"{server.url}?{key}={quote(text)}")
        page.wait_for_selector("[data-ready=true]")
        if key != "text":  # of a text without a checkpoint nothing is made, and nothing need be said
            expect(page.locator(".notes")).to_contain_text("ignored")
        assert page.evaluate("window.harmed") is None
        assert page.locator(".mbx script, .mbx img, .notes *:not(p, div, button, span, svg, path)").count() == 0
        assert page.locator('[data-q="resid_pre"]').count() == 4, "the default opens"


def test_inside_another_page_it_offers_its_own_address(new_page: Callable[..., Page], server: Server) -> None:
    page = new_page()
    page.goto(server.url + "healthz")
    page.evaluate(
        "url => { document.body.innerHTML = ''; const f = document.createElement('iframe'); f.src = url;"
        " f.style = 'width:1200px;height:700px'; document.body.append(f); }", server.url + "?stage=3"
    )  # fmt: skip
    frame = page.frame_locator("iframe")
    frame.locator("[data-ready=true]").wait_for()
    frame.locator("[data-act=share]").click()
    way_out = frame.locator("dialog[open] a.share-open")
    expect(way_out).to_have_attribute("href", server.url + "?v=1&stage=3")
    expect(way_out).to_have_attribute("target", "_blank")
