"""Numbers that leap by tens of orders of magnitude leave no broken drawing (the watched page reports SVG errors)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.browser.explorer_page import ExplorerPage

DOWN = "document.querySelector('.figures').scrollIntoView({behavior: 'instant'})"


@pytest.mark.parametrize("stage", [1, 2])
def test_a_huge_edit_and_back(open_explorer: Callable[..., ExplorerPage], stage: int) -> None:
    explorer = open_explorer(f"?stage={stage}")
    for text in ("1e38", "-3"):
        if stage != 1:
            explorer.stage(1)
        with explorer.repaint():
            explorer.type_cell("resid_pre", (0, 0, 1), text)
        if stage != 1:
            explorer.stage(stage)
        explorer.page.evaluate(DOWN)
        explorer.page.wait_for_timeout(600)
        explorer.page.evaluate("scrollTo(0, 0)")
