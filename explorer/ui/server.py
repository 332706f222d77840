"""What stands between the network and Gradio: bounds, headers, a health endpoint, and clean refusals.

Purpose: `middleware()`, an ASGI layer for launch(app_kwargs=…), so that the app can stand in public.
Must not know: what requests mean. Nothing of a request's content is logged or echoed.

Gradio 6 runs the page's server functions outside of its queue, in up to 40 threads, reads bodies of any size, keeps
the events of its two-step calls in one process, and answers a malformed request with a server error. This layer bounds
the first two, lets an event carry its own request, and refuses.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress

from gradio.route_utils import FnIndexInferError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

from explorer.ui import access, bodies, inside, steps
from explorer.ui.bodies import Endpoint, Unreadable
from explorer.ui.crowd import AT_ONCE, TEXTS_WAITING, WAITING, Busy, Crowd, in_turn
from explorer.ui.exchange import BODY, Exchange, Inner, Message, Receive, Send
from explorer.ui.mailbox import Mailbox
from explorer.ui.places import CLOSED, Place, place_of
from explorer.ui.streams import Streams

JOIN = '{"data": […], "fn_index": …, "session_hash": …}'
LONGEST_SESSION = 100  # characters
UNDERSTANDING = (FnIndexInferError, KeyError, ValueError, TypeError, IndexError, AttributeError, RecursionError)


def middleware(
    endpoints: Mapping[str, Endpoint], box: Mailbox | None = None, manual: Callable[[str], str] | None = None
) -> list[Middleware]:
    """For launch(app_kwargs={"middleware": middleware(…)}). endpoints: the named ones; box: where servers of this
    machine hand each other calls, if they do; manual: the server's address -> a page about the endpoints."""
    return [Middleware(Guard, endpoints=endpoints, box=box, manual=manual)]


class Guard:
    """The layer itself. runs: who computes a block; texts: who has one continued."""

    def __init__(
        self,
        app: Inner,
        endpoints: Mapping[str, Endpoint] | None = None,
        runs: Crowd | None = None,
        box: Mailbox | None = None,
        manual: Callable[[str], str] | None = None,
    ) -> None:
        self.app = app
        self.manual = manual
        self.endpoints = endpoints or {}
        self.runs = runs or Crowd(AT_ONCE, WAITING)
        self.texts = Crowd(1, TEXTS_WAITING)
        self.streams = Streams(app, box) if box else None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        path = path[max(0, path.find("/gradio_api/")) :]  # a proxy may leave a prefix of its own
        place = place_of(path, self.endpoints)
        if not place.name:  # scripts, styles, fonts: many, and of no interest
            await self._serve(Exchange(access.Call("file"), receive, send), place, path, scope)
            return
        with access.noted(place.name) as call:
            await self._serve(Exchange(call, receive, send), place, path, scope)

    async def _serve(self, exchange: Exchange, place: Place, path: str, scope: Message) -> None:
        if place.name == "health":
            await exchange.answer(200, {"status": "ok", "waiting": self.runs.waiting + self.texts.waiting})
        elif place.name == "manual" and self.manual:
            await exchange.answer_page(self.manual(_address(scope)))
        elif CLOSED.match(path) or place.closed:
            await exchange.refuse(404, "There is nothing here.")
        elif exchange.announced(scope) > BODY:
            await exchange.refuse_body()
        else:
            await self._try(exchange, place, scope)

    async def _try(self, exchange: Exchange, place: Place, scope: Message) -> None:
        """What cannot be made sense of is the request's fault unless an answer had begun."""
        try:
            await self._answer(exchange, place, scope)
        except Unreadable as error:
            if not exchange.too_large:
                await exchange.refuse(400, str(error))
        except Busy:
            await exchange.refuse(503, "The server is busy. Try again in a moment.", "busy")
        except UNDERSTANDING as error:
            if exchange.begun:
                raise
            await exchange.refuse(400, f"The request could not be understood ({type(error).__name__}).")
        except RuntimeError as error:
            # An unknown event is found to be so when the stream has begun; Starlette then has no other way to say it.
            if not (exchange.streams and isinstance(error.__cause__, HTTPException)):
                raise
            await exchange.end_stream(steps.UNKNOWN)
        if exchange.too_large and not exchange.begun:
            await exchange.refuse_body()

    async def _answer(self, exchange: Exchange, place: Place, scope: Message) -> None:
        way = place.way if scope["method"] == ("GET" if place.way in ("event", "data") else "POST") else ""
        endpoint = self.endpoints.get(place.api) or Endpoint({})
        crowd = self.texts if endpoint.writes else self.runs
        if way in ("call", "call/v2"):
            await steps.ticket(exchange, place.api, endpoint, named=way == "call/v2")
        elif way == "event":
            await steps.answer(self.app, exchange, scope, place, endpoint, crowd)
        elif way in ("update", "run"):  # Gradio would compute them at once, however many there are
            body = await exchange.read()
            if way == "run":
                asked = bodies.read_json(body, bodies.form(endpoint.parameters))
                bodies.refuse_files(asked)
                exchange.replace({"data": bodies.in_order(asked, endpoint.parameters)})
                if endpoint.streams:  # one answer has room for the last part alone
                    scope = inside.asking(scope, "POST", f"run/{place.api.removesuffix('_stream')}")
            crowd.check()
            await in_turn(crowd, exchange, lambda: self.app(scope, exchange.receive, exchange.send))
        elif way == "join":
            await self._join(exchange, scope)
        elif way == "data" and self.streams:
            await self.streams.answer(exchange, scope)
        else:
            if scope["method"] == "POST":
                _without_files(await exchange.read())
            await self.app(scope, exchange.receive, exchange.send)

    async def _join(self, exchange: Exchange, scope: Message) -> None:
        """A call by gradio_client, or an event of the page."""
        asked = bodies.read_json(await exchange.read(), JOIN)
        bodies.refuse_files(asked)
        number = asked.get("fn_index") if isinstance(asked, dict) else None
        known = scope["app"].get_blocks().fns
        if isinstance(number, bool) or not isinstance(number, int) or number not in known:
            raise Unreadable(f"fn_index is the number of no endpoint. Send {JOIN}; /config has the numbers.")
        session = asked.get("session_hash")
        if not isinstance(session, str) or not 0 < len(session) <= LONGEST_SESSION:
            raise Unreadable(f"session_hash is no text of 1 to {LONGEST_SESSION} characters.")
        if endpoint := self.endpoints.get(known[number].api_name):
            asked["data"] = bodies.in_order(asked, endpoint.parameters)
        if self.streams:
            await self.streams.join(exchange, asked)
        else:
            exchange.replace(asked)
            await self.app(scope, exchange.receive, exchange.send)


def _address(scope: Message) -> str:
    """Where the server was reached, as the request says it: to be checked, never trusted."""
    headers = dict(scope["headers"])
    scheme = headers.get(b"x-forwarded-proto", scope.get("scheme", "http").encode()).split(b",")[0].strip()
    host = headers.get(b"x-forwarded-host", headers.get(b"host", b""))
    return f"{scheme.decode('latin-1')}://{host.decode('latin-1')}{scope.get('root_path', '')}"


def _without_files(body: bytes) -> None:
    with suppress(ValueError, RecursionError):  # Gradio reads JSON alone
        bodies.refuse_files(json.loads(body or b"null"))
