"""What an answer says of settings without effect, and how sizes follow a text; the endpoints as functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from explorer import sources
from explorer.link import decode
from explorer.messages import in_language
from explorer.offers import OFFERS
from explorer.spec import SpecError
from explorer.ui.endpoints import generate, trace
from tests.small_checkpoint import write_checkpoint

SMALL = {"weights": "checkpoint:small", "text": "the cat sees a dog"}
ONLY = "Only a checkpoint reads a text and has layers; choose one as weights."


@pytest.fixture(scope="module", autouse=True)
def _small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    offered = dict(OFFERS)
    sources.offer("small", write_checkpoint(tmp_path_factory.mktemp("notes") / "small"))
    yield
    OFFERS.clear()
    OFFERS.update(offered)


@pytest.mark.parametrize(
    ("settings", "notes"),
    [
        (SMALL, []),
        (SMALL | {"rope_theta": 10000, "T": 5}, ["Ignored: rope_theta. The checkpoint has its own."]),
        (SMALL | {"d_ff": "24", "yarn": "off", "h": ""}, []),
        ({"text": "hi", "layer": 3}, [f"Ignored: text, layer. {ONLY}"]),
        (SMALL | {"T": 2}, ["3 of the text's 5 tokens are not read: B = 1, past + T = 2."]),
    ],
)
def test_settings_without_effect_are_named(settings: dict[str, Any], notes: list[str]) -> None:
    assert trace("", settings, ["probs"])["notes"] == notes


def test_a_text_is_read_whole_where_no_size_is_given() -> None:
    answer = trace("", SMALL | {"text": "the cat\nthe dog sees a cat"}, ["probs"])
    assert (answer["sizes"]["B"], answer["sizes"]["T"], answer["settings"]["padding"]) == (2, 5, [3, 0])


@pytest.mark.parametrize("sizes", [{}, {"T": 2}, {"T": 1, "past": 1}, {"B": 1, "padding": [0]}])
def test_the_settings_of_an_answer_ask_for_the_same_again(sizes: dict[str, Any]) -> None:
    answer = trace("", SMALL | sizes, ["resid_pre"])
    again = trace("", answer["settings"], ["resid_pre"])
    assert again == answer
    assert trace(answer["link"], None, ["resid_pre"])["quantities"] == answer["quantities"]


def test_a_link_that_disagrees_with_its_checkpoint_opens_with_a_note() -> None:
    query = "v=1&w=checkpoint:small&text=the%20cat&theta=10000&h=4&stage=2"
    spec, view, notes = decode(query)
    assert (spec.rope_theta, view.stage) == (1e6, 2)
    assert notes == ["The link's theta = '10000' was ignored. The checkpoint has its own."]
    assert in_language(notes[0], "zh") == "链接里的 theta = '10000' 没有采用。检查点有它自己的值。"
    assert trace(query, None, ["probs"])["notes"] == notes


def test_a_checkpoint_to_continue_a_text_is_named_either_way() -> None:
    asked = {"new_tokens": 3, "seed": 1}
    texts = {generate("the cat", name, **asked)["text"] for name in ("small", "checkpoint:small")}
    assert len(texts) == 1
    for name in ("gone", "checkpoint:gone"):
        with pytest.raises(SpecError) as error:
            generate("the cat", name, **asked)
        assert error.value.errors["checkpoint"].startswith("There is no checkpoint 'gone' here. Choose one of ")
        assert not {"toy", "random"} & set(error.value.errors["checkpoint"].split())


def test_a_server_without_checkpoints_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explorer.generation.OFFERS", {})
    with pytest.raises(SpecError, match="No checkpoint is offered here"):
        generate("the cat")
