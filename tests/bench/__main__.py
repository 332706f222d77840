"""Command line of the benchmark: measures, prints a table and the same as JSON. Exit status 1 when a bar is missed.

python -m tests.bench                       everything, some minutes
python -m tests.bench --only b --rounds 50  one part, more rounds
python -m tests.bench --json bench-now.json
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
from pathlib import Path

# Before torch is imported, and for the servers that are started: one thread a process.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

from tests.bench.stats import as_json, table

PARTS = {"a": ("paint", 15), "b": ("traced", 20), "c": ("start", 5)}
BARS = (
    "a: edit-to-paint over an echo Textbox; b: traced over untraced forward; c: start over importing gradio and torch"
)


def machine() -> dict[str, object]:
    """What the numbers were measured on, and how busy it was."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {"python": platform.python_version(), "cpu": platform.machine(), "cores": os.cpu_count(), "load": load}


def main() -> int:
    flags = argparse.ArgumentParser(prog="python -m tests.bench", description=BARS)
    flags.add_argument("--only", choices=PARTS, help="measure one part")
    flags.add_argument("--rounds", type=int, help="rounds of each measurement (default: by part)")
    flags.add_argument("--json", type=Path, metavar="FILE", help="write the JSON here instead of printing it")
    chosen = flags.parse_args()
    if chosen.rounds is not None and chosen.rounds < 1:
        flags.error(f"--rounds {chosen.rounds}: at least 1 is needed")

    before, rows = machine(), []
    for part, (module, rounds) in PARTS.items():
        if chosen.only in (None, part):
            print(f"measuring {part} ({module}) ...", file=sys.stderr, flush=True)
            rows += importlib.import_module(f"tests.bench.{module}").measure(chosen.rounds or rounds)
    print(table(rows))
    text = as_json(rows, before)
    if chosen.json:
        chosen.json.write_text(text + "\n", encoding="utf-8")
    else:
        print(text)
    return 0 if all(row.passed for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
