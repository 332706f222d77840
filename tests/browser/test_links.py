"""Links on the real page: what they say is shown, what is hostile in them is text, and the page's policy is kept."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

import httpx
import pytest
from playwright.sync_api import Browser, expect

from explorer import Edit, RunSpec, run
from explorer.link import KEYS, View, decode, encode
from tests.browser.explorer_page import ExplorerPage
from tests.browser.server import Server

Open = Callable[..., ExplorerPage]
EDITED = RunSpec(B=2, T=3, d_model=8, h=2, weights="random", seed=5, edits=(Edit("probs", (0, 1, 2, 0), 0.75),))
OTHERS = ("stage", "cell", "show", "row", "head", "lang", "present", "token", "expert", "off", "unknown")
MARKUP = (
    "<img src=x onerror=window.hit=1>",
    '"><svg onload=window.hit=1>',
    "<script>window.hit=1</script>",
    "javascript:window.hit=1",
    "{{constructor.constructor('window.hit=1')()}}",
    "${window.hit=1}",
)


def test_a_link_opens_what_it_says(open_explorer: Open) -> None:
    explorer = open_explorer("?" + encode(EDITED, View(stage=5, head=1)))
    assert explorer.field("T").input_value() == "3"
    cells, trace = explorer.cells()["probs"], run(EDITED)
    for index, shown in cells.items():
        assert shown == pytest.approx(trace.value("probs", index), rel=1e-3, abs=1e-6)
    assert cells[0, 1, 2, 0] == 0.75


def test_the_address_of_a_page_opens_the_same_picture_elsewhere(open_explorer: Open) -> None:
    explorer = open_explorer("?v=1&T=3&stage=4")
    with explorer.repaint():
        explorer.type_cell("scores", (0, 0, 2, 1), "2.5")
    shown = explorer.texts()
    query = explorer.page.evaluate("location.search")
    spec, view, notes = decode(query)
    assert (spec, view.stage, notes) == (RunSpec(T=3, edits=(Edit("scores", (0, 0, 2, 1), 2.5),)), 4, [])
    assert open_explorer(query).texts() == shown


def test_a_what_if_that_is_off_stays_in_the_list_through_its_link(open_explorer: Open) -> None:
    explorer = open_explorer("?T=3&s=no_rope!no_mask&stage=5")
    with explorer.repaint():
        explorer.page.locator("[data-switch-on=no_rope] input").uncheck()
    explorer.page.wait_for_function("location.search.includes('off=')")
    spec, view, notes = decode(explorer.page.evaluate("location.search"))
    assert (spec.switches, view.idle, notes) == (("no_mask",), ("no_rope",), [])
    again = open_explorer(explorer.page.evaluate("location.search"))
    expect(again.page.locator("[data-switch-on=no_rope] input")).not_to_be_checked()
    expect(again.page.locator("[data-switch-on=no_mask] input")).to_be_checked()
    with again.repaint():
        again.page.locator("[data-switch-on=no_rope] input").check()
    expect(again.page.locator("[data-switch=no_rope]")).to_have_attribute("aria-pressed", "true")


def test_markup_in_a_link_is_shown_and_never_run(open_explorer: Open) -> None:
    """Everywhere at once: in each part that a link has, in an unknown one, and as a name of one."""
    parts = [f"{key}={quote(MARKUP[n % len(MARKUP)])}" for n, key in enumerate((*KEYS.values(), *OTHERS))]
    for query in ("&".join(["v=1", *parts]), "&".join(["v=1", "text=ok", *(f"{quote(m)}=1" for m in MARKUP)])):
        explorer = open_explorer(f"?{query}")
        explorer.settle()
        assert explorer.page.evaluate("window.hit") is None
        assert explorer.page.locator("img[src=x], svg[onload]").count() == 0
        assert explorer.value("resid_pre", 0, 0, 0) == 1
        expect(explorer.page.get_by_text("<img src=x").first).to_be_visible()


def test_an_oversized_link_opens_the_default(open_explorer: Open) -> None:
    explorer = open_explorer("?v=1&T=3&text=" + "a" * 17_000)
    assert explorer.field("T").input_value() == "2"
    expect(explorer.page.get_by_text("characters; at most 16,000 are read").first).to_be_visible()


def test_the_page_s_policy_is_in_force(chromium: Browser, server: Server) -> None:
    """The watch of every other test fails on a violation; this one shows that there is something to violate."""
    assert "nonce-" in httpx.get(server.url, trust_env=False).headers["content-security-policy"]
    page = chromium.new_page()
    page.goto(server.url)
    page.wait_for_selector("[data-ready=true]")
    ran = page.evaluate(
        """() => new Promise(done => {
            document.addEventListener('securitypolicyviolation', event => done(event.violatedDirective));
            const script = document.createElement('script');
            script.src = 'data:text/javascript,window.hit=1';
            script.onload = () => done('it ran');
            document.head.append(script);
        })"""
    )
    assert ran == "script-src-elem"
    assert page.evaluate("window.hit") is None
    page.close()
