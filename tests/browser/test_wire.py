"""Bad networks: stalled, held and refused answers, and a change of language in the midst of them."""

from __future__ import annotations

from playwright.sync_api import Browser, Route, expect

from tests.browser.explorer_page import ExplorerPage
from tests.browser.server import Server

UPDATE = "**/component_server/"
GENERAL = '[data-error-for=""]'
LANG = "document.documentElement.lang"


def test_half_a_character_is_replaced(explorer: ExplorerPage) -> None:
    page = explorer.page
    own = "performance.getEntriesByType('resource').find(e => e.name.endsWith('/main.js')).name"
    asking = f"import({own}.replace('main.js', 'asking.js'))"
    found = page.evaluate(
        f"async () => {{ const {{whole}} = await {asking};"
        " return ['\\ud800x', 'a\\\\ud800', '\\ud83d\\ude00'].map(s => JSON.parse(whole(JSON.stringify(s)))); }"
    )
    assert found == ["\ufffdx", "a\\ud800", "\U0001f600"]


def test_an_answer_without_a_number_is_shown(explorer: ExplorerPage) -> None:
    explorer.page.route(UPDATE, lambda route: route.fulfill(json='{"ok":false,"seq":null,"errors":{"":"Unreadable."}}'))
    explorer.set_field("T", "3")
    expect(explorer.page.locator(GENERAL)).to_have_text("Unreadable.")
    explorer.page.unroute(UPDATE)
    with explorer.repaint():
        explorer.set_field("T", "4")
    expect(explorer.page.locator(GENERAL)).to_be_empty()


def test_a_request_that_is_too_large_is_not_repeated(explorer: ExplorerPage) -> None:
    asked: list[str] = []
    explorer.page.on(
        "request", lambda request: asked.append(request.url) if "component_server" in request.url else None
    )
    explorer.page.evaluate(
        "field => { field.value = 'x'.repeat(300000); field.dispatchEvent(new Event('input', {bubbles: true})); }",
        explorer.field("text").element_handle(),
    )
    expect(explorer.page.locator(GENERAL)).to_contain_text("too large")
    assert asked == []


def test_a_refusal_by_the_network_is_told(chromium: Browser, server: Server) -> None:
    page, asked = chromium.new_page(), []  # not watched: the browser reports the refusal as an error
    explorer = ExplorerPage(page)
    explorer.open(server.url)

    def refuse(route: Route) -> None:
        asked.append(route.request.url)
        route.fulfill(status=413, body="no")

    page.route(UPDATE, refuse)
    explorer.set_field("T", "3")
    expect(page.locator(GENERAL)).to_contain_text("too large")
    page.wait_for_timeout(800)
    assert len(asked) == 1
    page.close()


def test_a_stalled_connection_is_told_and_ends(explorer: ExplorerPage) -> None:
    held: list[Route] = []
    explorer.page.route(UPDATE, lambda route: held.append(route))
    explorer.set_field("T", "3")
    expect(explorer.page.locator(GENERAL)).to_contain_text("taking long")
    expect(explorer.root).to_have_class("mbx waiting")
    with explorer.repaint():
        held.pop().continue_()
    expect(explorer.page.locator(GENERAL)).to_be_empty()
    expect(explorer.root).to_have_class("mbx")


def test_the_language_changes_while_a_field_is_wrong(explorer: ExplorerPage) -> None:
    page = explorer.page
    explorer.set_field("h", "3")
    explorer.expect_error("h")
    before = explorer.texts()
    page.locator("[data-act=language]").click()
    page.wait_for_function(f"{LANG} === 'zh-Hans' && document.querySelectorAll('[data-q]').length > 0")
    explorer.expect_error("h")
    expect(explorer.field("h")).to_have_value("3")
    assert explorer.texts() == before
    with explorer.repaint():
        explorer.set_field("h", "1")
    explorer.expect_no_errors()


