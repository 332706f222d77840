"""What stands between the network and Gradio: bounds, headers, a health endpoint, and clean refusals.

Purpose: `middleware()`, an ASGI layer for launch(app_kwargs=…), so that the app can stand in public.
Must not know: what requests mean. Nothing of a request's content is logged or echoed.

Gradio 6 runs the page's server functions outside of its queue, in up to 40 threads, reads bodies of any size, and
answers a malformed request with a server error. This layer bounds all three.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from gradio.route_utils import FnIndexInferError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

from explorer.ui import access

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Inner = Callable[[Message, Receive, Send], Awaitable[None]]

HEALTH = "/healthz"
BODY = 2**20  # bytes of one request
AT_ONCE = max(2, os.cpu_count() or 2)  # requests of the page that compute at the same time
WAITING = 256  # requests of the page that wait for that; beyond it the answer is "busy"
# What writes files, calls other hosts or shows other visitors' doings, and is of no use here.
CLOSED = re.compile(
    r"/(gradio_api/)?(upload|deep_link|proxy=|process_recording|vibe|undo-vibe|monitoring|run-history|runs|profiling"
    r"|stream|custom_component)"
)
ENDPOINT = re.compile(
    r"/gradio_api/(?P<name>component_server|queue/join|queue/data|heartbeat|info|openapi\.json|mcp"
    r"|(?P<verb>call/v2|call|run|api)/(?P<api>trace|ledger|figure|generate|gpu)(?P<event>/.+)?)(?=/|$)"
)
UNDERSTANDING = (FnIndexInferError, KeyError, ValueError, TypeError, IndexError, AttributeError, RecursionError)
SECURITY = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
# 'unsafe-eval': Gradio makes functions of its templates' text. Inline styles: Svelte and plotly set them. Every other
# permission was left out in turn and something on the page failed, in Chromium; blob: images are plotly's downloads.
POLICY = (
    "default-src 'none'; script-src 'self' 'nonce-{nonce}' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; manifest-src 'self'; "
    "base-uri 'self'; form-action 'self'"
)
REFUSED = re.compile(rb'"?\{\\?"ok\\?":false')  # how an answer of the page begins when a field was wrong
SCRIPT = re.compile(rb"<script(?=[\s>])")


class TooLarge(Exception):
    """A body beyond BODY."""


def middleware() -> list[Middleware]:
    """For launch(app_kwargs={"middleware": middleware()})."""
    return [Middleware(Guard)]


@dataclass
class Crowd:
    """How many requests of the page compute and wait."""

    at_once: int = AT_ONCE
    most_waiting: int = WAITING
    waiting: int = 0

    def __post_init__(self) -> None:
        self.places = asyncio.Semaphore(self.at_once)

    async def enter(self) -> bool:
        """Waits for a place; False at once when too many wait already."""
        if self.waiting >= self.most_waiting:
            return False
        self.waiting += 1
        try:
            await self.places.acquire()
        finally:
            self.waiting -= 1
        return True


class Guard:
    """The layer itself."""

    def __init__(self, app: Inner, crowd: Crowd | None = None) -> None:
        self.app = app
        self.crowd = crowd or Crowd()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        endpoint = name_of(path)
        if endpoint is None:  # scripts, styles, fonts: many, and of no interest
            await self._serve(access.Call("file"), path, scope, receive, send)
            return
        with access.noted(endpoint) as call:
            await self._serve(call, path, scope, receive, send)

    async def _serve(self, call: access.Call, path: str, scope: Message, receive: Receive, send: Send) -> None:
        exchange = Exchange(call, receive, send)
        if path.rstrip("/") == HEALTH:
            await exchange.answer(200, {"status": "ok", "waiting": self.crowd.waiting})
        elif CLOSED.match(path):
            await exchange.refuse(404, "There is nothing here.")
        elif exchange.announced(scope) > BODY:
            await exchange.refuse(413, f"A request may have {BODY:,} bytes.")
        elif call.endpoint != "update":
            await self._pass(exchange, scope)
        elif await self.crowd.enter():
            try:
                await self._pass(exchange, scope)
            finally:
                self.crowd.places.release()
        else:
            await exchange.refuse(503, "The server is busy. Try again in a moment.", "busy")

    async def _pass(self, exchange: Exchange, scope: Message) -> None:
        """Gradio's turn. What it cannot make sense of is the request's fault unless an answer had begun."""
        try:
            await self.app(scope, exchange.receive, exchange.send)
        except TooLarge:
            pass
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
            await exchange.refuse(413, f"A request may have {BODY:,} bytes.")


def name_of(path: str) -> str | None:
    """A request's name in the log; None for files."""
    if path in ("/", HEALTH):
        return "page" if path == "/" else "health"
    found = ENDPOINT.match(path)
    if found is None:
        return None if not path.startswith("/gradio_api/") or path.startswith("/gradio_api/file=") else "other"
    if found["name"] == "component_server":
        return "update"
    if found["api"]:
        return f"{'result' if found['event'] else 'call'} {found['api']}"
    return found["name"]


