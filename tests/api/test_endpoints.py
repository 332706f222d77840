"""The named endpoints as programs use them: gradio_client, and plain HTTP in two steps."""

from __future__ import annotations

import inspect
import json
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import httpx
import numpy as np
import pytest
from gradio.utils import get_function_description
from gradio_client import Client

from explorer import Edit, RunSpec, device, run
from explorer.asked import as_settings
from explorer.link import encode
from explorer.ui.api import _answered
from explorer.ui.endpoints import ENDPOINTS, described
from tests.api.conftest import LIMITS, Running, stream

EDITED = RunSpec(B=2, T=3, d_model=12, h=3, weights="random", edits=(Edit("probs", (0, 1, 2, None), 0.25),))
Call = Callable[..., Any]


@pytest.fixture(scope="module")
def client(running: Running) -> Client:
    return Client(running.url, verbose=False, analytics_enabled=False, httpx_kwargs={"trust_env": False})


# --------------------------------------------------------------------------------------------------- what is answered


def test_gradio_client_finds_the_named_endpoints(client: Client) -> None:
    named = client.view_api(return_format="dict")["named_endpoints"]
    assert [n for n in named if n != "/gpu"] == ["/trace", "/ledger", "/figure", "/generate", "/generate_stream"]
    assert list(named) == [f"/{name}" for name in ENDPOINTS if name != "gpu" or device.gpu_here()]
    for endpoint in named.values():
        assert "Limits: B up to 8, T and past up to 128" in endpoint["description"]
        assert all(p["parameter_name"] for p in endpoint["parameters"])
    assert [p["parameter_name"] for p in named["/trace"]["parameters"]] == ["link", "settings", "only"]


@pytest.mark.parametrize("name", ENDPOINTS)
def test_each_parameter_is_described_where_gradio_reads_it_for_mcp(name: str) -> None:
    endpoint = ENDPOINTS[name]
    about, parameters, returns = described(endpoint)
    assert list(parameters) == list(inspect.signature(endpoint).parameters)
    assert all(parameters.values()) and about and returns
    assert get_function_description(_answered(endpoint))[1] == parameters


@pytest.mark.parametrize("by", ["link", "settings", "address"])
def test_a_trace_is_what_the_block_computes(client: Client, by: str) -> None:
    ways = {
        "link": {"link": encode(EDITED)},
        "settings": {"settings": as_settings(EDITED)},
        "address": {"link": "https://example.org/?" + encode(EDITED)},
    }
    answer = client.predict(**ways[by], only=["probs", "resid_post", "self_attn.o_proj.weight"], api_name="/trace")
    expected = run(EDITED)
    assert answer["ok"]
    assert answer["link"] == encode(EDITED)
    assert answer["edited"] == ["probs"]
    for name in ("probs", "resid_post"):
        values = np.array(answer["quantities"][name]["values"], dtype=np.float32)
        np.testing.assert_array_equal(values, expected[name])
        assert tuple(answer["quantities"][name]["axes"]) == expected.axes(name)
    weight = answer["quantities"]["self_attn.o_proj.weight"]
    assert weight["shape"] == [12, 12]


def test_what_is_not_finite_is_said_in_words(call: Call) -> None:
    answer = call("trace", "", None, ["masked_scores"])
    assert answer["quantities"]["masked_scores"]["values"][0][0][0][1] == "-Inf"


def test_the_ledger(call: Call) -> None:
    answer = call("ledger", "v=1&B=2&T=5&d=12&h=3&w=random", {"T": "6"})
    rows = {row["name"]: row for row in answer["rows"]}
    assert rows["scores"]["shape"] == [2, 3, 6, 6]
    assert rows["scores"]["symbolic"] == "B×h×T_q×T_k"
    assert answer["flops"] == sum(row["flops"] for row in rows.values())


