"""The access log: one JSON object a line, without anything that a visitor wrote.

Purpose: time, endpoint, milliseconds, bytes and outcome of each request, for whoever runs a public server.
Must not know: what a request says. Endpoints are names from a fixed list, never parts of an address.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

LOG = logging.getLogger("explorer.access")
LOG.propagate = False
LOG.addHandler(logging.NullHandler())


@dataclass
class Call:
    """One request. outcome: ok, refused (the visitor's mistake), busy, failed (ours), or left."""

    endpoint: str
    outcome: str = "ok"
    status: int = 0
    bytes_in: int = 0
    bytes_out: int = 0


@contextmanager
def noted(endpoint: str) -> Iterator[Call]:
    """Logs the call when the block ends, however it ends."""
    call, began = Call(endpoint), time.perf_counter()
    try:
        yield call
    except GeneratorExit:
        call.outcome = "left"
        raise
    except BaseException:
        call.outcome = "failed"
        raise
    finally:
        write(call, time.perf_counter() - began)


def write(call: Call, seconds: float) -> None:
    """One line; what is zero is left out."""
    sizes = {"status": call.status, "in": call.bytes_in, "out": call.bytes_out}
    line = {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"), "endpoint": call.endpoint,
        "ms": round(seconds * 1000, 1), "outcome": call.outcome, **{name: n for name, n in sizes.items() if n},
    }  # fmt: skip
    LOG.info("%s", json.dumps(line))


def start(target: str) -> None:
    """Write the log from now on: "-" to standard error, else to the end of this file. Raises OSError."""
    handler = logging.StreamHandler() if target == "-" else logging.FileHandler(Path(target), encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(message)s"))
    LOG.addHandler(handler)
    LOG.setLevel(logging.INFO)
