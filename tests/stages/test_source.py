"""The lines of code that are shown are there, and are those that ran."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer import run
from explorer.stages import STAGES
from explorer.stages.source import Lines, excerpt
from tests.stages.cases import SPECS

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("stage", STAGES, ids=lambda s: s.key)
def test_excerpts_are_the_files_own_lines(stage) -> None:  # type: ignore[no-untyped-def]
    assert {e.model for e in stage.code} == {"minimind", "course"}
    for found in stage.code:
        lines = (ROOT / found.file).read_text(encoding="utf-8").splitlines()
        text = found.text.splitlines()
        assert 1 <= len(text) <= 20
        assert [line.strip() for line in lines[found.line - 1 : found.line - 1 + len(text)]] == [
            t.strip() for t in text
        ]


def test_every_quantity_of_a_stage_is_tapped_in_its_lines() -> None:
    for stage in STAGES:
        minimind = "\n".join(e.text for e in stage.code if e.model == "minimind")
        for name in stage.outputs:
            if name != "heads":  # the tap of heads is called around the function that is shown
                assert f'taps["{name}"]' in minimind, (stage.key, name)


def test_only_what_ran() -> None:
    def names(spec: str, stage: int) -> list[str]:
        return [e.name for e in STAGES[stage - 1].code_that_ran(run(SPECS[spec]))]

    assert "MOEFeedForward._route" not in names("toy", 8)
    assert "FeedForward.forward" in names("toy", 8)
    assert "MOEFeedForward._route" in names("experts", 8)
    assert "masked_softmax" in names("toy", 5)
    assert "masked_softmax" not in names("flash", 5)
    flash = STAGES[4].code_that_ran(run(SPECS["flash"]))[0]
    assert "scaled_dot_product_attention" in flash.text


def test_a_line_that_went_missing_is_noticed() -> None:
    with pytest.raises(LookupError, match=r"No line of model.norm.RMSNorm.forward contains 'gone'"):
        excerpt(Lines("model.norm", "RMSNorm.forward", "gone"))


def test_places_of_what_ran_point_into_the_code() -> None:
    for name in ("toy", "experts", "flash"):
        trace = run(SPECS[name])
        for stage in STAGES:
            assert [stage.code[n] for n in stage.ran(trace)] == list(stage.code_that_ran(trace))
            assert {stage.code[n].model for n in stage.ran(trace)} == {"minimind", "course"}
