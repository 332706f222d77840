"""The HTTP API as a page to read: endpoints, parameters, limits, and a request of each that can be copied.

Purpose: `manual`. What it says of an endpoint is the endpoint's own signature and docstring.
Must not know: what an endpoint does, how a request travels.
"""

from __future__ import annotations

import inspect
import json
import re
import shlex
from collections.abc import Callable, Mapping
from html import escape
from typing import Any

from explorer.ui.endpoints import described

LOCAL = "http://127.0.0.1:7860"
ADDRESS = re.compile(r"https?://[\w.:\[\]-]{1,200}(/[\w./-]{0,200})?", re.ASCII)
EXAMPLES: dict[str, dict[str, Any]] = {  # each with its parameters in order
    "trace": {"link": "v=1&T=3", "settings": {"edits": ["probs[0,0,2,0]=0.5"]}, "only": ["resid_post"]},
    "ledger": {"link": "", "settings": {"weights": "random", "T": 5, "d_model": 12, "h": 3}},
    "figure": {"name": "attention", "link": "v=1&T=3"},
    "generate": {"prompt": "Once upon a time", "checkpoint": "", "new_tokens": 16},
    "generate_stream": {"prompt": "Once upon a time", "checkpoint": "", "new_tokens": 16},
    "gpu": {"link": "v=1&T=3"},
}
STYLE = """
:root { color-scheme: light dark; }
body { max-width: 78ch; margin: 0 auto; padding: 24px 20px 60px; font: 16px/1.5 ui-sans-serif, system-ui, sans-serif; }
h2 { margin-top: 2em; }
pre, code { font: 14px/1.5 ui-monospace, monospace; } h2 code { font-size: 21px; font-weight: 600; }
pre { overflow-x: auto; padding: 10px 12px; border: 1px solid color-mix(in srgb, currentColor 25%, transparent); }
.wide { overflow-x: auto; } table { border-collapse: collapse; }
td, th { padding: 2px 18px 2px 0; text-align: left; vertical-align: top; } th { white-space: nowrap; }
"""


def manual(endpoints: Mapping[str, Callable[..., Any]], limits: str, address: str = LOCAL) -> str:
    """One HTML page. limits: a sentence; address: where this server is reached, LOCAL where it cannot be told."""
    address = address.rstrip("/") if ADDRESS.fullmatch(address) else LOCAL
    return f"""<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>MiniMind Block Explorer: for other programs</title><style>{STYLE}</style></head>
<body><main>
<h1>For other programs</h1>
<p>Every endpoint answers with JSON. What is wrong with a parameter comes back as
<code>{{"ok": false, "errors": {{field: message}}}}</code>, and what was asked for and has no effect as
<code>"notes"</code>. A body of another form, or one too large, has the status 400 or 413 and
<code>{{"detail": message}}</code>, a busy server 503 and the same. For machines:
<a href="gradio_api/info">gradio_api/info</a>, <a href="gradio_api/openapi.json">gradio_api/openapi.json</a>.</p>
<p id="limits">{escape(limits)}</p>
{"".join(_section(name, endpoint, address) for name, endpoint in endpoints.items())}
</main></body></html>
"""


def _section(name: str, endpoint: Callable[..., Any], address: str) -> str:
    said = described(endpoint)
    rows = "".join(
        f"<tr><td><code>{escape(p.name)}</code></td><td><code>{escape(_kind(p))}</code></td>"
        f"<td>{'required' if p.default is p.empty else f'<code>{escape(json.dumps(p.default))}</code>'}</td>"
        f"<td>{escape(said.parameters[p.name])}</td></tr>"
        for p in inspect.signature(endpoint).parameters.values()
    )
    return f"""<section id="{escape(name)}">
<h2><code>{escape(name)}</code></h2>
<p class="about">{escape(said.about)}</p>
<div class="wide"><table>
<tr><th>parameter</th><th>type</th><th>left out</th><th>what it is</th></tr>{rows}
</table></div>
<p class="about">Returns {escape(said.returns)}</p>
<pre>{escape(curl(name, address))}</pre>
<pre>{escape(client(name, address))}</pre>
</section>
"""


def _kind(parameter: inspect.Parameter) -> str:
    kind = parameter.annotation
    return kind if isinstance(kind, str) else getattr(kind, "__name__", str(kind))


def curl(name: str, address: str) -> str:
    """A request by plain HTTP, its values in the order of the parameters."""
    given = EXAMPLES[name]
    body = shlex.quote(json.dumps({"data": list(given.values())}))
    return f'curl {address}/gradio_api/run/{name} -H "content-type: application/json" \\\n  -d {body}'


def client(name: str, address: str) -> str:
    """The same with gradio_client."""
    given = "".join(f"{key}={value!r}, " for key, value in EXAMPLES[name].items())
    return f'from gradio_client import Client\n\nClient("{address}").predict({given}api_name="/{name}")'
