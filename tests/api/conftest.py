"""One real server for all API tests, with a small checkpoint, low limits and an access log."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.two_servers import Proxy
from tests.browser.server import Server
from tests.small_checkpoint import write_checkpoint

LIMITS = {"answer": 2000, "T": 128, "new_tokens": 400}


@dataclass
class Running:
    """The server's address, its access log and what it wrote to its terminal."""

    url: str
    log: Path
    server: Server

    def entries(self) -> list[dict[str, Any]]:
        """The access log so far."""
        return [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("api")
    checkpoint = write_checkpoint(folder / "tiny")
    limits = ",".join(f"{name}={n}" for name, n in LIMITS.items())
    log = folder / "access.log"
    extra = ("--limits", limits, "--checkpoint", str(checkpoint), "--log", str(log))
    with Server(folder / "app.log", extra=extra) as server:
        yield Running(server.url, log, server)


@pytest.fixture(scope="session")
def http(running: Running) -> Iterator[httpx.Client]:
    """A client that goes to the server and nowhere else."""
    with httpx.Client(base_url=running.url, trust_env=False, timeout=60) as client:
        yield client


@pytest.fixture(scope="session")
def call(http: httpx.Client) -> Callable[..., Any]:
    """call("trace", link, settings, …) -> the answer, fetched in two steps as curl would."""

    def ask(name: str, *given: Any) -> Any:
        events = stream(http, name, *given)
        assert events[-1][0] == "complete", events[-1]
        return events[-1][1][0]

    return ask


def stream(http: httpx.Client, name: str, *given: Any) -> list[tuple[str, Any]]:
    """(event, data) of everything that an endpoint sends."""
    posted = http.post(f"gradio_api/call/{name}", json={"data": list(given)})
    assert posted.status_code == 200, posted.text
    text = http.get(f"gradio_api/call/{name}/{posted.json()['event_id']}").text
    found = []
    for block in text.strip().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
        if lines["event"] != "heartbeat":  # it only says that the answer takes its time
            found.append((lines["event"], json.loads(lines["data"])))
    return found


@pytest.fixture(scope="session")
def proxy(running: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    logs = tmp_path_factory.mktemp("two")
    extra = running.server.extra[:-2]  # the same limits and checkpoint, no log
    with Server(logs / "second.log", extra=extra) as second:
        script = Path(__file__).with_name("round_robin.py")
        with Server(logs / "proxy.log", script=script, extra=(running.url, second.url)) as front:
            yield Proxy(front.url)
