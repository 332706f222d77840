"""Who computes now, and who waits for that.

Purpose: a few places outside of Gradio's queue; a waiting line with an end, which one can leave; and an allowance for
whoever's turn it is.
Must not know: what is computed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from explorer import allowance
from explorer.ui.exchange import Exchange

AT_ONCE = max(2, os.cpu_count() or 2)  # direct requests that compute at the same time
WAITING = 256  # direct requests that wait for that; beyond it the answer is "busy"
TEXTS_WAITING = 64  # the same for texts, which are written one at a time


class Busy(Exception):
    """So many wait already that one more is sent away."""


@dataclass
class Crowd:
    """How many requests compute, and wait to compute, outside of Gradio's queue."""

    at_once: int
    most_waiting: int
    waiting: int = 0

    def __post_init__(self) -> None:
        self.places = asyncio.Semaphore(self.at_once)

    def check(self) -> None:
        """Raises Busy where one more would be too many."""
        if self.places.locked() and self.waiting >= self.most_waiting:
            raise Busy

    async def enter(self, left: Callable[[], Awaitable[None]]) -> bool:
        """Waits for a place; False when `left` comes first."""
        if not self.places.locked():
            return await self.places.acquire()
        self.waiting += 1
        place, gone = asyncio.ensure_future(self.places.acquire()), asyncio.ensure_future(left())
        stays = False
        try:
            await asyncio.wait({place, gone}, return_when=asyncio.FIRST_COMPLETED)
            stays = not gone.done()
            return stays
        finally:
            self.waiting -= 1
            gone.cancel()
            if not place.done():
                place.cancel()
            elif not stays:  # granted to somebody who left, or whose request ended in that moment
                self.places.release()


async def in_turn(crowd: Crowd, exchange: Exchange, work: Callable[[], Awaitable[None]]) -> bool:
    """`work` when a place is free; whether whoever asked is still there at its end.

    Nothing is computed for those who leave while they wait. What is computed for those who leave later stops where it
    can.
    """
    if not await crowd.enter(exchange.left):
        exchange.call.outcome = "left"
        return False
    try:
        with allowance.started() as held:
            async with exchange.watched(held):
                await work()
    finally:
        crowd.places.release()
    return not held.left
