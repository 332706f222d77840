"""Who hangs up stops the work, and so does the clock: between two runs and two tokens, however it was asked for."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from explorer import RunSpec, effects
from tests.browser.server import Server
from tests.small_checkpoint import write_checkpoint

PAUSE = 0.1  # seconds that a run of the block, and one of the language model, takes here at least
TEXT = ["the cat", "tiny", 200, 5.0, 0, 1.0, 1.0, 1]
SIZES = {"weights": "random", "d_model": 16, "h": 8}  # of a block with many parts to take away
SLACK = 2  # what may have begun when it is noticed that the asker has left


@dataclass
class Counted:
    """A server whose runs are counted."""

    http: httpx.Client
    runs: Path
    log: Path

    @property
    def count(self) -> int:
        """How often the block and the language model were run so far."""
        return self.runs.stat().st_size

    def outcomes(self, endpoint: str) -> list[str]:
        """What the access log says so far."""
        lines = [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines()]
        return [line["outcome"] for line in lines if line["endpoint"] == endpoint]

    def settled(self) -> int:
        """The count when nothing is computed any more."""
        before = -1
        while self.count != before:
            before = self.count
            time.sleep(4 * PAUSE)
        return before


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("leaving") / "tiny")


def serving(folder: Path, tiny: Path, box: str, limits: str) -> Iterator[Counted]:
    runs, log = folder / "runs", folder / "access.log"
    runs.touch()
    where = str(folder) if box == "mailbox" else "off"
    extra = ("--count", str(runs), str(PAUSE), "--checkpoint", str(tiny), "--log", str(log), "--mailbox", where)
    script = Path(__file__).with_name("counted_app.py")
    with (
        Server(folder / "app.log", script, extra=(*extra, "--limits", limits)) as server,
        httpx.Client(base_url=server.url, trust_env=False, timeout=60) as http,
    ):
        http.post("gradio_api/run/generate", json={"data": ["the", "tiny", 1]})  # loads the model
        yield Counted(http, runs, log)


@pytest.fixture(scope="module", params=["mailbox", "alone"])
def patient(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, tiny: Path) -> Iterator[Counted]:
    yield from serving(tmp_path_factory.mktemp("patient"), tiny, request.param, "seconds=60")


@pytest.fixture(scope="module", params=["mailbox", "alone"])
def short(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, tiny: Path) -> Iterator[Counted]:
    yield from serving(tmp_path_factory.mktemp("short"), tiny, request.param, "seconds=1")


# -------------------------------------------------------------------------------------------------- the ways of asking


def table(http: httpx.Client) -> tuple[str, str, Any]:
    """The page's request for the what-if table."""
    config = http.get("config").json()
    component = next(c["id"] for c in config["components"] if c["props"].get("server_fns"))
    asked = json.dumps({"seq": 1, "spec": {**SIZES, "seed": time.monotonic_ns() % 10**6}, "want": ["effects"]})
    body = {"session_hash": "anyone", "component_id": component, "fn_name": "update", "data": asked}
    return "POST", "gradio_api/component_server", body


def at_once(http: httpx.Client) -> tuple[str, str, Any]:
    return "POST", "gradio_api/run/generate", {"data": TEXT}


def in_two_steps(http: httpx.Client, name: str = "generate") -> tuple[str, str, Any]:
    event = http.post(f"gradio_api/call/{name}", json={"data": TEXT}).json()["event_id"]
    return "GET", f"gradio_api/call/{name}/{event}", None


def streamed(http: httpx.Client) -> tuple[str, str, Any]:
    return in_two_steps(http, "generate_stream")


def queued(http: httpx.Client, name: str = "generate") -> tuple[str, str, Any]:
    config = http.get("config").json()
    number = next(d["id"] for d in config["dependencies"] if d["api_name"] == name)
    session = f"session{time.monotonic_ns()}"
    joined = http.post("gradio_api/queue/join", json={"data": TEXT, "fn_index": number, "session_hash": session})
    assert joined.status_code == 200, joined.text
    return "GET", f"gradio_api/queue/data?session_hash={session}", None


def queued_stream(http: httpx.Client) -> tuple[str, str, Any]:
    return queued(http, "generate_stream")


WAYS: dict[Callable[[httpx.Client], tuple[str, str, Any]], str] = {
    table: "update", at_once: "generate", in_two_steps: "generate", streamed: "generate_stream", queued: "generate",
    queued_stream: "generate_stream",
}  # fmt: skip


def hang_up(http: httpx.Client, method: str, path: str, body: Any) -> None:
    """Ask, listen for a while, and go."""
    began = time.monotonic()
    with suppress(httpx.ReadTimeout), http.stream(method, path, json=body, timeout=5 * PAUSE) as reply:
        for _ in reply.iter_raw():
            if time.monotonic() - began > 5 * PAUSE:
                return


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_who_hangs_up_stops_the_work(patient: Counted, way: Any) -> None:
    method, path, body = way(patient.http)
    before, lines = patient.count, len(patient.outcomes(WAYS[way]))
    hang_up(patient.http, method, path, body)
    then = patient.count
    assert then > before + 1
    assert patient.settled() <= then + SLACK
    assert patient.outcomes(WAYS[way])[lines:] == ["left"]
    assert patient.http.get("healthz").json()["waiting"] == 0


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_the_clock_stops_the_work(short: Counted, way: Any) -> None:
    before, lines = short.count, len(short.outcomes(WAYS[way]))
    method, path, body = way(short.http)
    said = short.http.request(method, path, json=body).text
    assert "The answer was not ready after 1 seconds, the most that one request may take here." in said
    assert 5 <= short.count - before <= 11
    while len(short.outcomes(WAYS[way])) == lines:  # a line follows its answer
        time.sleep(0.02)
    assert short.outcomes(WAYS[way])[lines:] == ["refused"]


def test_the_table_takes_more_runs_than_that() -> None:
    assert len(effects._applicable(RunSpec(**SIZES))) > 14
