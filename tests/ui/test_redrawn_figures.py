"""Figures whose traces alone are redrawn look like fresh ones."""

from __future__ import annotations

import pytest

from tests.browser.conftest import explorer, new_page, open_explorer, server  # noqa: F401
from tests.browser.explorer_page import ExplorerPage

pytestmark = pytest.mark.browser

MODULE = "[...document.querySelectorAll('link[rel=modulepreload]')].find(l => l.href.endsWith('/figure.js')).href"
PIXELS = """
    async fresh => {
        const graph = document.querySelector('.graph');
        let shown = graph;
        if (fresh) {
            const {clientWidth: wide, clientHeight: tall} = graph;
            shown = document.createElement('div');
            shown.style.cssText = `position:fixed;left:0;top:0;z-index:99;width:${wide}px;height:${tall}px`;
            document.querySelector('.mbx').append(shown);
            const [data, layout] = structuredClone([graph.data, graph.layout]);
            await Plotly.newPlot(shown, data, layout, {displayModeBar: false});
        }
        const url = await Plotly.toImage(shown, {format: 'png', width: 600, height: 400});
        const marks = [...shown.querySelectorAll('.plot image, .plot path, .plot text')];
        const said = n => [n.tagName, n.getAttribute('href') ?? '', n.getAttribute('d') ?? '', n.textContent];
        return [url, marks.map(said).sort().join()];
    }
"""


@pytest.mark.parametrize(
    ("stage", "q"), [(4, "q_rot"), (5, "masked_scores"), (7, "attn_out"), (3, "q_norm"), (1, "resid_pre")]
)
def test_redrawn_traces_look_like_a_fresh_plot(explorer: ExplorerPage, stage: int, q: str) -> None:  # noqa: F811
    page = explorer.page
    explorer.stage(stage)
    figure = page.locator("[data-figure]").first
    figure.scroll_into_view_if_needed()
    page.wait_for_selector(".graph .main-svg")
    page.wait_for_timeout(200)
    counts = f"import({MODULE}).then(m => ({{...m.drawn}}))"
    before = page.evaluate(counts)
    cell = page.locator(f'input[data-q="{q}"]').first
    cell.evaluate("cell => {cell.focus({preventScroll: true})}")
    with explorer.repaint():
        page.keyboard.type("1.3")
    figure.scroll_into_view_if_needed()  # typing brought the cell into sight, and what is out of sight is not drawn
    page.wait_for_function("figure => figure.figure.drawn === figure.figure.latest", arg=figure.element_handle())
    after = page.evaluate(counts)
    assert after["traces"] + after["whole"] > before["traces"] + before["whole"], "the figure did not follow"
    kept, fresh = page.evaluate(PIXELS, False), page.evaluate(PIXELS, True)
    assert kept[1] == fresh[1]
    assert kept[0] == fresh[0]


def test_an_edit_redraws_traces_alone(explorer: ExplorerPage) -> None:  # noqa: F811
    page = explorer.page
    explorer.stage(5)
    figure = page.locator("[data-figure]").first
    figure.scroll_into_view_if_needed()
    page.wait_for_selector(".graph .main-svg")
    counts = f"import({MODULE}).then(m => ({{...m.drawn}}))"
    page.wait_for_timeout(200)
    before = page.evaluate(counts)
    page.locator('input[data-q="masked_scores"]').first.evaluate("cell => cell.focus({preventScroll: true})")
    for text in ("1.2", "1.3"):
        with explorer.repaint():
            page.keyboard.press("Control+a")
            page.keyboard.type(text)
    figure.scroll_into_view_if_needed()
    page.wait_for_function("figure => figure.figure.drawn === figure.figure.latest", arg=figure.element_handle())
    after = page.evaluate(counts)
    assert after["whole"] == before["whole"]
    assert after["traces"] > before["traces"]
