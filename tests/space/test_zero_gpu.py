"""On ZeroGPU: the CPU everywhere, CUDA in one marked function alone, and that one only when it is asked for.

Everything here runs in a process of its own with a stand-in for the package `spaces` (fake_spaces/spaces.py).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FAKE = Path(__file__).parent / "fake_spaces"
REPORT = """
import spaces
print("REPORT", json.dumps({"marked": spaces.marked, "touches": spaces.touches, "said": said, "hooks": hooks}))
"""


def on_zero_gpu(code: str) -> dict[str, Any]:
    """Runs `code` as on ZeroGPU; it may fill `said` and `hooks`. Returns them with what the stand-in saw."""
    environment = os.environ | {
        "SPACES_ZERO_GPU": "true", "PYTHONPATH": f"{FAKE}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", f"import json\nsaid = {{}}\nhooks = {{}}\n{code}\n{REPORT}"],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    line = next(line for line in done.stdout.splitlines() if line.startswith("REPORT "))
    report: dict[str, Any] = json.loads(line.removeprefix("REPORT "))
    return report


def test_nothing_but_the_marked_function_touches_cuda() -> None:
    """The app is built, the page asked at every stage, every endpoint and the command line used, a text written."""
    report = on_zero_gpu("""
import app, spaces, tempfile
from pathlib import Path
from explorer import Edit, PRESETS, RunSpec, SpecError, run, sources
from explorer.__main__ import main
from explorer.generation import Sampling, write
from explorer.ui import api, endpoints, page
from tests.small_checkpoint import write_checkpoint

said["after torch"] = spaces.after_torch
folder = Path(tempfile.mkdtemp())
sources.offer("tiny", write_checkpoint(folder / "tiny"))
for stage in range(1, 9):
    said[f"stage {stage}"] = page.answer({"seq": stage, "stage": stage})["ok"]
for name, spec in PRESETS.items():
    said[name] = run(spec).device
for spec in (
    RunSpec(weights="checkpoint:tiny", text="the cat sees", T=3, layer=1, edits=(Edit("probs", (0, 0, 1, 0), 0.5),)),
    RunSpec(weights="random", d_model=8, h=2, T=4, past=2, experts=3, dtype="bfloat16", attention="explicit"),
    RunSpec(T=200, weights="random", d_model=8, h=2, attention="flash", switches=("no_rope",)),
):
    said[spec.weights + spec.dtype] = run(spec).device
try:
    run(RunSpec(device="cuda"))
except SpecError as error:
    said["cuda"] = str(error)
said["text"] = [part.done for part in write("tiny", "the cat", Sampling(new_tokens=3))][-1]
for name in ("trace", "ledger", "figure"):
    said[name] = api._answered(getattr(endpoints, name))()["ok"]
said["walk"] = main(["export", str(folder / "walk.html")])
""")
    assert report["touches"] == []
    assert report["marked"] == [["explorer.ui.gpu.compute", 5]], "the Space is refused without one"
    said = report["said"]
    assert said.pop("after torch") is False, "spaces has to come first"
    assert said.pop("cuda") == "device = 'cuda' is not available here. Choose auto or cpu."
    assert said.pop("walk") == 0
    assert set(map(str, said.values())) == {"True", "cpu"}, said
    assert len(said) >= 18


@pytest.fixture(scope="module")
def asked_for() -> dict[str, Any]:
    """What happens when the marked function is called, once with the way there and back alone, once in earnest."""
    return on_zero_gpu("""
from explorer.ui import api, endpoints, gpu
from explorer import RunSpec, Edit, run
from explorer.capture.recorder import hooks_on
from explorer.run import prepare
import spaces, torch
edits = (Edit("probs", (0, 0, 1, 0), 0.5),)
spec = RunSpec(T=4, past=1, weights="random", d_model=8, h=2, edits=edits, switches=("no_rope",))
gpu.PLACE = "cpu"  # there is no GPU here
answer = api._answered(endpoints.gpu)("", gpu.as_settings(spec))
result = spaces.calls[0]["result"]
said["ok"], said["largest"] = answer["ok"], answer["largest"]
said["names"] = [row["name"] for row in answer["rows"]] == list(run(spec).names)
said["kinds"] = sorted({type(x).__name__ for x in result["values"].values()} | {type(result["device"]).__name__})
gpu.PLACE = "cuda"
said["refused"] = api._answered(endpoints.gpu)("", gpu.as_settings(spec))
hooks.update(hooks_on(prepare(spec).block))
said["touches"] = len(spaces.touches)
try:
    torch.cuda.current_device()
except RuntimeError:
    pass
""")


def test_the_marked_function_takes_and_gives_plain_data_and_numpy(asked_for: dict[str, Any]) -> None:
    said = asked_for["said"]
    assert (said["ok"], said["largest"], said["names"]) == (True, 0.0, True)
    assert said["kinds"] == ["ndarray", "str"]


def test_it_leaves_no_hook_and_no_error_text_when_it_fails(asked_for: dict[str, Any]) -> None:
    assert asked_for["said"]["refused"]["errors"][""].startswith("Something went wrong here.")
    assert set(asked_for["hooks"].values()) == {0}


def test_the_stand_in_does_notice_a_touch(asked_for: dict[str, Any]) -> None:
    assert asked_for["said"]["touches"] == 0
    assert len(asked_for["touches"]) == 1


def test_no_other_module_names_the_gpu_s_functions() -> None:
    users = [
        path.relative_to(ROOT).as_posix()
        for path in [*(ROOT / "explorer").rglob("*.py"), ROOT / "app.py"]
        if re.search(r"torch\.cuda|\.cuda\(|spaces\.GPU", path.read_text(encoding="utf-8"))
    ]
    assert sorted(users) == ["explorer/device.py", "explorer/ui/gpu.py"]


@pytest.mark.gpu
def test_a_real_gpu_agrees_with_the_cpu() -> None:
    from explorer.spec import PRESETS
    from explorer.ui.gpu import compare

    for name in ("toy", "capstone", "minimind3"):
        found = compare(PRESETS[name])
        assert found["largest"] < 1e-3, found


def test_without_a_gpu_the_answer_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from explorer import RunSpec, SpecError
    from explorer.ui.gpu import compare

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SpecError, match="There is no GPU here"):
        compare(RunSpec())
