"""(c) How long a learner waits: from `python app.py` to the page answering, over importing gradio and torch alone."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench.stats import Row, compare
from tests.browser.server import Server

BAR = 1.4


def import_seconds() -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import gradio, torch"], check=True)
    return time.perf_counter() - begin


def start_seconds(log: Path) -> float:
    with Server(log) as server:
        return server.started_after


def measure(rounds: int) -> list[Row]:
    """Alternating rounds after one of each that only warms the disk cache."""
    with TemporaryDirectory() as folder:
        log = Path(folder) / "app.log"
        pairs = [(start_seconds(log), import_seconds()) for _ in range(rounds + 1)]
    ours, floor = zip(*pairs[1:], strict=True)
    return [compare("c", "start", ours, floor, bar=BAR, unit="s")]
