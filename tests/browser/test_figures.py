"""Figures that are on the page already follow the theme; rows of grids are called as the sentences call them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
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


def test_round_figures_leave_no_room_that_they_do_not_use(new_page: Callable[..., Page], server: Server) -> None:
    page = new_page()
    ExplorerPage(page).open(server.url + "?B=2&T=5&d=12&h=3&w=random&stage=3")
    graph = page.locator("[data-figure=rope] .graph")
    for width in (1280, 1120, 1900):
        page.set_viewport_size({"width": width, "height": 800})
        graph.scroll_into_view_if_needed()
        page.wait_for_function("graph => graph.querySelector('.main-svg')", arg=graph.element_handle())
        page.wait_for_timeout(600)
        unused = graph.evaluate(
            "graph => ['yaxis', 'xaxis'].map(name => graph._fullLayout[name].domain).map(([from, to]) => to - from)"
        )
        assert max(unused) > 0.99, (width, unused)  # one way it fills its box
        assert unused[0] > 0.95, (width, unused)  # and never leaves a band above and below


@pytest.mark.parametrize(
    ("query", "whole"), [("?stage=1", True), ("?stage=5", True), ("?T=40&d=8&h=2&w=random", False)]
)
def test_a_phone_shows_a_figure_of_few_columns_whole(
    new_page: Callable[..., Page], server: Server, query: str, whole: bool
) -> None:
    page = new_page(width=390, height=844)
    ExplorerPage(page).open(server.url + query)
    box = page.locator(".figures .figure-box").first
    box.scroll_into_view_if_needed()
    page.wait_for_function("box => box.querySelector('svg')", arg=box.element_handle())
    assert box.evaluate("box => box.scrollWidth <= box.clientWidth") is whole


CAPSTONE = "?v=1&B=2&T=5&d=12&h=3&w=random&stage=5"
ROOM = """
    graph => {
        const box = node => node.getBoundingClientRect(), heat = box(graph.querySelector('.heatmaplayer image'));
        const texts = [...graph.querySelectorAll('.scatterlayer text')].filter(text => text.textContent);
        const title = Math.max(...[...graph.querySelectorAll('.xtitle')].map(text => box(text).bottom));
        return {below: box(graph).bottom - title, cell: heat.width / 5, texts: texts.map(text => box(text).width)};
    }
"""


@pytest.mark.parametrize("width", [1280, 390])
def test_heatmaps_of_several_heads_leave_no_gap_and_their_numbers_stay_in_their_cells(
    open_explorer: Callable[..., ExplorerPage], width: int
) -> None:
    graph = open_explorer(CAPSTONE, width=width, height=844).page.locator('[data-figure="probs"] .graph')
    graph.scroll_into_view_if_needed()
    expect(graph.locator(".heatmaplayer image").first).to_be_visible()
    found = graph.evaluate(ROOM)
    assert len(found["texts"]) == 3 * 25
    assert max(found["texts"]) < found["cell"], "numbers of neighbours run into each other"
    assert 0 <= found["below"] < 40, found["below"]


def test_in_present_mode_a_number_is_large_and_fits_its_cell(open_explorer: Callable[..., ExplorerPage]) -> None:
    page = open_explorer(CAPSTONE + "&present=1").page
    faces = page.locator(".cell .face")
    sizes = faces.evaluate_all(
        "all => all.map(one => [one.scrollWidth - one.clientWidth, getComputedStyle(one).fontSize])"
    )
    assert len(sizes) > 100
    assert max(over for over, _ in sizes) <= 0
    assert min(float(size.removesuffix("px")) for _, size in sizes) >= 14
