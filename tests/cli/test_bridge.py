"""The bridge's verdicts from the shell: what holds, with numbers, and an exit status for a port to be held against."""

from __future__ import annotations

import pytest
import torch

from explorer.__main__ import main
from explorer.model import attention
from explorer.run import finished


def test_six_verdicts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bridge", "--preset", "gqa"]) == 0
    out = capsys.readouterr().out
    verdicts = [line for line in out.splitlines() if not line.startswith(" ")]
    assert [line.split()[:2] for line in verdicts] == [["holds", str(n)] for n in range(1, 7)]
    assert "1×2×6×4 into 1×4×6×4" in out and "<" not in out.replace("n − m", "")


def test_one_that_fails_is_an_exit_status(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "repeat_kv", lambda x, times: torch.cat([x] * times, dim=1))
    finished.clear()
    assert main(["bridge", "--preset", "gqa", "--row", "1", "2", "--seed", "41"]) == 1
    out = capsys.readouterr().out
    assert "holds  1 Config" in out and "FAILS  2 Attention" in out and "2 of the 4 heads differ" in out
    finished.clear()


def test_edits_of_weights_count_and_the_rest_of_a_link_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bridge", "--row", "2", "--edit", "self_attn.q_proj.weight[0,1]=2"]) == 0
    assert capsys.readouterr().err == ""
    assert main(["bridge", "--row", "2", "--link", "s=no_mask"]) == 0
    assert main(["bridge", "--row", "2", "--link", "e=probs@0.0.1.0~1"]) == 0
    note = "note: The checks run without the link's what-ifs and edits of quantities.\n"
    assert capsys.readouterr().err == 2 * note
    with pytest.raises(SystemExit):
        main(["bridge", "--help"])
    text = capsys.readouterr().out
    assert "--switch" not in text and "set cells of a weight by hand" in text


def test_rows_languages_and_mistakes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bridge", "--row", "3", "--lang", "zh"]) == 0
    assert capsys.readouterr().out.startswith("holds  3 解码")
    assert main(["bridge", "--row", "4", "--preset", "minimind3", "--T", "1024"]) == 2
    assert "python -m explorer bridge: This check runs the block 12 times" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["bridge", "--row", "7"])
    assert "invalid choice" in capsys.readouterr().err
