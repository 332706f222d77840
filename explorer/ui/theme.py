"""The page's colours as CSS variables, in light and dark.

Purpose: role colours come from explorer.draw.scales.PALETTE, where figures get theirs; only the neutral tones of
paper, ink and lines are chosen here.
Must not know: which element uses which colour (that is assets/css).
"""

from __future__ import annotations

from collections.abc import Mapping

from explorer.draw.scales import PALETTE, ROLES

# Text tones (ink, ink-2, ink-3) keep a contrast of at least 4.5 on paper, soft and raised.
NEUTRALS: dict[str, dict[str, str]] = {
    "light": {
        "paper": "#fbfaf7", "raised": "#ffffff", "soft": "#f3f1ea", "hair": "#e8e4db", "line": "#cfc9bc",
        "ink": "#1d2127", "ink-2": "#4a515b", "ink-3": "#666d77", "accent": "#1f5fc4", "danger": "#b3261e",
        "cell": "#ffffff", "cell-edge": "rgba(40, 36, 28, .13)", "shade": "rgba(40, 36, 28, .16)",
        "hatch": "rgba(60, 56, 48, .20)", "hatch-paper": "#f0eee8",
    },
    "dark": {
        "paper": "#15171b", "raised": "#1f2227", "soft": "#1d2025", "hair": "#2a2e35", "line": "#424851",
        "ink": "#eceae5", "ink-2": "#b9bdc4", "ink-3": "#959ba5", "accent": "#7ab0ff", "danger": "#ff8f85",
        "cell": "#1f1f1f", "cell-edge": "rgba(255, 255, 255, .13)", "shade": "rgba(0, 0, 0, .5)",
        "hatch": "rgba(220, 224, 232, .16)", "hatch-paper": "#22252a",
    },
}  # fmt: skip


def variables(theme: str) -> Mapping[str, str]:
    """CSS variable name -> colour, for "light" or "dark"."""
    return NEUTRALS[theme] | {f"role-{role}": PALETTE[theme][role] for role in ROLES}


def stylesheet() -> str:
    """The rules that set every variable: light by default, dark where Gradio marks the body so."""
    blocks = []
    for theme, selector in (("light", ":root"), ("dark", ".dark")):
        lines = [f"--{name}: {colour};" for name, colour in variables(theme).items()]
        blocks.append(f"{selector} {{ color-scheme: {theme}; {' '.join(lines)} }}")
    return "\n".join(blocks)
