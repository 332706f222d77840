"""Requests that once went wrong: whatever is in them stays out of the server's log, and each gets a sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.api.conftest import Running

HUGE = 10**400
SECRET = "my-secret-words"


def number_of(http: httpx.Client, name: str) -> int:
    """The fn_index of an endpoint."""
    config = http.get("config").json()
    found = [d["id"] for d in config["dependencies"] if d["api_name"] == name]
    assert len(found) == 1
    return int(found[0])


@pytest.mark.parametrize("extra", [f'"trigger_id":["{SECRET}",NaN]', f'"event_data":["{SECRET}",Infinity]'])
def test_what_a_call_of_the_queue_brings_along_never_reaches_the_log(
    http: httpx.Client, running: Running, extra: str
) -> None:
    body = f'{{"data":["T=3"],"fn_index":{number_of(http, "ledger")},"session_hash":"claims","{"x"}":1,{extra}}}'
    joined = http.post("gradio_api/queue/join", content=body, headers={"content-type": "application/json"})
    assert joined.status_code in (200, 400)
    told = http.get("gradio_api/queue/data", params={"session_hash": "claims"}).text
    if joined.status_code == 200:
        assert '"msg":"process_completed"' in told.replace('": ', '":')
    else:
        assert joined.json()["detail"].startswith("NaN and Infinity are no JSON.")
    assert SECRET not in running.server.output()
    assert "Traceback" not in running.server.output()


@pytest.mark.parametrize("session", ["", "x" * 101, 3, None])
def test_a_session_is_checked_before_anything_else(http: httpx.Client, session: object) -> None:
    asked = {"data": ["T=3"], "fn_index": number_of(http, "ledger"), "session_hash": session}
    reply = http.post("gradio_api/queue/join", json=asked)
    assert (reply.status_code, reply.json()) == (400, {"detail": "session_hash is no text of 1 to 100 characters."})


@pytest.mark.parametrize(
    "at", range(2, 8), ids=("new_tokens", "temperature", "top_k", "top_p", "repetition_penalty", "seed")
)
def test_a_number_of_four_hundred_digits_is_out_of_range(call: Callable[..., Any], running: Running, at: int) -> None:
    given: list[Any] = ["the cat", "tiny", 4, 0.85, 50, 0.85, 1.0, 0]
    for value in (HUGE, -HUGE):
        answer = call("generate", *given[:at], value, *given[at + 1 :])
        (message,) = answer["errors"].values()
        assert "is out of range. It goes from" in message
    assert "Traceback" not in running.server.output()


def test_more_new_tokens_than_positions_are_named_as_such(call: Callable[..., Any]) -> None:
    answer = call("generate", "the cat " * 80, "tiny", 400)
    assert list(answer["errors"]) == ["new_tokens"]
    assert "Ask for at most" in answer["errors"]["new_tokens"]


@pytest.mark.parametrize(
    ("row", "head", "says"), [(0, 9, "no head 9"), (5, 0, "no batch row 5"), (0, -1, "no head -1")]
)
def test_a_figure_of_a_head_that_is_not_there_is_refused(
    call: Callable[..., Any], row: int, head: int, says: str
) -> None:
    answer = call("figure", "attention", "", None, row, head)
    assert says in answer["errors"]["figure"]
    assert "Choose one from 0 to 0." in answer["errors"]["figure"]


def test_a_stream_asked_for_in_one_answer_gives_its_end(http: httpx.Client) -> None:
    asked = {"data": ["the cat", "tiny", 6]}
    whole = http.post("gradio_api/run/generate", json=asked).json()["data"]
    assert http.post("gradio_api/run/generate_stream", json=asked).json()["data"] == whole
    assert whole[0]["done"]
