"""The way from the page's GPU button to the GPU and back: an event of Gradio's, unlike all else on the page.

Purpose: `add_gpu_event`. A ZeroGPU Space lends its GPU to whoever started a queued event, and the platform's frontend
tells it who that is; a server function would ask in nobody's name.
Must not know: what is compared (explorer.ui.gpu), how it is shown.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import gradio as gr

from explorer.ui.live_figure import dumps

AT_ONCE = 2  # visitors who wait for a GPU of this process; the others wait in the queue
ASK, ANSWER = "explorer:gpu-ask", "explorer:gpu-answer"  # as in assets/js/gpu.js
LONGEST_REQUEST = 200_000  # characters
# A page that is built anew, in another language, keeps this component: its listener goes by the document.
SCRIPT = f"""
document.addEventListener("{ASK}", event => trigger("submit", {{text: event.detail}}));
watch("value", () => document.dispatchEvent(new CustomEvent("{ANSWER}", {{detail: props.value}})));
"""


def add_gpu_event(blocks: gr.Blocks, answer: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
    """Give `blocks` the event. `answer` maps a request that wants "gpu" to a payload; it never raises."""

    def on_gpu(event: gr.EventData) -> str:
        """A request of the page as JSON text -> its answer as JSON text."""
        return dumps(answer(request_of(getattr(event, "_data", None))))

    with blocks:
        # Away by its class: what Gradio calls invisible has no script.
        courier = gr.HTML(
            "", html_template="", js_on_load=SCRIPT, apply_default_css=False, container=False, elem_classes="mbx-away"
        )
        courier.submit(
            on_gpu, None, courier, api_visibility="private", show_progress="hidden", trigger_mode="multiple",
            concurrency_limit=AT_ONCE, concurrency_id="gpu",
        )  # fmt: skip


def request_of(data: object) -> dict[str, Any]:
    """The request that the page sent, wanting the GPU; an empty one where there is none to read."""
    text = data.get("text") if isinstance(data, Mapping) else None
    try:
        asked = json.loads(text) if isinstance(text, str) and len(text) <= LONGEST_REQUEST else {}
    except (ValueError, RecursionError):
        asked = {}
    return {**(asked if isinstance(asked, dict) else {}), "want": ["gpu"]}