class Exchange:
    """One request and its answer on their way through."""

    def __init__(self, call: access.Call, receive: Receive, send: Send) -> None:
        self.call, self._receive, self._send = call, receive, send
        self.begun = self.streams = self.too_large = False
        self._start: Message | None = None  # of an HTML page, held back until its length is known
        self._page = b""

    @staticmethod
    def announced(scope: Message) -> int:
        """The body's length as the request says it; 0 where it does not."""
        length = dict(scope["headers"]).get(b"content-length", b"0")
        return int(length) if length.isdigit() else 0

    async def receive(self) -> Message:
        message = await self._receive()
        self.call.bytes_in += len(message.get("body", b""))
        if self.call.bytes_in > BODY:
            self.too_large = True
            raise TooLarge
        return message

    async def send(self, message: Message) -> None:
        if self.too_large and not self.begun:
            return  # Gradio's own words about a body that it could not read to its end
        await self._forward(message)

    async def _forward(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            await self._begin(message)
        elif self._start is not None:
            self._page += message.get("body", b"")
            if not message.get("more_body"):
                await self._send_page(self._start, self._page)
        else:
            self._look(message.get("body", b""))
            await self._send(message)

    async def _begin(self, message: Message) -> None:
        self.begun, self.call.status = True, message["status"]
        if message["status"] >= 400:
            self.call.outcome = "failed" if message["status"] >= 500 else "refused"
        headers = dict(message["headers"])
        message["headers"] = [*message["headers"], *((k.encode(), v.encode()) for k, v in SECURITY.items())]
        kind = headers.get(b"content-type", b"")
        self.streams = kind.startswith(b"text/event-stream")
        if kind.startswith(b"text/html"):
            self._start = message
        else:
            await self._send(message)

    async def _send_page(self, start: Message, page: bytes) -> None:
        """An HTML page with a policy that only its own scripts satisfy."""
        nonce = secrets.token_urlsafe(16)
        page = SCRIPT.sub(f'<script nonce="{nonce}"'.encode(), page)
        kept = [(k, v) for k, v in start["headers"] if k.lower() not in (b"content-length", b"content-security-policy")]
        policy = POLICY.format(nonce=nonce).encode()
        more = [(b"content-length", str(len(page)).encode()), (b"content-security-policy", policy)]
        self.call.bytes_out = len(page)
        await self._send({**start, "headers": [*kept, *more]})
        await self._send({"type": "http.response.body", "body": page})

    def _look(self, body: bytes) -> None:
        """Note the length, and whether the page was told of a mistake."""
        if (
            not self.call.bytes_out
            and self.call.endpoint == "update"
            and body[:16].replace(b"\\", b"")[2:12] == b'ok":false,'
        ):
            self.call.outcome = "refused"
        self.call.bytes_out += len(body)

    async def answer(self, status: int, content: object, *headers: tuple[bytes, bytes]) -> None:
        body = json.dumps(content).encode()
        about = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *headers]
        await self._forward({"type": "http.response.start", "status": status, "headers": about})
        await self._forward({"type": "http.response.body", "body": body})

    async def end_stream(self, detail: str) -> None:
        """The last event of a stream that cannot go on."""
        body = f"event: error\ndata: {json.dumps(detail)}\n\n".encode()
        await self._forward({"type": "http.response.body", "body": body})
        self.call.outcome = "refused"

    async def refuse(self, status: int, detail: str, outcome: str = "refused") -> None:
        """An answer of ours. The rest of the request may still be on its way, so the connection ends here."""
        await self.answer(status, {"detail": detail}, (b"connection", b"close"))
        self.call.outcome = outcome
