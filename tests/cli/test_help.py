"""The help of every command: quick, with examples that work, and true to what this copy has."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest

from explorer import RunSpec, offers, sources
from explorer.cli.options import GROUPS
from explorer.cli.parser import COMMANDS
from explorer.offers import OFFERS
from explorer.quantities import QUANTITIES, WEIGHTS
from tests.cli.conftest import Said
from tests.small_checkpoint import write_checkpoint

ROOT = Path(__file__).resolve().parents[2]


def test_help_is_quick_and_needs_no_torch() -> None:
    code = (
        "import sys; sys.argv = ['explorer', 'trace', '--help']\n"
        "from explorer.__main__ import main\n"
        "try: main()\n"
        "except SystemExit as end: print(end.code, sorted({'torch', 'gradio', 'plotly', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 []"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_examples(say: Callable[..., Said], command: str) -> None:
    status, out, err = say(command, "--help")
    assert (status, err) == (0, "")
    assert COMMANDS[command][0] in out
    assert len(re.findall(rf"^  python -m explorer {command}", out, re.MULTILINE)) >= 2
    assert all(len(line) <= 120 for line in out.splitlines())


@pytest.mark.parametrize("shipped", [True, False])
def test_generate_says_what_it_does_without_a_checkpoint(
    say: Callable[..., Said], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, shipped: bool
) -> None:
    folder = write_checkpoint(tmp_path / "checkpoint") if shipped else tmp_path / "none"
    monkeypatch.setattr(offers, "SHIPPED", folder)
    OFFERS.pop(offers.SHIPPED_NAME, None)
    _, out, _ = say("generate", "--help")
    bare = "  python -m explorer generate --prompt" in out
    text = " ".join(out.split())
    assert (bare, "(default: the one of this copy)" in text, "this copy has no checkpoint of its own" in text) == (
        shipped, shipped, not shipped,
    )  # fmt: skip
    if shipped:
        sources.offer(offers.SHIPPED_NAME, folder)
    status, _, err = say("generate", "--prompt", "Once", "--new-tokens", "2")
    assert (status == 0) is shipped
    assert ("has no checkpoint of its own. Give one with --checkpoint PATH." in err) is not shipped


def test_trace_names_every_quantity_and_weight(say: Callable[..., Said]) -> None:
    words = say("trace", "--help")[1].split()
    assert {*QUANTITIES, *WEIGHTS, "mlp.experts.N.up_proj.weight"} <= set(words)


def test_every_field_of_a_run_is_an_option() -> None:
    named = [name for group in GROUPS.values() for name in group]
    assert sorted(named) == sorted(f.name for f in fields(RunSpec) if f.name not in ("edits", "switches"))


def test_the_examples_work(say: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    examples = [line.strip() for name in ("trace", "ledger", "figure") for line in COMMANDS[name][1].splitlines()]
    for line in filter(None, examples):
        words = [quoted or plain for quoted, plain in re.findall(r'"([^"]*)"|(\S+)', line.removeprefix("{p} "))]
        status, _, err = say(*words)
        assert status == 0, (line, err)
    assert {path.name for path in tmp_path.iterdir()} == {"capstone.npz", "attention.html", "rope.json"}
