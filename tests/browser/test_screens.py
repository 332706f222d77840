"""Every stage on every screen, light and dark: no trouble, nothing wider than the screen.

Set EXPLORER_SCREENSHOTS to a folder to keep the pictures and look at them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser.explorer_page import ExplorerPage

SCREENS = {"laptop": (1280, 720), "desktop": (1920, 1080), "phone": (390, 844)}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("screen", SCREENS)
def test_stages_fit_the_screen(open_explorer: Callable[..., ExplorerPage], screen: str, theme: str) -> None:
    width, height = SCREENS[screen]
    explorer = open_explorer(f"?__theme={theme}", width=width, height=height)
    for stage in range(1, 9):
        explorer.stage(stage)
        if folder := os.environ.get("EXPLORER_SCREENSHOTS"):
            Path(folder).mkdir(parents=True, exist_ok=True)
            name = Path(folder) / f"stage{stage}-{screen}-{theme}"
            explorer.page.screenshot(path=f"{name}.png")
            explorer.page.screenshot(path=f"{name}-whole.png", full_page=True)
        wide = explorer.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"stage {stage} is {wide} px wide on a screen of {width}"
