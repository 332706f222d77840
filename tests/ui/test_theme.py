"""Colours: complete in both themes, and text that can be read on every tone of paper and every cell."""

from __future__ import annotations

import re

import pytest

from explorer.draw.scales import PALETTE, ROLES
from explorer.ui.live_figure import ASSETS
from explorer.ui.theme import stylesheet, variables

CSS = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ASSETS / "css").glob("*.css")))
THEMES = ("light", "dark")


def luminance(colour: str) -> float:
    def linear(c: float) -> float:
        return c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4

    r, g, b = (linear(int(colour[i : i + 2], 16) / 255) for i in (1, 3, 5))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(a: str, b: str) -> float:
    dark, light = sorted((luminance(a), luminance(b)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", THEMES)
def test_text_can_be_read(theme: str) -> None:
    tones = variables(theme)
    for paper in ("paper", "raised", "soft"):
        for ink in ("ink", "ink-2", "ink-3", "danger", *(f"role-{role}" for role in ROLES)):
            assert contrast(tones[ink], tones[paper]) >= 4.5, f"{ink} on {paper}"


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("scale", ["cell_signed", "cell_unit"])
def test_numbers_can_be_read_on_the_fullest_cell(theme: str, scale: str) -> None:
    stops = PALETTE[theme][scale]
    for colour in (stops[0][1], stops[-1][1]):
        for ink in (variables(theme)["ink"], PALETTE[theme]["on_weak"]):
            assert contrast(ink, colour) >= 4.5, colour


def test_both_themes_set_the_same_variables() -> None:
    assert variables("light").keys() == variables("dark").keys()
    assert stylesheet().count("--role-q:") == 2


def test_styles_use_no_unknown_variable_and_no_colour_of_their_own() -> None:
    own = set(re.findall(r"(--[\w-]+)\s*:", CSS)) | {"--cols", "--dock-most"}  # set by scripts
    used = set(re.findall(r"var\((--[\w-]+)", CSS))
    assert not used - own - {f"--{name}" for name in variables("light")}
    without_urls = re.sub(r"url\([^)]*\)|unicode-range:[^;]*", "", CSS)
    assert not re.findall(r"#[0-9a-fA-F]{3,8}\b(?=[^{]*})", without_urls)


def test_styles_and_scripts_ask_nobody_else() -> None:
    scripts = "\n".join(path.read_text(encoding="utf-8") for path in (ASSETS / "js").glob("*.js"))
    found = set(re.findall(r"https?://[^\s\"'`)]+", CSS + scripts))
    assert found <= {"http://www.w3.org/2000/svg"}
