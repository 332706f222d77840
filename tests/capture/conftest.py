"""A prepared run of each test's own, with no hook left on its block."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace

import pytest

from explorer.capture.recorder import hooks_on
from explorer.run import Prepared, prepare
from tests.core.cases import CASES


@pytest.fixture
def ready() -> Iterator[Prepared]:
    """A block of its own, so that hooks a test leaves on it do not reach another test."""
    shared = prepare(CASES["capstone"])
    own = replace(shared, block=copy.deepcopy(shared.block), hidden_states=shared.hidden_states.clone())
    yield own
    assert not any(hooks_on(own.block).values()), "this test left hooks"
