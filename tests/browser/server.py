"""Starts `python app.py` as a user would and stops it by its process id. Shared by browser tests and the benchmark."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

ROOT = Path(__file__).resolve().parents[2]
HOST = "127.0.0.1"
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # never through a proxy: it is this machine


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as sock:
        sock.bind((HOST, 0))
        return int(sock.getsockname()[1])


def answers(url: str) -> bool:
    """Whether GET url gives 200 now."""
    try:
        with _DIRECT.open(url, timeout=5) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


class Server:
    """A context manager: `with Server(script) as server: server.url`.

    `script` is run with --host and --port; its output goes to `log` and is quoted when it dies or hangs.
    `started_after` holds the seconds from the start of the process to the first 200.
    """

    def __init__(self, log: Path, script: Path = ROOT / "app.py", extra: Sequence[str] = (), patience: float = 120):
        self.log, self.script, self.extra, self.patience = log, script, tuple(extra), patience
        self.started_after = float("nan")

    def __enter__(self) -> Server:
        port = free_port()
        self.url = f"http://{HOST}:{port}/"
        command = [sys.executable, str(self.script), "--host", HOST, "--port", str(port), *self.extra]
        # A free choice of port must not be overruled, nor the queue of requests by a proxy.
        env = {key: value for key, value in os.environ.items() if not key.startswith("GRADIO_SERVER")}
        begin = time.perf_counter()
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                command, cwd=ROOT, env=env, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
            )
        while not answers(self.url):
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.script.name} ended with {self.process.returncode}:\n{self.output()}")
            if time.perf_counter() - begin > self.patience:
                self.stop()
                raise RuntimeError(f"{self.script.name} did not answer in {self.patience} s:\n{self.output()}")
            time.sleep(0.02)
        self.started_after = time.perf_counter() - begin
        return self

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
