"""A command said as a person would type it, and a small checkpoint to say it about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from explorer.__main__ import main
from explorer.offers import OFFERS
from tests.small_checkpoint import write_checkpoint

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
