"""What stands between the network and Gradio: bounds, headers, a health endpoint, and clean refusals.

Purpose: `middleware()`, an ASGI layer for launch(app_kwargs=…), so that the app can stand in public.
Must not know: what requests mean. Nothing of a request's content is logged or echoed.

Gradio 6 runs the page's server functions outside of its queue, in up to 40 threads, reads bodies of any size, and
answers a malformed request with a server error. This layer bounds all three.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from gradio.route_utils import FnIndexInferError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

from explorer.ui import access
from explorer.ui.exchange import BODY, Exchange, Message, Receive, Send, Unreadable

Inner = Callable[[Message, Receive, Send], Awaitable[None]]
Parameters = Mapping[str, Mapping[str, object]]  # endpoint -> its parameters and their defaults

HEALTH = "/healthz"
AT_ONCE = max(2, os.cpu_count() or 2)  # direct requests that compute at the same time
WAITING = 256  # direct requests that wait for that; beyond it the answer is "busy"
# What writes files, calls other hosts or shows other visitors' doings, and is of no use here.
CLOSED = re.compile(
    r"/(gradio_api/)?(upload|deep_link|proxy=|process_recording|vibe|undo-vibe|monitoring|run-history|runs|profiling"
    r"|stream|custom_component)"
)
ENDPOINT = re.compile(
    r"/gradio_api/(?P<name>component_server|queue/join|queue/data|heartbeat|info|openapi\.json|mcp"
    r"|(?P<verb>call/v2|call|run|api)/(?P<api>\w+)(?P<event>/.+)?)(?=/|$)"
)
UNDERSTANDING = (FnIndexInferError, KeyError, ValueError, TypeError, IndexError, AttributeError, RecursionError)


def middleware(parameters: Parameters) -> list[Middleware]:
    """For launch(app_kwargs={"middleware": middleware(…)}). parameters: those of the named endpoints."""
    return [Middleware(Guard, parameters=parameters)]


@dataclass
class Crowd:
    """How many requests compute, and wait to compute, outside of Gradio's queue."""

    at_once: int = AT_ONCE
    most_waiting: int = WAITING
    waiting: int = 0

    def __post_init__(self) -> None:
        self.places = asyncio.Semaphore(self.at_once)

    @property
    def full(self) -> bool:
        return self.places.locked() and self.waiting >= self.most_waiting

    async def enter(self, left: Callable[[], Awaitable[None]]) -> bool:
        """Waits for a place; False when `left` comes first."""
        if not self.places.locked():
            return await self.places.acquire()
        self.waiting += 1
        place, gone = asyncio.ensure_future(self.places.acquire()), asyncio.ensure_future(left())
        try:
            await asyncio.wait({place, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not gone.done():
                return True
            if place.done():
                self.places.release()
            return False
        finally:
            self.waiting -= 1
            gone.cancel()
            if not place.done():
                place.cancel()


@dataclass(frozen=True)
class Place:
    """What an address stands for. name: in the log, "" for files; api: the endpoint that is called by it, or ""."""

    name: str
    api: str = ""
    direct: bool = False  # computes outside of Gradio's queue
    closed: bool = False  # looks like an endpoint of ours and is none


def place_of(path: str, endpoints: Parameters) -> Place:
    """Names come from a list: nothing of an address gets into the log."""
    if path.rstrip("/") in ("", HEALTH):
        return Place("health" if HEALTH in path else "page")
    found = ENDPOINT.match(path)
    if found is None:
        served = path.startswith("/gradio_api/file=") or not path.startswith("/gradio_api/")
        return Place("" if served else "other")
    if found["name"] == "component_server":
        return Place("update", direct=True)
    if not found["api"]:
        return Place(found["name"])
    if found["api"] not in endpoints:
        return Place("other", closed=True)
    if found["event"]:
        return Place(f"result {found['api']}")
    direct = found["verb"] in ("run", "api")
    by_position = direct or found["verb"] == "call"
    return Place(f"{'run' if direct else 'call'} {found['api']}", found["api"] if by_position else "", direct)


class Guard:
    """The layer itself."""

    def __init__(self, app: Inner, parameters: Parameters | None = None, crowd: Crowd | None = None) -> None:
        self.app = app
        self.parameters = parameters or {}
        self.crowd = crowd or Crowd()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        path = path[max(0, path.find("/gradio_api/")) :]  # a proxy may leave a prefix of its own
        place = place_of(path, self.parameters)
        if not place.name:  # scripts, styles, fonts: many, and of no interest
            await self._serve(Exchange(access.Call("file"), receive, send), place, path, scope)
            return
        with access.noted(place.name) as call:
            await self._serve(Exchange(call, receive, send), place, path, scope)

    async def _serve(self, exchange: Exchange, place: Place, path: str, scope: Message) -> None:
        if place.name == "health":
            await exchange.answer(200, {"status": "ok", "waiting": self.crowd.waiting})
        elif CLOSED.match(path) or place.closed:
            await exchange.refuse(404, "There is nothing here.")
        elif exchange.announced(scope) > BODY:
            await exchange.refuse_body()
        elif not place.direct:
            await self._pass(exchange, place, scope)
        elif self.crowd.full:
            await exchange.refuse(503, "The server is busy. Try again in a moment.", "busy")
        else:
            await self._pass_in_turn(exchange, place, scope)

    async def _pass_in_turn(self, exchange: Exchange, place: Place, scope: Message) -> None:
        """When a place is free; nothing is computed for those who left while they waited."""
        try:
            await exchange.read()
        except Unreadable:
            await exchange.refuse_body()
            return
        if not await self.crowd.enter(exchange.left):
            exchange.call.outcome = "left"
            return
        try:
            await self._pass(exchange, place, scope)
        finally:
            self.crowd.places.release()

    async def _pass(self, exchange: Exchange, place: Place, scope: Message) -> None:
        """Gradio's turn. What it cannot make sense of is the request's fault unless an answer had begun."""
        try:
            if scope["method"] == "POST" and place.name != "update":
                await exchange.refuse_files()
            if scope["method"] == "POST" and place.api:
                await exchange.complete(self.parameters[place.api])
            await self.app(scope, exchange.receive, exchange.send)
        except Unreadable as error:
            if not exchange.too_large:
                await exchange.refuse(400, str(error))
        except UNDERSTANDING as error:
            if exchange.begun:
                raise
            await exchange.refuse(400, f"The request could not be understood ({type(error).__name__}).")
        except RuntimeError as error:
            # An unknown event is found to be so when the stream has begun; Starlette then has no other way to say it.
            if not (exchange.streams and isinstance(error.__cause__, HTTPException)):
                raise
            await exchange.end_stream("There is no such event.")
        if exchange.too_large and not exchange.begun:
            await exchange.refuse_body()
