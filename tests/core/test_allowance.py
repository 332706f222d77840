"""How long a request may compute, and what stops once nobody waits: the block's runs, the what-if table, a text."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from explorer import RunSpec, allowance, effects, generation, run, sources
from explorer.limits import LIMITS
from explorer.offers import OFFERS
from explorer.run import finished
from tests.small_checkpoint import write_checkpoint

TOY = RunSpec()


@pytest.fixture(autouse=True)
def _nothing_kept() -> None:
    finished.clear()


@pytest.fixture
def tiny(tmp_path: Any) -> Iterator[str]:
    offered = dict(OFFERS)
    sources.offer("tiny", str(write_checkpoint(tmp_path / "tiny")))
    yield "tiny"
    OFFERS.clear()
    OFFERS.update(offered)


def test_without_an_allowance_nothing_is_checked() -> None:
    allowance.check()
    assert allowance.current() is None


def test_time_that_is_up_says_what_was_allowed_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "seconds", 1e-9)
    with allowance.started(), pytest.raises(allowance.OutOfTime) as stopped:
        run(TOY)
    assert stopped.value.errors == {
        "": "The answer was not ready after 1e-09 seconds, the most that one request may take here. "
        "Ask for less: smaller sizes, a shorter text, fewer new tokens."
    }


def test_what_is_kept_is_given_in_any_case(monkeypatch: pytest.MonkeyPatch) -> None:
    done = run(TOY)
    with allowance.started() as held:
        held.left = True
        assert run(TOY) is done


def test_an_allowance_within_another_is_the_same() -> None:
    with allowance.started() as outer, allowance.started() as inner:
        assert inner is outer
    assert allowance.current() is None


def test_an_allowance_can_be_let_go_of_and_taken_up() -> None:
    with allowance.started() as held:
        pass
    held.left = True
    allowance.check()
    with allowance.held(held), pytest.raises(allowance.Left):
        allowance.check()


def test_who_looks_for_himself_is_believed() -> None:
    with allowance.started(gone=lambda: True) as held, pytest.raises(allowance.Left):
        allowance.check()
    assert held.left


def test_the_what_if_table_stops_between_two_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = 0

    with allowance.started() as held:

        def counting(spec: RunSpec) -> Any:
            nonlocal runs
            runs += 1
            held.left = runs == 3
            return run(spec)

        monkeypatch.setattr(effects, "run", counting)
        with pytest.raises(allowance.Left):
            effects.effects(TOY)
    assert runs == 3
    assert len(finished) == 2, "the third was not computed"


def forwards_of(name: str, monkeypatch: pytest.MonkeyPatch, after: Any) -> list[int]:
    """Counts how often the language model is run, calling after(n) each time."""
    model, counted = generation._model(name, OFFERS[name].source, "cpu"), [0]

    def count(*_: Any) -> None:
        counted[0] += 1
        after(counted[0])

    monkeypatch.setattr(generation, "_model", lambda *_: model)
    model.register_forward_hook(count)
    return counted


def test_a_text_stops_at_the_next_token(tiny: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with allowance.started() as held:

        def leave(n: int) -> None:
            held.left = n == 4

        counted = forwards_of(tiny, monkeypatch, leave)
        with pytest.raises(allowance.Left):
            list(generation.write(tiny, "the cat", generation.Sampling(200, temperature=5, top_k=0, top_p=1)))
    time.sleep(0.2)
    assert counted == [4]


def test_a_text_ends_with_its_time(tiny: str, monkeypatch: pytest.MonkeyPatch) -> None:
    list(generation.write(tiny, "the", generation.Sampling(1)))  # loads the model
    monkeypatch.setattr(LIMITS, "seconds", 0.3)
    counted = forwards_of(tiny, monkeypatch, lambda n: time.sleep(0.1))
    with allowance.started(), pytest.raises(allowance.OutOfTime, match="not ready after 0.3 seconds"):
        list(generation.write(tiny, "the cat", generation.Sampling(200, temperature=5, top_k=0, top_p=1)))
    assert counted[0] <= 4


def test_waiting_for_another_s_text_does_not_count_but_leaving_does(tiny: str, monkeypatch: pytest.MonkeyPatch) -> None:
    list(generation.write(tiny, "the", generation.Sampling(1)))
    monkeypatch.setattr(LIMITS, "seconds", 0.3)
    ends: list[Any] = []

    def ask(held: allowance.Allowance) -> None:
        with allowance.held(held):
            try:
                ends.append(list(generation.write(tiny, "the cat", generation.Sampling(2)))[-1].done)
            except allowance.Stopped as stopped:
                ends.append(type(stopped))

    patient, leaver = allowance.Allowance(0.3), allowance.Allowance(0.3)
    with generation._one_at_a_time:
        threads = [threading.Thread(target=ask, args=(held,)) for held in (leaver, patient)]
        for thread in threads:
            thread.start()
        time.sleep(0.7)
        leaver.left = True
        threads[0].join(5)
        assert ends == [allowance.Left]
    threads[1].join(5)
    assert ends == [allowance.Left, True]
