"""axe-core on every stage, light and dark, with the inspector open: no serious and no critical violation."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.browser.explorer_page import ExplorerPage

GRAVE = ("serious", "critical")
OPTIONS = {"resultTypes": ["violations"]}


def violations(explorer: ExplorerPage, within: str = ".mbx") -> list[str]:
    """Each grave violation with the first elements it is about."""
    found = Axe().run(explorer.page, context=within, options=OPTIONS).response["violations"]
    return [
        f"{rule['impact']} {rule['id']} ({len(rule['nodes'])}): {node['html'][:200]} | {node['failureSummary'][:300]}"
        for rule in found
        if rule["impact"] in GRAVE
        for node in rule["nodes"][:3]
    ]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_stage_with_the_inspector_open(open_explorer: Callable[..., ExplorerPage], theme: str) -> None:
    explorer = open_explorer(f"?v=1&stage=1&cell=attn_norm@0.1.1&e=resid_pre@0.0.1~2&__theme={theme}")
    troubles: list[str] = []
    for stage in range(1, 9):
        if stage > 1:
            explorer.stage(stage)
            first = explorer.page.locator(".group.output [data-q][data-i]").first
            with explorer.repaint():
                first.click()
        explorer.page.locator("[data-inspector]").wait_for(state="visible")
        troubles += [f"stage {stage}: {trouble}" for trouble in violations(explorer)]
    assert not troubles, "\n".join(dict.fromkeys(troubles))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_heatmaps_and_a_phone(open_explorer: Callable[..., ExplorerPage], theme: str) -> None:
    query = f"?v=1&T=24&d=192&h=2&w=random&stage=5&cell=heads@0.0.3.1&__theme={theme}"
    for width in (1280, 390):
        explorer = open_explorer(query, width=width, height=844)
        assert not violations(explorer)
