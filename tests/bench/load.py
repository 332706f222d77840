"""Many people editing at once: is every answer its asker's, how long does it take, and does memory stay flat?

python -m tests.bench.load                          32 people for 30 s, once a second each
python -m tests.bench.load --seconds 300 --pace 1   the five minutes that a public server has to stand
python -m tests.bench.load --url http://127.0.0.1:7860/ --clients 8

Each client edits one cell of the toy over and over, each time to a number nobody else uses, and checks by value that
the answer is for that number: the cell itself, and the normalized row that the block made of it, calculated here in
float64. A few clients hang up while their answer is on its way. One person alone is measured first, in the same run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import random
import statistics
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from tests.browser.server import Server

BAR = 4.0  # the 95th percentile of many over the median of one
FLAT = 1.15  # memory at the end over memory after warm-up
HANG_UP = 0.03  # share of requests that are left before the answer


@dataclass
class Tally:
    """What was seen. wrong: sentences about answers that were not the asker's, or no answers at all."""

    seconds: list[float] = field(default_factory=list)
    left: int = 0
    wrong: list[str] = field(default_factory=list)

    def p(self, share: float) -> float:
        """A percentile in milliseconds."""
        ordered = sorted(self.seconds)
        return 1000 * ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)] if ordered else math.nan


class Visitor:
    """One page: its own connection and session, one question at a time."""

    def __init__(self, number: int, url: str, component: int) -> None:
        self.number, self.component, self.seq = number, component, 0
        self.http = httpx.AsyncClient(base_url=url, trust_env=False, timeout=60)
        self.random = random.Random(number)

    def question(self, x: float) -> dict[str, Any]:
        self.seq += 1
        asked = {
            "seq": self.seq,
            "spec": {},
            "edits": [{"t": "resid_pre", "i": [0, 0, 1], "x": x, "on": True}],
            "stage": 1,
        }
        session = f"load-{self.number}"
        return {
            "session_hash": session, "component_id": self.component, "fn_name": "update", "data": json.dumps(asked),
        }  # fmt: skip

    async def edit(self, tally: Tally) -> None:
        """One edit to a number of this visitor's own, checked."""
        x = round(1 + self.number + self.random.random(), 6)
        body = self.question(x)
        if self.random.random() < HANG_UP:
            await self.hang_up(body)
            tally.left += 1
            return
        began = time.perf_counter()
        try:
            reply = await self.http.post("gradio_api/component_server", json=body)
        except httpx.HTTPError as error:
            tally.wrong.append(f"no answer: {type(error).__name__}")
            return
        tally.seconds.append(time.perf_counter() - began)
        if reply.status_code != 200:
            tally.wrong.append(f"status {reply.status_code}")
        elif trouble := misfit(json.loads(reply.json()), self.seq, x):
            tally.wrong.append(trouble)

    async def hang_up(self, body: dict[str, Any]) -> None:
        """Ask and go away before the answer comes."""
        task = asyncio.create_task(self.http.post("gradio_api/component_server", json=body))
        await asyncio.sleep(0.005)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def misfit(answer: dict[str, Any], seq: int, x: float) -> str:
    """What is wrong with an answer for the edit of X[0, 1] to x; "" when nothing is."""
    if not answer.get("ok") or answer.get("seq") != seq:
        return f"answer {answer.get('seq')} for question {seq}: {answer.get('errors')}"
    shown = {panel["q"]: panel["slices"][0]["values"] for panel in answer["panels"]}
    root = math.sqrt((1 + x * x) / 2 + 1e-6)
    expected = {"resid_pre": (1.0, x), "attn_norm": (1 / root, x / root)}
    for name, row in expected.items():
        if any(not math.isclose(a, b, rel_tol=1e-5) for a, b in zip(shown[name], row, strict=False)):
            return f"{name} = {shown[name][:2]}, expected {row}"
    return ""


async def component_of(url: str) -> int:
    """The number of the page's component."""
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as http:
        config = (await http.get("config")).json()
    return next(c["id"] for c in config["components"] if c["props"].get("server_fns"))


async def visit(url: str, clients: int, seconds: float, pace: float) -> Tally:
    """`clients` visitors for so long, each pausing about `pace` seconds between edits."""
    component, tally = await component_of(url), Tally()
    end = time.perf_counter() + seconds

    async def one(number: int) -> None:
        visitor = Visitor(number, url, component)
        await asyncio.sleep(visitor.random.random() * pace)
        while time.perf_counter() < end:
            await visitor.edit(tally)
            await asyncio.sleep(visitor.random.uniform(0.5, 1.5) * pace)
        await visitor.http.aclose()

    await asyncio.gather(*(one(number) for number in range(clients)))
    return tally


def memory_of(pid: int) -> int:
    """Resident bytes of a process; 0 where the system does not say."""
    status = Path(f"/proc/{pid}/status")
    if not status.is_file():
        return 0
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


def processor_seconds_of(pid: int) -> float:
    """Processor time that a process used so far; 0 where the system does not say."""
    stat = Path(f"/proc/{pid}/stat")
    if not stat.is_file():
        return 0.0
    user, system = stat.read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def measure(url: str, pid: int, clients: int, seconds: float, pace: float) -> dict[str, Any]:
    """One person alone, a warm-up, then all of them."""
    alone = asyncio.run(visit(url, 1, min(10.0, seconds), 0.1))
    asyncio.run(visit(url, clients, min(10.0, seconds), pace))
    warm, used = memory_of(pid), processor_seconds_of(pid)
    many = asyncio.run(visit(url, clients, seconds, pace))
    ended, used = memory_of(pid), processor_seconds_of(pid) - used
    with httpx.Client(trust_env=False) as http:
        waiting = http.get(f"{url}healthz").json()["waiting"]
    median = 1000 * statistics.median(alone.seconds)
    return {
        "clients": clients, "seconds": seconds, "edits": len(many.seconds), "left": many.left,
        "alone ms": round(median, 1), "median ms": round(many.p(0.5), 1), "p95 ms": round(many.p(0.95), 1),
        "ratio": round(many.p(0.95) / median, 2), "warm MiB": round(warm / 2**20), "end MiB": round(ended / 2**20),
        "processor ms an edit": round(1000 * used / max(1, len(many.seconds) + many.left), 1),
        "memory": round(ended / warm, 3) if warm else None, "still waiting": waiting,
        "wrong": len(alone.wrong) + len(many.wrong), "first wrong": [*alone.wrong, *many.wrong][:3],
    }  # fmt: skip


def main() -> int:
    flags = argparse.ArgumentParser(prog="python -m tests.bench.load", description=__doc__.splitlines()[0])
    flags.add_argument("--clients", type=int, default=32)
    flags.add_argument("--seconds", type=float, default=30.0)
    flags.add_argument("--pace", type=float, default=1.0, help="seconds between two edits of one person")
    flags.add_argument("--url", help="a server that runs already (its memory is not measured); default: a fresh one")
    chosen = flags.parse_args()
    with TemporaryDirectory() as folder:
        if chosen.url:
            found = measure(chosen.url.rstrip("/") + "/", 0, chosen.clients, chosen.seconds, chosen.pace)
        else:
            with Server(Path(folder) / "app.log") as server:
                found = measure(server.url, server.process.pid, chosen.clients, chosen.seconds, chosen.pace)
    print(json.dumps(found, indent=1))
    passed = not found["wrong"] and found["ratio"] <= BAR and (found["memory"] or 1) <= FLAT
    print("passed" if passed else f"a bar was missed: ratio at most {BAR}, memory at most {FLAT}, nothing wrong")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
