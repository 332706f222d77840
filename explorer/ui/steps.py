"""Calls in two steps, POST call/NAME and GET call/NAME/EVENT, that any of several servers can answer.

Purpose: `ticket`, the first step, and `answer`, the second. Gradio's own first step starts the work and keeps the event
in its process; here the event is a ticket that says what was asked, and nothing is computed before it comes back.
Must not know: what is asked, who may ask it.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gradio.utils import get_heartbeat_rate

from explorer.ui import bodies, tickets
from explorer.ui.bodies import Endpoint, Unreadable
from explorer.ui.crowd import Busy, Crowd, in_turn
from explorer.ui.exchange import Exchange, Inner, Message
from explorer.ui.inside import asking, forget, reply
from explorer.ui.places import Place

log = logging.getLogger(__name__)
UNKNOWN = "There is no such event."
TOO_LONG = (
    "The request is too long to be asked in two steps: what it says, packed, has more than {most:,} characters. "
    "Send it to /gradio_api/run/{name}, which answers in one."
)


async def ticket(exchange: Exchange, name: str, endpoint: Endpoint, named: bool) -> None:
    """The first step. named: the parameters come by name. Raises Unreadable."""
    asked = bodies.read_json(await exchange.read(), bodies.form(endpoint.parameters, named))
    bodies.refuse_files(asked)
    read = bodies.by_name if named else bodies.in_order
    try:
        event = tickets.written(name, read(asked, endpoint.parameters))
    except tickets.TooLong:
        at_once = name.removesuffix("_stream")
        await exchange.refuse(413, TOO_LONG.format(most=tickets.LONGEST, name=at_once))
    else:
        await exchange.answer(200, {"event_id": event})


async def answer(
    app: Inner, exchange: Exchange, scope: Message, place: Place, endpoint: Endpoint, crowd: Crowd
) -> None:
    """The second step, in Gradio's form. Raises Busy."""
    try:
        data = tickets.read(place.event, place.api)
        bodies.refuse_files(data)
        body = json.dumps({"data": bodies.in_order({"data": data}, endpoint.parameters)}).encode()
    except Unreadable:
        await exchange.end_stream(UNKNOWN)
        return
    if endpoint.streams:
        await _as_it_comes(app, exchange, scope, place.api, body)
    else:
        await _at_once(app, exchange, scope, place.api, body, crowd)


async def _as_it_comes(app: Inner, exchange: Exchange, scope: Message, name: str, body: bytes) -> None:
    """Gradio's own two steps within this server, of which the visitor sees the second."""
    status, said = await reply(app, asking(scope, "POST", f"call/{name}"), body)
    if status != 200:
        raise Busy
    event = json.loads(said)["event_id"]
    try:
        await app(asking(scope, "GET", f"call/{name}/{event}"), exchange.receive, exchange.send)
    finally:
        await forget(scope, event)  # an event without a session is its own


async def _at_once(app: Inner, exchange: Exchange, scope: Message, name: str, body: bytes, crowd: Crowd) -> None:
    """The answer of run/NAME as the one event of a stream that beats while it is awaited."""
    status, said = 500, b'{"error": null}'

    async def work() -> None:
        nonlocal status, said
        try:
            status, said = await reply(app, asking(scope, "POST", f"run/{name}"), body)
        except Exception:  # the stream has begun and has to end
            log.exception("%s failed", name)

    crowd.check()
    await exchange.begin_stream()
    async with _beating(exchange):
        there = await in_turn(crowd, exchange, work)
    if there:
        await exchange.event(*await asyncio.to_thread(_event, status, said), last=True)


def _event(status: int, said: bytes) -> tuple[str, str]:
    """The last event's name and data, as Gradio writes them."""
    content = json.loads(said)
    return ("complete", json.dumps(content["data"])) if status == 200 else ("error", json.dumps(content))


@asynccontextmanager
async def _beating(exchange: Exchange) -> AsyncIterator[None]:
    async def beat() -> None:
        while True:
            await asyncio.sleep(get_heartbeat_rate())
            await exchange.event("heartbeat", "null")

    beating = asyncio.create_task(beat())
    try:
        yield
    finally:
        beating.cancel()
