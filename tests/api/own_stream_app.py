"""app.py without the layer before Gradio, to compare with: its answers are Gradio's own."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from explorer.ui import server  # noqa: E402

server.middleware = lambda *_: []
sys.argv[0] = "app.py"
runpy.run_path(str(ROOT / "app.py"), run_name="__main__")
