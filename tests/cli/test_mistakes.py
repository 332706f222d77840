"""What a command says when something is wrong, in one clear line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Said
from tests.small_checkpoint import write_checkpoint

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        (("trace", "--B", "two"), "--B: B = 'two' is not a number"),
        (("ledger", "--d-model", "12"), "--d-model: The toy's weights need d_model = 2, not 12."),
        (("trace", "--weights", "random", "--d_model", "12", "--h", "5"), "--h: h = 5 does not divide d_model = 12."),
        (("trace", "--edit", "probs[0,0,9,0]=1"), "--edit number 1: probs has shape 1×1×2×2;"),
        (("trace", "--edit", "probs"), "--edit: The edit 'probs' could not be read. Write TARGET[INDEX]=VALUE"),
        (("trace", "--switch", "no_masks"), "--switch: There is no switch 'no_masks'."),
        (("trace", "--only", "nothing"), "--only: This run has no 'nothing'."),
        (("trace", "--only", "prob"), "--only: This run has no 'prob'. Did you mean 'probs'? It has resid_pre, "),
        (("export", "walk.html", "--row", "3", "--head", "9"), "This run has no batch row 3. Choose one from 0 to 0."),
        (("export", "walk.html", "--head", "-1"), "This run has no head -1. Choose one from 0 to 0."),
        (("bridge", "--switch", "no_mask"), "unrecognized arguments: --switch no_mask"),
        (("bridge", "--edit", "probs[0,0,1,0]=1"), "--edit: the checks run without edits of quantities such as probs."),
        (("trace", "--only", "nothing", "--out", "run.npz"), "--only: This run has no 'nothing'."),
        (
            ("trace", "--weights", "random", "--B", "2", "--T", "1024", "--h", "32", "--d-model", "64"),
            "--only: scores has 2×32×1024×1024 cells, 256 MiB in float32; at most 128 MiB are computed at once.",
        ),
        (("trace", "--out", "run.txt"), "--out run.txt: the name must end in .json or .npz."),
        (("trace", "--out", "/nowhere/run.json"), "/nowhere/run.json cannot be written: No such file"),
        (("trace", "--preset", "toy", "--link", "T=3"), "--link: A link and a preset are given."),
        (("trace", "--weights", "checkpoint:gone"), "--weights: There is no checkpoint 'gone' here."),
        (("ledger", "--checkpoint", "/nowhere"), "/nowhere does not exist"),
        (("figure", "atention", "--out", "a.html"), "There is no figure 'atention'. Did you mean 'attention'?"),
        (("figure", "router", "--out", "a.html"), "This run is dense, so there is no router."),
        (("figure", "attention", "--out", "a.gif"), "--out a.gif: the name must end in"),
        (("export", "walk.txt"), "walk.txt: the page is written to a file whose name ends in .html."),
        (("check", "--checkpoint", "/nowhere", "--T", "x"), "argument --T: invalid int value: 'x'"),
        (("trace", "--bee", "3"), "unrecognized arguments: --bee 3 (see"),
        (("walk",), "invalid choice: 'walk'"),
        ((), "required: COMMAND"),
    ],
)  # fmt: skip
def test_a_mistake_gets_one_clear_line(
    say: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: tuple[str, ...], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    status, out, err = say(*typed)
    assert (status, out) == (2, "")
    assert err.startswith("python -m explorer")
    assert err.count("\n") == 1
    assert says in err
    assert not list(tmp_path.iterdir()), "nothing is left behind"


def test_generate_says_what_is_wrong(say: Callable[..., Said], checkpoint: Path) -> None:
    asked = ("generate", "--checkpoint", checkpoint)
    for more, says in (
        (("--prompt", "the", "--temperature", "-1"), "--temperature: temperature = '-1.0' is out of range."),
        (("--prompt", "the", "--new-tokens", "9999"), "--new-tokens: new_tokens = '9999' is out of range."),
        (("--prompt", " "), "--prompt: The prompt is empty."),
        (("--prompt", "the " * 600), "--prompt: The prompt has 600 tokens; 448 fit. Shorten it."),
    ):
        status, out, err = say(*asked, *more)
        assert (status, out) == (2, "")
        assert says in err


def test_generate_names_its_own_option(say: Callable[..., Said], tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "mute")
    (folder / "tokenizer.json").unlink()
    status, out, err = say("generate", "--checkpoint", folder, "--prompt", "the")
    assert (status, out) == (2, "")
    assert "--checkpoint: This checkpoint has no tokenizer.json" in err and "--weights" not in err


def test_check_names_the_limit_that_it_holds_to(say: Callable[..., Said], tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "small")
    for tokens in ("513", "0"):
        status, _, err = say("check", "--checkpoint", folder, "--T", tokens)
        assert status == 2
        assert f"--T {tokens}: a ledger takes 1 to 512 tokens; this checkpoint has no more positions." in err
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 4096}))
    assert "--T 1025: a ledger takes 1 to 1024 tokens." in say("check", "--checkpoint", folder, "--T", "1025")[2]


def test_a_reader_who_leaves_is_no_error() -> None:
    command = f"{sys.executable} -m explorer trace --T 256 --weights random --d-model 64 --h 2 | head -c 20"
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == '{"link": "v=1&T=256&'
    assert done.stderr == ""
