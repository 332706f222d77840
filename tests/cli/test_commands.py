"""Every command as a person would type it: what it prints, what it writes, what it says when something is wrong."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from explorer import Edit, RunSpec, offers, run, sources
from explorer.__main__ import main
from explorer.cli.options import GROUPS
from explorer.cli.parser import COMMANDS
from explorer.offers import OFFERS
from explorer.spec import PRESETS
from tests.small_checkpoint import write_checkpoint

ROOT = Path(__file__).resolve().parents[2]
Said = tuple[int, str, str]


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Said]]:
    """say("trace", "--T", "3") -> (exit status, standard output, standard error)."""
    monkeypatch.setenv("COLUMNS", "100")
    offered = dict(OFFERS)

    def call(*arguments: object) -> Said:
        try:
            status = main([str(a) for a in arguments])
        except SystemExit as end:
            status = int(end.code or 0)
        out, err = capsys.readouterr()
        return status, out, err

    yield call
    OFFERS.clear()
    OFFERS.update(offered)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("cli") / "tiny")


# ------------------------------------------------------------------------------------------------------------- help


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


# ------------------------------------------------------------------------------------------------------------ trace


def test_trace_as_json_holds_what_the_block_computed(say: Callable[..., Said]) -> None:
    status, out, err = say("trace", "--edit", "resid_pre[0,0,1]=2", "--only", "masked_scores", "resid_post")
    assert (status, err) == (0, "")
    answer = json.loads(out)
    spec = RunSpec(edits=(Edit("resid_pre", (0, 0, 1), 2.0),))
    expected = run(spec)
    assert answer["settings"] == {"edits": [{"target": "resid_pre", "index": [0, 0, 1], "value": 2.0, "on": True}]}
    assert answer["link"] == "v=1&e=resid_pre@0.0.1~2&stage=1"
    assert answer["edited"] == ["resid_pre"]
    values = np.array(answer["quantities"]["resid_post"]["values"], dtype=np.float32)
    np.testing.assert_array_equal(values, expected["resid_post"])
    hidden = answer["quantities"]["masked_scores"]
    assert hidden["axes"] == ["B", "H", "Tq", "Tk"]
    assert hidden["values"][0][0][0][1] == "-Inf"


def test_trace_as_npz(say: Callable[..., Said], tmp_path: Path) -> None:
    out = tmp_path / "run.npz"
    status, printed, err = say("trace", "--preset", "gqa", "--out", out)
    assert (status, printed, err) == (0, "", f"writing {out}\n")
    expected = run(PRESETS["gqa"])
    with np.load(out, allow_pickle=False) as kept:
        assert set(kept.files) == {*expected.names, "settings"}
        for name in expected.names:
            np.testing.assert_array_equal(kept[name], expected[name])
        assert json.loads(str(kept["settings"]))["d_model"] == 16


def test_link_preset_and_options_meet(say: Callable[..., Said]) -> None:
    address = "http://127.0.0.1:7860/?v=1&T=3&e=probs@0.0.1.0~0.5&s=no_rope&stage=4&colour=red#top"
    status, out, err = say(
        "trace", "--link", address, "--T", "4", "--switch", "no_mask", "--edit", "v=1", "--only", "v"
    )
    assert status == 0
    assert err == "note: The link's part 'colour' is unknown. It was ignored.\n"
    settings = json.loads(out)["settings"]
    assert settings["T"] == 4
    assert [e["target"] for e in settings["edits"]] == ["probs", "v"]
    assert settings["switches"] == ["no_rope", "no_mask"]


def test_a_checkpoint_reads_a_text(say: Callable[..., Said], checkpoint: Path) -> None:
    status, out, err = say(
        "trace",
        "--checkpoint",
        checkpoint,
        "--text",
        "the cat sees a dog\n猫 看",
        "--layer",
        "1",
        "--only",
        "resid_pre",
    )
    assert (status, err) == (0, "")
    settings = json.loads(out)["settings"]
    assert settings["weights"] == "checkpoint:tiny"
    assert (settings["B"], settings["T"], settings["padding"]) == (2, 5, [0, 3])


# ----------------------------------------------------------------------------------------------------------- ledger


def test_ledger_of_the_capstone(say: Callable[..., Said]) -> None:
    status, out, _ = say("ledger", "--weights", "random", "--B", 2, "--T", 5, "--d-model", 12, "--h", 3)
    assert status == 0
    lines = out.splitlines()
    rows = {line.split()[1]: line.split() for line in lines[2:-1]}
    assert rows["q"][2:4] == ["B×h×T×d_h", "2×3×5×4"]
    assert rows["scores"][2:4] == ["B×h×T_q×T_k", "2×3×5×5"]
    assert rows["concat"][3] == rows["resid_post"][3] == "2×5×12"
    assert rows["attn_norm"][3] == "2×5×12"
    assert lines[1].replace("-", "").strip() == ""
    assert lines[-1].startswith("total: ")
    assert not [line for line in lines if line != line.rstrip()]
    ends = {line.index("FLOPs") + len("FLOPs") for line in lines[:1]}
    assert {len(line[: max(ends)].rstrip()) for line in lines[2:-1] if line.split()[1] == "q"} <= ends


def test_ledger_as_json(say: Callable[..., Said]) -> None:
    status, out, _ = say("ledger", "--json", "--past", "1")
    answer = json.loads(out)
    assert status == 0
    assert [row["name"] for row in answer["rows"]] == list(run(RunSpec(past=1)).names)
    assert all(row["agrees"] for row in answer["rows"])
    assert answer["bytes"] == sum(row["bytes"] for row in answer["rows"] if "same memory" not in row["note"])


# ----------------------------------------------------------------------------------------------------------- figure


def test_figure_as_a_page_of_its_own(say: Callable[..., Said], tmp_path: Path) -> None:
    out = tmp_path / "p.html"
    assert say("figure", "attention", "--preset", "capstone", "--row", 1, "--head", 2, "--out", out)[0] == 0
    text = out.read_text(encoding="utf-8")
    assert "Plotly.newPlot" in text
    assert not re.findall(r"<(?:script|link|img|iframe)\b[^>]*(?:src|href)=", text), "nothing is fetched"


def test_a_figure_speaks_the_link_s_language(say: Callable[..., Said], tmp_path: Path) -> None:
    for more, says in (
        (("--link", "lang=zh"), "词元"),
        (("--lang", "zh"), "词元"),
        (("--link", "lang=zh", "--lang", "en"), "token"),
    ):
        out = tmp_path / "p.json"
        assert say("figure", "norm", "--out", out, *more)[0] == 0
        assert says in json.loads(out.read_text())["layout"]["xaxis"]["title"]["text"]


def test_figure_as_json_is_what_the_trace_draws(say: Callable[..., Said], tmp_path: Path) -> None:
    out = tmp_path / "p.json"
    assert say("figure", "attention", "--out", out)[0] == 0
    assert json.loads(out.read_text()) == json.loads(run(RunSpec()).figure("attention").to_json())


def test_pictures_need_kaleido_and_say_so(
    say: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    status, _, err = say("figure", "attention", "--out", tmp_path / "p.png")
    assert status == 2
    assert "pip install kaleido" in err


# --------------------------------------------------------------------------------------------------- generate, check


def test_generate_writes_the_same_text_for_the_same_seed(say: Callable[..., Said], checkpoint: Path) -> None:
    asked = ("generate", "--checkpoint", checkpoint, "--prompt", "the cat", "--new-tokens", "6")
    first, again = say(*asked, "--seed", "3"), say(*asked, "--seed", "3")
    assert first == again
    assert first[0] == 0
    assert first[1].strip()
    status, out, _ = say(*asked, "--seed", "3", "--json")
    answer = json.loads(out)
    assert status == 0
    assert answer["text"].strip() == first[1].strip()
    assert 1 <= answer["tokens"] <= 6


def test_check_prints_report_and_ledger(say: Callable[..., Said], checkpoint: Path) -> None:
    status, out, err = say("check", "--checkpoint", checkpoint, "--layer", "1", "--T", "4")
    assert (status, err) == (0, "")
    assert "Every weight is there and fits." in out
    assert re.search(r"^2 +q +B×h×T×d_h +1×4×4×4 ", out, re.MULTILINE)


def test_check_of_a_checkpoint_that_does_not_fit(say: Callable[..., Said], tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "bad")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 3}))
    status, out, err = say("check", "--checkpoint", folder)
    assert (status, out) == (1, "")
    assert "missing from the file" in err
    assert "Traceback" not in err


# ------------------------------------------------------------------------------------------------------- what is wrong


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


def test_a_reader_who_leaves_is_no_error() -> None:
    command = f"{sys.executable} -m explorer trace --T 256 --weights random --d-model 64 --h 2 | head -c 20"
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == '{"link": "v=1&T=256&'
    assert done.stderr == ""
