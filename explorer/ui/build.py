"""Builds the gr.Blocks around the page and says how it is launched.

Must not know: what the page shows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr
import plotly

from explorer import device
from explorer.ui import mailbox
from explorer.ui.api import add_api, api_page, endpoints
from explorer.ui.gpu_event import add_gpu_event
from explorer.ui.live_figure import ASSETS, ENTRY, Explorer, address
from explorer.ui.page import answer, fixed
from explorer.ui.server import middleware
from explorer.ui.theme import NEUTRALS, stylesheet

TITLE = "MiniMind Block Explorer"
PLOTLY_JS = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
FONTS = ["ui-sans-serif", "system-ui", "sans-serif"]  # names only: nothing is fetched for them
QUEUE_SIZE = 64
SESSIONS = 1000  # what Gradio keeps of a visitor is small and, of this page, never read


def build() -> gr.Blocks:
    """The app, not yet launched."""
    blocks = gr.Blocks(title=TITLE, fill_width=True, analytics_enabled=False)
    with blocks:
        Explorer(answer, fixed(), answer({}), PLOTLY_JS)
    if device.gpu_here():
        add_gpu_event(blocks, answer)
    add_api(blocks)
    blocks.queue(max_size=QUEUE_SIZE, api_open=True)
    return blocks


def launch_arguments() -> dict[str, Any]:
    """Everything about launch() that does not depend on host and port."""
    return {
        "head": head(),
        "theme": gr.themes.Base(font=FONTS, font_mono=["ui-monospace", "monospace"]).set(
            body_background_fill=NEUTRALS["light"]["paper"], body_background_fill_dark=NEUTRALS["dark"]["paper"]
        ),
        "allowed_paths": [str(ASSETS), str(PLOTLY_JS)],
        "footer_links": [],
        "show_error": False,
        "run_history": False,
        "enable_monitoring": False,
        "max_file_size": "1mb",
        "strict_cors": True,
        "ssr_mode": False,
        "state_session_capacity": SESSIONS,
        "app_kwargs": {"middleware": middleware(endpoints(), mailbox.in_use, api_page)},
    }


def head() -> str:
    """Styles and scripts that the browser should fetch while Gradio starts."""
    fonts = sorted((ASSETS / "fonts").glob("*latin-wght-normal.woff2"))
    scripts = sorted((ASSETS / "js").glob("*.js"))
    return "\n".join(
        [
            '<meta name="color-scheme" content="light dark">',
            f"<style>{stylesheet()}</style>",
            *(
                f'<link rel="stylesheet" data-explorer href="{address(css)}">'
                for css in sorted((ASSETS / "css").glob("*.css"))
            ),
            *(f'<link rel="modulepreload" href="{address(js)}">' for js in scripts if js != ENTRY),
            f'<link rel="modulepreload" href="{address(ENTRY)}">',
            *(f'<link rel="preload" as="font" type="font/woff2" crossorigin href="{address(f)}">' for f in fonts),
        ]
    )
