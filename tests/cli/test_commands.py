"""Every command as a person would type it: what it prints and what it writes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from explorer import Edit, RunSpec, run
from explorer.spec import PRESETS
from tests.cli.conftest import Said
from tests.small_checkpoint import write_checkpoint

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
