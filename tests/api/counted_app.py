"""app.py with each run of the block and of the language model counted and slowed down.

python tests/api/counted_app.py --count FILE PAUSE …: one byte a run is added to FILE, and each takes PAUSE seconds.
"""

from __future__ import annotations

import runpy
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from explorer import generation  # noqa: E402

run = import_module("explorer.run")


def count(*_: Any) -> None:
    """One run more."""
    with FILE.open("ab") as file:
        file.write(b".")
    time.sleep(PAUSE)


def counted(*given: Any, **named: Any) -> Any:
    count()
    return record(*given, **named)


def counted_model(*given: Any) -> Any:
    found = model(*given)
    if found not in hooked:
        found.register_forward_hook(count)
        hooked.append(found)
    return found


at = sys.argv.index("--count")
FILE, PAUSE = Path(sys.argv[at + 1]), float(sys.argv[at + 2])
del sys.argv[at : at + 3]
record, model = run.record, generation._model
hooked: list[Any] = []
run.record, generation._model = counted, counted_model
runpy.run_path(str(ROOT / "app.py"), run_name="__main__")