def test_a_figure_comes_with_its_text(client: Client) -> None:
    answer = client.predict("attention", encode(EDITED), None, 0, 1, api_name="/figure")
    assert answer["data"][0]["type"] == "heatmap"
    expected = run(EDITED).figure("attention", h=1)
    assert len(answer["data"]) == len(expected.data)
    assert "probabilities" in answer["text"]


def test_a_link_that_is_partly_wrong_is_answered_with_notes(call: Call) -> None:
    answer = call("ledger", "v=1&T=3&colour=red&d=oops", None)
    assert answer["ok"]
    assert answer["settings"] == {"T": 3}
    assert len(answer["notes"]) == 2


def test_the_second_form_of_a_call_by_names(http: httpx.Client) -> None:
    posted = http.post("gradio_api/call/v2/trace", json={"settings": {"T": 3}, "only": ["probs"]})
    assert posted.status_code == 200
    answer = http.get(f"gradio_api/call/trace/{posted.json()['event_id']}").text
    assert answer.startswith("event: complete")
    assert json.loads(answer.split("data: ")[1])[0]["sizes"]["T"] == 3


# -------------------------------------------------------------------------------------------------------- generation


def test_a_text_comes_as_it_is_written(http: httpx.Client, call: Call) -> None:
    asked = ("the cat", "tiny", 60, 0.85, 50, 0.85, 1.0, 4)
    events = stream(http, "generate_stream", *asked)
    parts = [data[0] for _, data in events]
    assert parts[-1]["done"]
    assert not any(part["done"] for part in parts[:-2])
    assert all(b["tokens"] >= a["tokens"] for a, b in pairwise(parts))
    assert call("generate", *asked) == parts[-1], "the same seed writes the same text"
    assert call("generate", "the cat", "", 60, 0.85, 50, 0.85, 1.0, 4)["text"] == parts[-1]["text"]


def test_a_reader_who_leaves_stops_the_writing(running: Running, http: httpx.Client) -> None:
    def outcomes() -> list[str]:
        return [e["outcome"] for e in running.entries() if e["endpoint"] == "generate_stream"]

    before = len(outcomes())
    asked = {"data": ["the cat", "tiny", 400, 5.0, 0, 1.0, 1.0, 1]}
    posted = http.post("gradio_api/call/generate_stream", json=asked)
    with http.stream("GET", f"gradio_api/call/generate_stream/{posted.json()['event_id']}") as reply:
        next(reply.iter_lines())
    begun = time.monotonic()
    while len(outcomes()) == before and time.monotonic() - begun < 20:
        time.sleep(0.1)
    assert outcomes()[before:] == ["left"]
    assert stream(http, "generate", "the dog", "tiny", 1, 0, 0, 1, 1, 0)[-1][1][0]["done"], "the model is free again"


# ------------------------------------------------------------------------------------------------------ what is wrong


