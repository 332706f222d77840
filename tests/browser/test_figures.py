"""Figures that are on the page already follow the theme; rows of grids are called as the sentences call them."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.explorer_page import ExplorerPage
from tests.browser.server import Server

COLOURS = """() => {
    const graph = document.querySelector("[data-figure] .graph");
    const fill = place => getComputedStyle(graph.querySelector(place)).fill;
    return [".xtick text", ".ytick text", ".textpoint text", ".colorbar text", ".xtitle"].map(fill);
}"""
TOGGLE = "document.body.classList.toggle('dark')"
ONE_KIND = "() => document.querySelector('[data-figure] .graph .colorbar text')"
CACHED = "?weights=random&T=3&d_model=8&h=2&past=2"


def light(colour: str) -> bool:
    return sum(map(int, colour.removeprefix("rgb(").rstrip(")").split(", "))) > 3 * 128


def test_a_drawn_figure_follows_the_theme_whole(new_page: Callable[..., Page], server: Server) -> None:
    page = new_page()
    ExplorerPage(page).open(server.url + "?stage=5")
    page.locator("[data-figure]").first.scroll_into_view_if_needed()
    page.wait_for_function(ONE_KIND)
    before = page.evaluate(COLOURS)
    assert not any(map(light, before)), before
    page.evaluate(TOGGLE)
    page.wait_for_function(ONE_KIND)
    after = page.evaluate(COLOURS)
    assert all(map(light, after)), after
    page.evaluate(TOGGLE)
    page.wait_for_function(ONE_KIND)
    assert page.evaluate(COLOURS) == before


def test_rows_of_queries_carry_positions_with_a_cache(new_page: Callable[..., Page], server: Server) -> None:
    page = new_page()
    ExplorerPage(page).open(server.url + CACHED + "&stage=5")
    heads = page.locator("[data-panel=probs] .grid").first.locator("[role=rowheader]")
    expect(heads).to_have_text(["2", "3", "4"])
    expect(page.locator("[data-panel=v]")).to_have_count(0)
    expect(page.locator("[data-panel=present_v]")).to_have_count(1)
    expect(page.locator("body")).to_contain_text("Query 4 of head 0")


def test_a_figure_of_fewer_heads_is_drawn_anew(open_explorer: Callable[..., ExplorerPage]) -> None:
    def drawn(explorer: ExplorerPage) -> object:
        graph = explorer.page.locator("[data-figure=probs] .graph")
        graph.scroll_into_view_if_needed()
        expect(graph.locator("svg.main-svg").first).to_be_visible()
        graph.page.wait_for_function("graph => graph.closest('[data-figure]').figure.drawn", arg=graph.element_handle())
        return graph.evaluate(
            "graph => [graph.data.map(t => [t.type, t.z]), graph._fullLayout.xaxis.range, graph.style.height]"
        )

    explorer = open_explorer("?v=1&B=2&T=5&d=12&h=3&w=random&stage=5")
    before = drawn(explorer)
    with explorer.repaint():
        explorer.page.locator("[data-preset=toy]").click()
    after = drawn(explorer)
    assert after != before
    assert after == drawn(open_explorer("?v=1&stage=5"))
