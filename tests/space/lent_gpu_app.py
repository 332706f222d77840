"""The app as on a ZeroGPU Space, with a stand-in for `spaces` and the CPU in the place of the GPU that is lent.

python tests/space/lent_gpu_app.py --host 127.0.0.1 --port 8000 [--refuse]
--refuse: no GPU is lent, as when a visitor's quota is spent.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
os.environ["SPACES_ZERO_GPU"] = "true"
sys.path[:0] = [str(ROOT), str(Path(__file__).parent / "fake_spaces")]

import explorer.device  # noqa: E402, F401  # brings the stand-in, before torch
from explorer.ui import gpu  # noqa: E402

gpu.PLACE = "cpu"

if "--refuse" in sys.argv:
    from gradio import Error

    sys.argv.remove("--refuse")

    def refuse(settings: dict[str, Any]) -> dict[str, Any]:
        raise Error('You have used it up. <a href="https://example.org">Sign in</a> for more.')

    gpu.compute = refuse

sys.argv[0] = "app.py"
runpy.run_path(str(ROOT / "app.py"), run_name="__main__")
