"""The checks of a block that comes from a checkpoint and reads a text: its own config, weights and hidden states."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from explorer import RunSpec, sources
from explorer.bridge import ROWS
from explorer.bridge.case import Case
from explorer.offers import OFFERS
from tests.ui.reading_checkpoint import write_reader


@pytest.fixture(scope="module", autouse=True)
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    sources.offer("bridged", write_reader(tmp_path_factory.mktemp("bridge") / "reader"))
    yield
    del OFFERS["bridged"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key)
@pytest.mark.parametrize("past", [0, 2])
def test_every_row_holds(row, past: int) -> None:  # type: ignore[no-untyped-def]
    spec = RunSpec(weights="checkpoint:bridged", text="once upon a time", T=4 - past, past=past)
    found = row.check(spec)
    assert found.holds, [text for p, text in zip(found.points, row.sentences(found), strict=True) if not p.holds]


def test_it_is_the_checkpoints_block_and_what_it_receives() -> None:
    spec = RunSpec(weights="checkpoint:bridged", text="once upon a time", T=2, past=2)
    case = Case.of(spec, 1)
    block = sources.block_of(spec, torch.device("cpu"))
    assert all(torch.equal(value, case.state[name]) for name, value in block.state_dict().items())
    assert torch.equal(case.stream, sources.stream_of(spec))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key)
def test_a_text_as_long_as_the_model_has_positions(row) -> None:  # type: ignore[no-untyped-def]
    length = sources.config_of(RunSpec(weights="checkpoint:bridged", text="once", T=1)).max_position_embeddings
    spec = RunSpec(weights="checkpoint:bridged", text="once upon a time " * (length // 4), T=length)
    assert row.check(spec).holds
