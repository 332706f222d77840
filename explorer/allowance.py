"""What one request may take: how long it computes, and whether anyone still waits for its answer.

Purpose: `check()`, called between steps that cannot be interrupted themselves. It raises Stopped where there is no use
in going on. Without an allowance, as in a notebook or on the command line, it does nothing.
Must not know: what is computed, who asks, and how.

The allowance in force travels in the context, which reaches the thread that computes; it is one object for all of them,
so that whoever listens to the network can still say that the asker has left.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from explorer.limits import LIMITS
from explorer.messages import say


class Stopped(Exception):
    """The work on a request has ended early. `errors` maps a field to one sentence, as SpecError's does."""

    def __init__(self, errors: Mapping[str, str]) -> None:
        self.errors = dict(errors)
        super().__init__(" ".join(self.errors.values()))


class OutOfTime(Stopped):
    """The request took longer than one may."""


class Left(Stopped):
    """Whoever asked is gone."""


@dataclass
class Allowance:
    """What one request has. gone: looks whether the asker is still there; left: set where that was heard."""

    seconds: float
    gone: Callable[[], bool] = lambda: False
    left: bool = False

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Count from now on: waiting for a turn is no computing."""
        self.until = time.monotonic() + self.seconds

    def check(self) -> None:
        """Raises Left or OutOfTime."""
        if self.left or self.gone():
            self.left = True
            raise Left({"": say("Nobody waits for this answer any more.")})
        if time.monotonic() >= self.until:
            message = say(
                "The answer was not ready after {seconds:g} seconds, the most that one request may take here. "
                "Ask for less: smaller sizes, a shorter text, fewer new tokens.",
                seconds=self.seconds,
            )
            raise OutOfTime({"": message})


_in_force: ContextVar[Allowance | None] = ContextVar("allowance", default=None)


def check() -> None:
    """Raises Stopped when the request that is computed here has used up what it may take."""
    if (held := _in_force.get()) is not None:
        held.check()


def current() -> Allowance | None:
    """The allowance in force here, to hand on to a thread of one's own."""
    return _in_force.get()


@contextmanager
def held(allowance: Allowance | None) -> Iterator[None]:
    """Work on a request's account, for a while; a generator has to let go of it at each of its steps."""
    token = _in_force.set(allowance)
    try:
        yield
    finally:
        _in_force.reset(token)


@contextmanager
def started(gone: Callable[[], bool] = lambda: False) -> Iterator[Allowance]:
    """One request: LIMITS.seconds from now on, or what is left of the allowance that is already in force."""
    allowance = _in_force.get() or Allowance(LIMITS.seconds, gone)
    with held(allowance):
        yield allowance
