"""The layer before Gradio without a network: who computes, who waits, who is told so, and what ends with an error."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from explorer.ui.crowd import Crowd
from explorer.ui.server import Guard


def ask(
    guard: Guard, path: str = "/gradio_api/component_server", body: bytes = b"{}", leaves_after: float = 60
) -> Awaitable[tuple[int, Any]]:
    """One request straight to the layer -> (status, JSON); (0, None) where there was no answer."""
    sent: list[Any] = []

    asked = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> Any:
        for message in asked:
            return message
        await asyncio.sleep(leaves_after)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    async def go() -> tuple[int, Any]:
        scope = {"type": "http", "path": path, "root_path": "", "method": "POST", "headers": []}
        await guard(scope, receive, send)
        return (sent[0]["status"], json.loads(sent[1]["body"])) if sent else (0, None)

    return go()


def replying(wait: Callable[[], Awaitable[None]]) -> Any:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await wait()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": b'{"ok":true}'})

    return app


def test_a_proxy_s_prefix_opens_nothing() -> None:
    async def never() -> None:
        raise AssertionError

    guard = Guard(replying(never))
    assert asyncio.run(ask(guard, "/explorer/gradio_api/upload")) == (404, {"detail": "There is nothing here."})  # type: ignore[arg-type]


def test_a_few_compute_some_wait_and_the_rest_are_told_so() -> None:
    running_now, most = 0, 0

    async def wait() -> None:
        nonlocal running_now, most
        running_now += 1
        most = max(most, running_now)
        await asyncio.sleep(0.02)
        running_now -= 1

    async def crowd() -> list[tuple[int, Any]]:
        guard = Guard(replying(wait), runs=Crowd(at_once=2, most_waiting=5))
        return list(await asyncio.gather(*(ask(guard) for _ in range(12))))

    replies = asyncio.run(crowd())
    assert [status for status, _ in replies].count(200) == 7
    assert [status for status, _ in replies].count(503) == 5
    assert most == 2
    assert replies[-1][1]["detail"].startswith("The server is busy.")


def test_nothing_is_computed_for_those_who_left_while_they_waited() -> None:
    computed = 0

    async def wait() -> None:
        nonlocal computed
        computed += 1
        await asyncio.sleep(0.1)

    async def crowd() -> list[tuple[int, Any]]:
        guard = Guard(replying(wait), runs=Crowd(at_once=1, most_waiting=9))
        replies = await asyncio.gather(ask(guard), *(ask(guard, leaves_after=0.02) for _ in range(4)), ask(guard))
        assert guard.runs.waiting == 0
        assert not guard.runs.places.locked()
        return list(replies)

    assert [status for status, _ in asyncio.run(crowd())] == [200, 0, 0, 0, 0, 200]
    assert computed == 2


def test_a_place_is_given_back_after_an_error() -> None:
    async def broken() -> None:
        raise KeyError("private words")

    async def thrice() -> list[tuple[int, Any]]:
        guard = Guard(replying(broken), runs=Crowd(at_once=1, most_waiting=1))
        return [await ask(guard) for _ in range(3)]

    for status, said in asyncio.run(thrice()):
        assert status == 400
        assert said == {"detail": "The request could not be understood (KeyError)."}


@pytest.mark.parametrize("ticks", range(6))
def test_a_place_is_not_lost_with_a_request_that_ends_as_it_gets_one(ticks: int) -> None:
    async def stays() -> None:
        await asyncio.sleep(60)

    async def cancelled_after_its_turn_came() -> bool:
        crowd = Crowd(at_once=1, most_waiting=9)
        assert await crowd.enter(stays)
        waiting = asyncio.create_task(crowd.enter(stays))
        await asyncio.sleep(0.01)
        crowd.places.release()
        for _ in range(ticks):
            await asyncio.sleep(0)
        waiting.cancel()
        got = await asyncio.gather(waiting, return_exceptions=True)
        await asyncio.sleep(0.01)
        assert crowd.waiting == 0
        return crowd.places.locked() == (got == [True])

    assert asyncio.run(cancelled_after_its_turn_came())


def test_our_own_errors_are_not_called_the_askers() -> None:
    async def broken() -> None:
        raise MemoryError

    with pytest.raises(MemoryError):
        asyncio.run(ask(Guard(replying(broken))))  # type: ignore[arg-type]
