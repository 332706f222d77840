"""The example notebook runs from top to bottom and shows what its text says."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "notebooks" / "walkthrough.ipynb"
Output = dict[str, object]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, list[Output]]]:
    """(source, outputs) of every code cell, run as Jupyter runs it."""
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as environment:
        warnings.simplefilter("ignore")  # Jupyter's own, about its own paths and event loops
        import nbformat
        from nbclient import NotebookClient

        notebook = nbformat.read(NOTEBOOK, as_version=4)
        # Nothing of a user's own Jupyter or IPython settings, and nothing left behind.
        for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR"):
            environment.setenv(name, str(tmp_path_factory.mktemp(name.lower())))
        client = NotebookClient(
            notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(NOTEBOOK.parent)}}
        )
        client.execute()
    return [(cell.source, cell.outputs) for cell in notebook.cells if cell.cell_type == "code"]


def shown(outputs: list[tuple[str, list[Output]]], source: str) -> tuple[str, dict[str, object]]:
    """What the cell that contains `source` printed, and the data of its last expression."""
    found = next(out for text, out in outputs if source in text)
    printed = "".join(str(o["text"]) for o in found if o["output_type"] == "stream")
    data = next((o["data"] for o in found if o["output_type"] in ("execute_result", "display_data")), {})
    assert isinstance(data, dict)
    return printed, data


def test_nothing_goes_wrong_on_the_way(outputs: list[tuple[str, list[Output]]]) -> None:
    for source, found in outputs:
        assert not [o for o in found if o["output_type"] == "error" or o.get("name") == "stderr"], source


def test_a_trace_and_a_ledger_show_themselves(outputs: list[tuple[str, list[Output]]]) -> None:
    trace = str(shown(outputs, "trace = run(RunSpec())")[1]["text/html"])
    assert "One run of a block" in trace
    assert "attention probabilities" in trace
    assert "1, 0, 0.5, 0.5" in trace
    ledger = str(shown(outputs, "capstone.ledger()")[1]["text/html"])
    assert "B×h×T×d_h" in ledger
    assert "2×3×5×4" in ledger


def test_figures_are_plotly_s(outputs: list[tuple[str, list[Output]]]) -> None:
    for source in ('"attention"', '"residual"', '"rope"'):
        data = shown(outputs, f"figure({source}")[1]
        assert "application/vnd.plotly.v1+json" in data, list(data)


def test_numbers_are_the_lesson_s(outputs: list[tuple[str, list[Output]]]) -> None:
    assert "[0.5 0.5]" in shown(outputs, 'trace.axes("probs")')[0]
    assert "computed [0.5 0.5] edited [1. 0.]" in shown(outputs, "edited.before")[0]
    assert "?v=1&e=probs@0.0.1.0~1!probs@0.0.1.1~0&stage=5" in shown(outputs, "encode(")[0]
    assert shown(outputs, "effects(capstone")[0].count("\n") == 5


def test_a_cell_opens(outputs: list[tuple[str, list[Output]]]) -> None:
    printed, data = shown(outputs, "inspect(trace")
    assert re.search(r"1\.41421\d+ by the block, 1\.41421\d+ by the formula", printed)
    assert "<math" in str(data["text/html"])


def test_it_is_kept_without_outputs() -> None:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert len(cells) > 12
    assert all(not c.get("outputs") and c.get("execution_count") is None for c in cells if c["cell_type"] == "code")
