"""Colours: symmetric, seen by colour-blind eyes, readable as text, and states apart from every value."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.draw.scales import (
    FUTURE,
    INFINITY,
    MINUS_INFINITY,
    NOT_A_NUMBER,
    PADDED,
    PALETTE,
    PLAIN,
    ROLES,
    STATES,
    STRONG,
    STRONG_STATES,
    nice_limit,
    paint,
    scale_range,
    states,
    themed,
)

THEMES = ("light", "dark")
# Simulation of full colour blindness in linear RGB: Machado, Oliveira & Fernandes 2009, table 1.
EYES = {
    "normal": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def linear(colours: list[str]) -> np.ndarray:
    rgb = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in colours]) / 255
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    """CIE L*a*b* of linear sRGB, D65."""
    xyz = rgb @ np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]).T
    f = np.cbrt(np.maximum(xyz, 0) / [0.9505, 1.0, 1.089])
    return np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], axis=1)


def seen(colours: list[str], eye: str = "normal") -> np.ndarray:
    return lab(np.clip(linear(colours) @ np.array(EYES[eye]).T, 0, 1))


def contrast(a: str, b: str) -> float:
    light, dark = sorted(float(linear([c])[0] @ [0.2126, 0.7152, 0.0722]) for c in (a, b))[::-1]
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", THEMES)
def test_signed_scale_is_symmetric_and_white_at_zero(theme: str) -> None:
    scale = PALETTE[theme]["signed"]
    places, colours = zip(*scale, strict=True)
    assert list(places) == pytest.approx(np.linspace(0, 1, len(scale)))
    light = seen(list(colours))[:, 0]
    assert light == pytest.approx(light[::-1], abs=2.5)
    middle = len(scale) // 2
    steps = np.diff(light[: middle + 1])
    assert (steps > 5).all() if theme == "light" else (steps < -5).all()
    assert colours[middle] == {"light": "#ffffff", "dark": "#1f1f1f"}[theme]


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("eye", EYES)
def test_signs_are_told_apart_by_every_eye(theme: str, eye: str) -> None:
    colours = seen([c for _, c in PALETTE[theme]["signed"]], eye)
    apart = np.linalg.norm(colours - colours[::-1], axis=1)
    assert apart[:4].min() > 12


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("scale", ["unit", "magnitude"])
@pytest.mark.parametrize("eye", EYES)
def test_sequential_scale_runs_one_way(theme: str, scale: str, eye: str) -> None:
    steps = np.diff(seen([c for _, c in PALETTE[theme][scale]], eye)[:, 0])
    assert (steps < -3).all() if theme == "light" else (steps > 3).all()


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("scale", ["signed", "unit"])
def test_states_differ_from_every_value_and_from_each_other(theme: str, scale: str) -> None:
    stops = PALETTE[theme][scale]
    between = np.linspace(0, 1, 301)
    rgb = linear([c for _, c in stops])
    ramp = np.stack([np.interp(between, [p for p, _ in stops], rgb[:, i]) for i in range(3)], axis=1)
    marks = seen([PALETTE[theme][s] for s in STATES])
    assert np.linalg.norm(lab(ramp)[:, None] - marks[None], axis=2).min() > 6
    away = np.linalg.norm(marks[:, None] - marks[None], axis=2) + 100 * np.eye(len(STATES))
    assert away.min() > 10


@pytest.mark.parametrize(("theme", "papers"), [("light", ["#ffffff", "#f3f1ea"]), ("dark", ["#1f2227", "#15171b"])])
def test_roles_are_readable_as_text(theme: str, papers: list[str]) -> None:
    for role in (*ROLES, "muted"):
        assert min(contrast(PALETTE[theme][role], paper) for paper in papers) >= 4.5, role


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("scale", ["signed", "unit"])
def test_text_on_cells_is_readable_along_the_whole_scale(theme: str, scale: str) -> None:
    stops = PALETTE[theme][scale]
    rgb = linear([c for _, c in stops])
    for reach in np.linspace(0, 1, 101):
        at = 0.5 + reach / 2 if scale == "signed" else reach
        cell = np.array([np.interp(at, [p for p, _ in stops], rgb[:, i]) for i in range(3)]) @ [0.2126, 0.7152, 0.0722]
        ink = linear([PALETTE[theme]["on_strong" if reach >= STRONG else "on_weak"]])[0] @ [0.2126, 0.7152, 0.0722]
        assert (max(cell, ink) + 0.05) / (min(cell, ink) + 0.05) > 3.9, reach


@pytest.mark.parametrize("theme", THEMES)
def test_text_on_states_is_readable(theme: str) -> None:
    for code, state in enumerate(STATES, start=1):
        ink = PALETTE[theme]["on_strong" if code in STRONG_STATES else "on_weak"]
        assert contrast(PALETTE[theme][state], ink) > 4, state


def test_both_themes_name_the_same_colours() -> None:
    assert PALETTE["light"].keys() == PALETTE["dark"].keys()
    assert PALETTE["light"]["state"][2][1] == PALETTE["light"]["padded"]


@pytest.mark.parametrize(
    ("values", "limit"),
    [([0.0], 1), ([], 1), ([np.nan, np.inf], 1), ([1.0], 1), ([-1.2], 1.5), ([1.42], 1.5), ([2.9, -2], 3), ([6], 7),
     ([7.1], 10), ([0.031], 0.05), ([1e-9], 1e-9), ([123], 150), ([3e38], 3e38), ([np.float32(0.7)], 0.7)],
)  # fmt: skip
def test_nice_limit(values: list[float], limit: float) -> None:
    assert nice_limit(np.array(values)) == pytest.approx(limit, rel=1e-12)


def test_ranges_by_scale() -> None:
    values = np.array([-0.4, 1.41421])
    assert scale_range("signed", values) == (-1.5, 1.5)
    assert scale_range("unit", values) == (0, 1)
    assert scale_range("magnitude", values) == (0, 1.5)


def test_states_of_cells() -> None:
    inf, nan = np.inf, np.nan
    values = np.array([[1.0, -inf, -inf, -inf], [5.0, nan, inf, 2.0]])
    future = np.array([[False, True, True, False], [True, True, True, False]])
    padded = np.array([[False, False, True, False], [False] * 4])
    expected = [[PLAIN, FUTURE, PADDED, MINUS_INFINITY], [PLAIN, NOT_A_NUMBER, INFINITY, PLAIN]]
    assert states(values, future, padded).tolist() == expected
    probabilities = np.array([[1.0, 0.0], [0.0, 0.2]])
    later = np.array([[False, True], [False, True]])
    assert states(probabilities, later, None, hidden=0.0).tolist() == [[PLAIN, FUTURE], [PLAIN, PLAIN]]


def test_themed_paints_a_copy() -> None:
    figure = {
        "data": [{"line": {"color": "#1f5fc4"}, "meta": paint(line_color="q", colorscale="signed")}, {}],
        "layout": {},
    }
    dark = themed(figure, "dark")
    assert dark["data"][0]["line"]["color"] == PALETTE["dark"]["q"]
    assert dark["data"][0]["colorscale"] == PALETTE["dark"]["signed"]
    assert figure["data"][0]["line"]["color"] == "#1f5fc4"
    with pytest.raises(LookupError, match="'sepia'"):
        themed(figure, "sepia")