@pytest.mark.parametrize(
    ("asked", "field", "says"),
    [
        (("trace", "", {"T": 500}, None), "T", "T = 500 is out of range."),
        (("trace", "", {"d_model": 12}, None), "d_model", "The toy's weights need d_model = 2"),
        (("trace", "", {"tokens": 3}, None), "tokens", "There is no setting 'tokens'."),
        (("trace", "", {"edits": ["probs[0,0,9,9]=1"]}, None), "edits.0", "is outside of it"),
        (("trace", "", {"edits": ["probs"]}, None), "edits", "TARGET[INDEX]=VALUE"),
        (("trace", "", {"edits": 3}, None), "edits", "is not a list"),
        (("trace", "", {"switches": [[]]}, None), "switches", ""),
        (("trace", "", {"T": "9" * 5000}, None), "T", ""),
        (("trace", "", None, ["prob"]), "only", "This run has no 'prob'."),
        (("trace", "w=random&T=64&d=64&h=2", None, None), "only", f"at most {LIMITS['answer']:,}"),
        (("trace", 3, None, None), "link", "is not text"),
        (("trace", "", "T=3", None), "settings", "is not an object"),
        (("trace", "", None, 3), "only", "is not a list of names"),
        (("trace", "", {"weights": "checkpoint:gone"}, None), "weights", "There is no checkpoint 'gone' here."),
        (("trace", "", {"weights": "checkpoint:tiny"}, None), "text", "The text is empty."),
        (("trace", "", {"device": "cuda:9"}, None), "device", "is unknown"),
        (("ledger", "", {"past": -1}), "past", "out of range"),
        (("figure", "atention", "", None, 0, 0), "figure", "Did you mean 'attention'?"),
        (("figure", "router", "", None, 0, 0), "figure", "dense"),
        (("figure", "attention", "", None, "x", 0), "row", "is not a whole number"),
        (("figure", None, "", None, 0, 0), "figure", "There is no figure ''"),
        (("generate", "", "tiny", 1, 0, 0, 1, 1, 0), "prompt", "The prompt is empty."),
        (("generate", "the", "gone", 1, 0, 0, 1, 1, 0), "checkpoint", "There is no checkpoint 'gone' here."),
        (("generate", "the", "tiny", 401, 0, 0, 1, 1, 0), "new_tokens", "It goes from 1 to 400 here."),
        (("generate", "the", "tiny", 1, -1, 0, 1, 1, 0), "temperature", "out of range"),
        (("generate", "the", "tiny", 1, "hot", 0, 1, 1, 0), "temperature", "Give a number from 0 to 100."),
        (("generate", None, "tiny", 1, 0, 0, 1, 1, 0), "prompt", "The prompt is empty."),
        (("generate", "x" * 5000, "tiny", 1, 0, 0, 1, 1, 0), "prompt", "at most 4000"),
    ],
)  # fmt: skip
def test_a_mistake_comes_back_as_a_message(call: Call, asked: tuple[Any, ...], field: str, says: str) -> None:
    answer = call(*asked)
    assert answer["ok"] is False
    assert list(answer["errors"]) == [field]
    assert says in answer["errors"][field]
    assert len(answer["errors"][field]) < 3000


def test_twenty_askers_at_once_each_get_their_own(running: Running) -> None:
    answers: dict[int, Any] = {}

    def ask(n: int) -> None:
        with httpx.Client(base_url=running.url, trust_env=False, timeout=60) as own:
            events = stream(own, "trace", "", {"edits": [f"resid_pre[0,0,1]={n}"]}, ["resid_pre"])
            answers[n] = events[-1][1][0]

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n in range(20):
        assert answers[n]["quantities"]["resid_pre"]["values"][0][0] == [1.0, float(n)]


def test_one_step_is_enough_for_a_short_answer(http: httpx.Client) -> None:
    for path in ("run/trace", "api/trace"):
        reply = http.post(f"gradio_api/{path}", json={"data": ["T=3", None, ["probs"]]})
        assert reply.status_code == 200
        assert reply.json()["data"][0]["sizes"]["T"] == 3
    assert http.post("gradio_api/run/ledger", json={"data": []}).json()["data"][0]["ok"]
    written = http.post("gradio_api/run/generate", json={"data": ["the cat", "tiny", 3]}).json()["data"][0]
    assert written["done"]


@pytest.mark.parametrize(
    ("name", "body", "says"),
    [
        ("trace", b"T=3", 'The body is not JSON. Send {"data": [link, settings, only]}.'),
        (
            "trace",
            b"[]",
            'The body does not fit. Send {"data": [link, settings, only]}; entries at the end may be left',
        ),
        ("ledger", b'{"data": [1, 2, 3]}', 'The body does not fit. Send {"data": [link, settings]}'),
        ("generate", b'{"data": []}', "prompt is missing. Send"),
    ],
)
def test_a_body_that_does_not_fit_is_told_what_would(http: httpx.Client, name: str, body: bytes, says: str) -> None:
    for way in ("run", "call"):
        reply = http.post(f"gradio_api/{way}/{name}", content=body, headers={"content-type": "application/json"})
        assert reply.status_code == 400
        assert reply.json()["detail"].startswith(says)
