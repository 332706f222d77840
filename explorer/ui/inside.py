"""Requests of this server to itself, through the same app and without a network.

Purpose: `asking`, a scope for one, `reply`, its whole answer, `following`, its answer as it comes, and `forget`.
Must not know: what is asked, and for whom.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

from explorer.ui.exchange import Inner, Message

PREFIX = "/gradio_api/"
REPLACED = (b"content-length", b"content-type", b"transfer-encoding")


def asking(scope: Message, method: str, path: str, query: str = "") -> Message:
    """The scope of a request beside `scope`, for example asking(scope, "POST", "run/trace")."""
    before = scope["path"][: max(0, scope["path"].find(PREFIX))]
    whole = f"{before}{PREFIX}{path}"
    headers = [(name, value) for name, value in scope["headers"] if name.lower() not in REPLACED]
    return {
        **scope, "method": method, "path": whole, "raw_path": quote(whole).encode(), "query_string": query.encode(),
        "headers": [*headers, (b"content-type", b"application/json")],
    }  # fmt: skip


async def reply(app: Inner, scope: Message, body: bytes) -> tuple[int, bytes]:
    """The status and the whole body of an answer."""
    status, parts = 0, []

    async def send(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        else:
            parts.append(message.get("body", b""))

    await app(scope, _receiving(body), send)
    return status, b"".join(parts)


async def following(app: Inner, scope: Message) -> AsyncIterator[bytes]:
    """The parts of an answer's body as they come. Closing it ends the request as a visitor who leaves would."""
    parts: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def send(message: Message) -> None:
        parts.put_nowait(message.get("body", b""))

    async def go() -> None:
        try:
            await app(scope, _receiving(b""), send)
        finally:
            parts.put_nowait(None)

    task = asyncio.create_task(go())
    try:
        while (part := await parts.get()) is not None:
            if part:
                yield part
        await task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(task, return_exceptions=True)


async def forget(scope: Message, session: str) -> None:
    """Let Gradio's queue keep nothing of a session whose answers are all given, or that nobody waits for."""
    queue = scope["app"].get_blocks()._queue
    queue.pending_messages_per_session.pop(session, None)
    await queue.clean_events(session_hash=session)


def _receiving(body: bytes) -> Any:
    """What the app receives: the body, and after it nothing for as long as it asks."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if not waiting:
            await asyncio.Event().wait()
        return waiting.pop()

    return receive
