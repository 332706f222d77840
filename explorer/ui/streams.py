"""Gradio's queue for several servers: a call that joins at one is answered in its asker's stream, wherever that is.

Purpose: `Streams.join` and `Streams.answer`, in place of queue/join and queue/data. A call waits in the mailbox; the
server with the stream takes it out, lets it through its own queue under a session of its own, and passes Gradio's
messages on under the name by which the asker knows the call.
Must not know: what is asked, what the messages say.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs
from uuid import uuid4

from explorer.ui import inside
from explorer.ui.bodies import Unreadable
from explorer.ui.crowd import Busy
from explorer.ui.exchange import Exchange, Inner, Message
from explorer.ui.mailbox import OLD, Mailbox

OFTEN = 0.1  # seconds between two looks for calls that joined elsewhere
log = logging.getLogger(__name__)
CLOSING = b'data: {"msg":"close_stream"'
CLOSE = CLOSING + b',"event_id":null}\n\n'


class Streams:
    """The two addresses of the queue, for one server."""

    def __init__(self, app: Inner, box: Mailbox) -> None:
        self.app, self.box = app, box
        self._news: dict[str, asyncio.Queue[bytes]] = {}  # the streams that are open here, by session

    async def join(self, exchange: Exchange, asked: dict[str, Any]) -> None:
        """Put a call, whose session has been checked, into the mailbox. Raises Unreadable and Busy."""
        session, event = asked["session_hash"], uuid4().hex
        kept: dict[str, Any] = {name: asked[name] for name in ("data", "fn_index", "event_data") if name in asked}
        if type(asked.get("trigger_id")) is int:
            kept["trigger_id"] = asked["trigger_id"]
        try:
            body = json.dumps(kept, allow_nan=False)
        except ValueError:
            raise Unreadable("NaN and Infinity are no JSON. Send them as text, or leave them out.") from None
        try:
            room = self.box.put(session, event, body)
        except (OSError, sqlite3.Error) as error:
            log.error("the mailbox takes nothing", exc_info=error)
            room = False
        if not room:
            raise Busy
        asyncio.get_running_loop().call_later(OLD + 1, self._cleared)
        await exchange.answer(200, {"event_id": event})
        if session in self._news:
            self._news[session].put_nowait(b"")

    async def answer(self, exchange: Exchange, scope: Message) -> None:
        """The stream of a session: until everything that it asked is answered."""
        session = parse_qs(scope["query_string"].decode("latin-1")).get("session_hash", [""])[0]
        calls = self._taken(session)
        if not calls:  # Gradio says so in its own form
            await self.app(scope, exchange.receive, exchange.send)
            return
        await exchange.begin_stream()
        messages = self._news[session] = asyncio.Queue()
        gone = asyncio.create_task(exchange.left())
        running: set[asyncio.Task[None]] = set()
        try:
            while not gone.done():
                for event, body in calls:
                    task = asyncio.create_task(self._carry(scope, event, body, messages))
                    task.add_done_callback(lambda _: messages.put_nowait(b""))
                    running.add(task)
                await _passed_on(exchange, messages)
                running = {task for task in running if not task.done()}
                calls = self._taken(session)
                if not (calls or running) and messages.empty():
                    await exchange.part(CLOSE, last=True)
                    return
            exchange.call.outcome = "left"
        finally:
            gone.cancel()
            for task in running:
                task.cancel()
            if self._news.get(session) is messages:
                del self._news[session]

    def _cleared(self) -> None:
        """Nobody came for a call: its asker has left."""
        with suppress(OSError, sqlite3.Error):
            self.box.clear()

    def _taken(self, session: str) -> list[tuple[str, str]]:
        """What waits for a session; nothing while the mailbox cannot be read, which another look may find otherwise."""
        try:
            return self.box.take(session)
        except (OSError, sqlite3.Error) as error:
            log.error("the mailbox gives nothing", exc_info=error)
            return []

    async def _carry(self, scope: Message, event: str, body: str, messages: asyncio.Queue[bytes]) -> None:
        """One call, whatever happens to it: its asker waits for its end."""
        try:
            await self._through_the_queue(scope, event, body, messages)
        except Exception as error:
            log.error("a call could not be carried (%s)", type(error).__name__)  # its words may be the visitor's
            messages.put_nowait(_refusal(event, "The request could not be understood."))

    async def _through_the_queue(self, scope: Message, event: str, body: str, messages: asyncio.Queue[bytes]) -> None:
        """The queue of this server, whose messages go on under the name that the asker knows."""
        session = uuid4().hex
        asked = json.dumps({**json.loads(body), "session_hash": session}).encode()
        status, said = await inside.reply(self.app, inside.asking(scope, "POST", "queue/join"), asked)
        if status != 200:
            messages.put_nowait(_refusal(event, str(json.loads(said)["detail"])))
            return
        own, known = json.loads(said)["event_id"].encode(), event.encode()
        try:
            async for message in inside.following(
                self.app, inside.asking(scope, "GET", "queue/data", f"session_hash={session}")
            ):
                if not message.startswith(CLOSING):
                    messages.put_nowait(message.replace(own, known, 1))
        finally:
            await inside.forget(scope, session)


async def _passed_on(exchange: Exchange, messages: asyncio.Queue[bytes]) -> None:
    """What there is to say now, or in a moment."""
    try:
        message = await asyncio.wait_for(messages.get(), OFTEN)
    except TimeoutError:
        return
    while True:
        if message:
            await exchange.part(message)
        if messages.empty():
            return
        message = messages.get_nowait()


def _refusal(event: str, why: str | None) -> bytes:
    """What Gradio would say of a call that failed."""
    said = {
        "msg": "process_completed", "event_id": event, "output": {"error": why}, "success": False,
        "title": "Error", "used_cache": None, "cache_duration": None, "avg_time": None,
    }  # fmt: skip
    return f"data: {json.dumps(said)}\n\n".encode()
