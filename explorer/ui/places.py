"""What an address stands for.

Purpose: `place_of`. Names come from a list: nothing of an address gets into the log.
Must not know: what is done there.
"""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass

HEALTH = "/healthz"
MANUAL = "/api"
# What writes files, calls other hosts or shows other visitors' doings, and is of no use here.
CLOSED = re.compile(
    r"/(gradio_api/)?(upload|deep_link|proxy=|process_recording|vibe|undo-vibe|monitoring|run-history|runs|profiling"
    r"|stream|custom_component)"
)
ENDPOINT = re.compile(
    r"/gradio_api/(?P<name>component_server|queue/join|queue/data|heartbeat|info|openapi\.json|mcp"
    r"|(?P<verb>call/v2|call|run|api)/(?P<api>\w+)(?:/(?P<event>.+))?)(?=/|$)"
)
QUEUE = {"queue/join": "join", "queue/data": "data"}


@dataclass(frozen=True)
class Place:
    """name: in the log, "" for files. way: how something is asked there: "update" by the page, and of the endpoint
    `api` by "run", which answers at once, by "call" or "call/v2", which answer with an event, or as an "event"; "join"
    and "data" are the queue's; "" is everything else. closed: looks like an endpoint of ours and is none.
    """

    name: str
    way: str = ""
    api: str = ""
    event: str = ""
    closed: bool = False


def place_of(path: str, endpoints: Container[str]) -> Place:
    """The place of a path without its root."""
    if path.rstrip("/") in ("", HEALTH):
        return Place("health" if HEALTH in path else "page")
    if path.rstrip("/") == MANUAL:
        return Place("manual")
    found = ENDPOINT.match(path)
    if found is None:
        served = path.startswith("/gradio_api/file=") or not path.startswith("/gradio_api/")
        return Place("" if served else "other")
    if found["name"] == "component_server":
        return Place("update", "update")
    api, verb = found["api"], found["verb"]
    if not api:
        return Place(found["name"], QUEUE.get(found["name"], ""))
    if api not in endpoints:
        return Place("other", closed=True)
    if verb in ("run", "api"):
        return Place(f"run {api}", "" if found["event"] else "run", api)
    if found["event"]:
        return Place(f"result {api}", "event", api, found["event"])
    return Place(f"call {api}", verb, api)
