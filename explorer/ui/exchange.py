"""One request and its answer on their way through the layer before Gradio.

Purpose: count bytes, stop at a limit, hear whoever asked hang up, give a page its policy, and answer in Gradio's place.
Must not know: which requests are let through, what they say.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

from explorer.allowance import Allowance
from explorer.ui import access
from explorer.ui.bodies import Unreadable

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Inner = Callable[[Message, Receive, Send], Awaitable[None]]

BODY = 2**20  # bytes of one request
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


class Exchange:
    """Stands between server and app for one request."""

    def __init__(self, call: access.Call, receive: Receive, send: Send) -> None:
        self.call, self._receive, self._send = call, receive, send
        self.begun = self.ended = self.streams = self.too_large = False
        self._body: bytes | None = None  # of a request that was read here, for the app to read again
        self._gone: asyncio.Event | None = None  # set when whoever asked is gone, while that is listened for
        self._start: Message | None = None  # of an HTML page, held back until its length is known
        self._page = b""

    # -------------------------------------------------------------------------------------------------- the request

    @staticmethod
    def announced(scope: Message) -> int:
        """The body's length as the request says it; 0 where it does not."""
        length = dict(scope["headers"]).get(b"content-length", b"0")
        return int(length) if length.isdigit() else 0

    async def receive(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        if self._gone is not None:
            await self._gone.wait()
            return {"type": "http.disconnect"}
        message = await self._receive()
        self.call.bytes_in += len(message.get("body", b""))
        if self.call.bytes_in > BODY:
            self.too_large = True
            raise Unreadable
        return message

    async def read(self) -> bytes:
        """The whole body, which the app can read again. Raises Unreadable beyond BODY."""
        body, more = b"", True
        while more:
            message = await self.receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        self._body = body
        return body

    def replace(self, content: object) -> None:
        """Let the app read this, as JSON, in place of the body."""
        self._body = json.dumps(content).encode()

    async def left(self) -> None:
        """Returns when whoever asked is gone; the body has been read before."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    @asynccontextmanager
    async def watched(self, allowance: Allowance) -> AsyncIterator[None]:
        """While this lasts, whoever asked can leave, and what computes on that allowance stops."""
        gone = self._gone = asyncio.Event()

        async def wait() -> None:
            await self.left()
            if not self.ended:
                allowance.left, self.call.outcome = True, "left"
            gone.set()

        waiting = asyncio.create_task(wait())
        try:
            yield
        finally:
            waiting.cancel()
            self._gone = None

    # --------------------------------------------------------------------------------------------------- the answer

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
            self.ended = not message.get("more_body")
            await self._send(message)

    async def _begin(self, message: Message) -> None:
        self.begun, self.call.status = True, message["status"]
        if message["status"] >= 400 and self.call.outcome == "ok":
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
        first, ok = not self.call.bytes_out, self.call.outcome == "ok"
        if self.call.endpoint == "update" and first and ok and REFUSED.match(body):
            self.call.outcome = "refused"
        self.call.bytes_out += len(body)

    async def answer(self, status: int, content: object, *headers: tuple[bytes, bytes]) -> None:
        """A JSON answer of ours."""
        body = json.dumps(content).encode()
        about = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *headers]
        await self._forward({"type": "http.response.start", "status": status, "headers": about})
        await self._forward({"type": "http.response.body", "body": body})

    async def answer_page(self, html: str) -> None:
        """An HTML page of ours."""
        about = [(b"content-type", b"text/html; charset=utf-8"), (b"cache-control", b"no-store")]
        await self._forward({"type": "http.response.start", "status": 200, "headers": about})
        await self._forward({"type": "http.response.body", "body": html.encode()})

    async def refuse(self, status: int, detail: str, outcome: str = "refused") -> None:
        """The rest of the request may still be on its way, so the connection ends here."""
        await self.answer(status, {"detail": detail}, (b"connection", b"close"))
        self.call.outcome = outcome

    async def refuse_body(self) -> None:
        await self.refuse(413, f"A request may have {BODY:,} bytes.")

    async def begin_stream(self) -> None:
        """A stream of events in Gradio's form."""
        about = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-store")]
        await self._forward({"type": "http.response.start", "status": 200, "headers": about})

    async def part(self, body: bytes, last: bool = False) -> None:
        """The next piece of a stream."""
        await self._forward({"type": "http.response.body", "body": body, "more_body": not last})

    async def event(self, name: str, data: str, last: bool = False) -> None:
        """One event; data is JSON text."""
        await self.part(f"event: {name}\ndata: {data}\n\n".encode(), last)

    async def end_stream(self, detail: str) -> None:
        """The last event of a stream that cannot go on."""
        if not self.begun:
            await self.begin_stream()
        await self.event("error", json.dumps(detail), last=True)
        self.call.outcome = "refused"