def test_an_old_answer_brings_no_old_page_back(explorer: ExplorerPage) -> None:
    page, held = explorer.page, []

    def hold(route: Route) -> None:
        if not held:
            held.append(route)
        else:
            route.continue_()

    page.route(UPDATE, hold)
    explorer.type_cell("resid_pre", (0, 0, 1), "2")
    page.wait_for_timeout(200)
    page.locator("[data-act=language]").click()
    page.wait_for_function(f"{LANG} === 'zh-Hans' && document.querySelector('h1').textContent.includes('归一化')")
    explorer.settle()
    held[0].continue_()
    page.wait_for_timeout(600)
    expect(page.locator("h1")).to_contain_text("归一化")
    assert page.locator("[data-edit]").count() == 1


def test_what_is_typed_while_the_texts_are_on_their_way_is_kept(explorer: ExplorerPage) -> None:
    page, held = explorer.page, []

    def hold(route: Route) -> None:
        (held.append if "fixed" in (route.request.post_data or "") else Route.continue_)(route)

    page.route(UPDATE, hold)
    page.locator("[data-act=language]").click()
    explorer.type_cell("resid_pre", (0, 0, 1), "2.5")
    held[0].continue_()
    page.wait_for_function(f"{LANG} === 'zh-Hans' && document.querySelector('h1').textContent.includes('归一化')")
    explorer.settle()
    assert explorer.value("resid_pre", 0, 0, 1) == 2.5
    assert page.locator("[data-edit]").count() == 1


def test_a_fold_that_got_no_answer_says_so_and_asks_again(explorer: ExplorerPage) -> None:
    page = explorer.page
    page.route(UPDATE, lambda route: route.fulfill(status=200, body="no JSON"))
    for name in ("quiz", "effects"):
        page.locator(f"details.{name} > summary").click()
        page.locator(f"details.{name}").scroll_into_view_if_needed()
        expect(page.locator(f'[data-error-for="{name}"]')).to_contain_text("does not answer")
    page.unroute(UPDATE)
    for name, found in (("quiz", "[data-question]"), ("effects", "[data-effect]")):
        for _ in range(2):
            page.locator(f"details.{name} > summary").click()
        expect(page.locator(found).first).to_be_visible()
        expect(page.locator(f'[data-error-for="{name}"]')).to_be_empty()


def test_figures_come_once_their_library_can_be_had(chromium: Browser, server: Server) -> None:
    page, wrong = chromium.new_page(), []  # not watched: the browser reports the missing file as an error
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.route("**/plotly.min.js", lambda route: route.abort())
    explorer = ExplorerPage(page)
    explorer.open(f"{server.url}?v=1&stage=5")
    with page.expect_event("requestfailed", lambda request: "plotly" in request.url):
        page.locator("[data-figure]").first.scroll_into_view_if_needed()
    page.unroute("**/plotly.min.js")
    explorer.stage(7)
    page.locator("[data-figure]").first.scroll_into_view_if_needed()
    expect(page.locator("[data-figure] svg.main-svg").first).to_be_visible()
    page.close()
    assert wrong == []


def test_a_server_that_comes_back_is_found_without_a_change(chromium: Browser, server: Server) -> None:
    page = chromium.new_page()  # not watched: the browser reports each try in vain
    explorer = ExplorerPage(page)
    explorer.open(server.url)
    page.route(UPDATE, lambda route: route.abort())
    explorer.set_field("T", "3")
    expect(page.locator(GENERAL)).to_contain_text("Trying again")
    expect(page.locator(GENERAL)).to_contain_text("asks again every ten seconds", timeout=40_000)
    assert explorer.field("T").input_value() == "3"
    page.unroute(UPDATE)
    expect(page.locator(GENERAL)).to_be_empty(timeout=40_000)
    assert explorer.cells()["resid_pre"].keys() == {(0, t, d) for t in range(3) for d in range(2)}
    page.close()
