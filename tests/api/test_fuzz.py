"""Whatever is posted, nothing answers with a server error, and every answer is ok or says what is wrong.

Hypothesis writes the arguments, by the types that the API page states and by none at all.
"""

from __future__ import annotations

import json
import os
import zlib
from base64 import urlsafe_b64encode
from typing import Any
from urllib.parse import quote

import httpx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from explorer.spec import RunSpec
from explorer.ui.api import endpoints
from tests.api.conftest import Running, stream

EXAMPLES = int(os.environ.get("EXPLORER_FUZZ_EXAMPLES", "60"))
fuzz = settings(
    max_examples=EXAMPLES, derandomize=EXAMPLES == 60, deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
NAMES = st.sampled_from([*RunSpec.__dataclass_fields__, "nothing", ""])
LIKELY = st.sampled_from(
    [0, 1, 2, 3, 5, 12, 64, -1, 10**30, 0.5, float("nan"), float("inf"), "2", "x", "on", "toy", "random",
     "checkpoint:tiny", "float16", "flash", "the cat sees a dog", ["probs[0,0,0,0]=1"], ["no_mask", "only_head:1"],
     [{"target": "q"}], None]
)  # fmt: skip
SETTINGS = st.dictionaries(NAMES, LIKELY | ANY, max_size=6)
LINK = st.sampled_from(["", "T=3", "v=1&w=random&d=12&h=3&E=4&k=2", "v=2&x=1", "e=~@!", "?" * 9]) | st.text(max_size=30)
ONLY = st.none() | st.lists(
    st.sampled_from(["probs", "q", "nothing", "mlp.gate.weight"]) | st.text(max_size=5), max_size=3
)
CALLS = st.one_of(
    st.tuples(st.just("trace"), LINK | ANY, SETTINGS | ANY, ONLY | ANY),
    st.tuples(st.just("ledger"), LINK | ANY, SETTINGS | ANY),
    st.tuples(st.just("figure"), st.sampled_from(["rope", "router", "residual"]) | ANY, LINK, SETTINGS, LIKELY, LIKELY),
    st.tuples(
        st.just("generate"), st.just("the cat") | ANY, st.just("tiny") | ANY, *([st.integers(0, 3) | LIKELY] * 6)
    ),
)

PATHS = (
    "call/trace", "call/v2/ledger", "call/generate", "call/v2/nothing", "queue/join", "component_server", "run/trace",
    "api/figure", "reset", "cancel", "queue/data", "stream/x", "heartbeat", "",
)  # fmt: skip
PARTS = ("data", "session_hash", "fn_index", "event_id", "component_id", "fn_name")


def is_answer(answer: Any) -> bool:
    return answer["ok"] is True or (
        answer["ok"] is False and all(isinstance(m, str) for m in answer["errors"].values())
    )


JSON = {"content-type": "application/json"}
PARAMETERS = {name: list(endpoint.parameters) for name, endpoint in endpoints().items()}


def ask(http: httpx.Client, form: str, name: str, given: list[Any]) -> tuple[int, str]:
    """The status of what was posted, and the text with the last answer."""
    content: Any = {"data": given}
    if form == "call/v2":
        content = dict(zip(PARAMETERS[name], given, strict=True))
    if form == "queue":
        number = next(d["id"] for d in http.get("config").json()["dependencies"] if d["api_name"] == name)
        content |= {"fn_index": number, "session_hash": "fuzz"}
    path = "queue/join" if form == "queue" else f"{form}/{name}"
    # json.dumps writes NaN and Infinity as Python does: not JSON, and sent all the same.
    posted = http.post(f"gradio_api/{path}", content=json.dumps(content), headers=JSON)
    if posted.status_code != 200 or form == "run":
        return posted.status_code, posted.text
    way = "queue/data?session_hash=fuzz" if form == "queue" else f"{form}/{name}/{posted.json()['event_id']}"
    return posted.status_code, http.get(f"gradio_api/{way}").text


def answer_in(form: str, text: str) -> Any:
    if form == "run":
        return json.loads(text)["data"][0]
    if form == "queue":
        messages = [json.loads(part.removeprefix("data: ")) for part in text.strip().split("\n\n")]
        return next(message for message in messages if message["msg"] == "process_completed")["output"]["data"][0]
    last = text.strip().split("\n\n")[-1]
    assert last.startswith("event: complete"), text[:300]
    return json.loads(last.split("data: ", 1)[1])[0]


@fuzz
@given(CALLS, st.sampled_from(["call", "call/v2", "run", "queue"]))
def test_any_arguments_get_an_answer_in_any_form(http: httpx.Client, call: tuple[Any, ...], form: str) -> None:
    name, *given = call
    status, text = ask(http, form, name, given)
    assert status < 500, text
    if status == 200:
        assert is_answer(answer_in(form, text)), (call, form, text[:300])


def packed(content: Any) -> str:
    return urlsafe_b64encode(zlib.compress(json.dumps(content).encode())).decode().rstrip("=")


@fuzz
@given(
    st.sampled_from(list(PARAMETERS)),
    st.text(max_size=40)
    | st.binary(max_size=40).map(lambda some: urlsafe_b64encode(some).decode())
    | st.tuples(st.sampled_from(list(PARAMETERS)) | ANY, st.lists(ANY, max_size=4) | ANY).map(list).map(packed),
)  # fmt: skip
def test_any_event_gets_a_stream(http: httpx.Client, name: str, event: str) -> None:
    for way in ("call", "call/v2"):
        reply = http.get(f"gradio_api/{way}/{name}/{quote(event, safe='')}")
        assert reply.status_code < 500, (event, reply.text)
        if reply.status_code == 200:
            assert reply.text.startswith("event: "), (event, reply.text[:300])


@fuzz
@given(
    st.sampled_from(PATHS),
    ANY | st.dictionaries(st.sampled_from(PARTS), ANY),
    st.sampled_from(["POST", "GET", "PUT", "DELETE", "OPTIONS"]),
)  # fmt: skip
def test_any_body_anywhere_is_no_server_error(http: httpx.Client, path: str, body: Any, method: str) -> None:
    if path == "queue/data" and method == "GET":
        return  # waits for events of a session, as it should
    reply = http.request(method, f"gradio_api/{path}", content=json.dumps(body), headers=JSON)
    assert reply.status_code < 500, (path, body, reply.status_code, reply.text[:300])


def test_the_server_is_as_before(http: httpx.Client, running: Running) -> None:
    assert stream(http, "trace", "", None, ["probs"])[-1][1][0]["quantities"]["probs"]["values"] == [
        [[[1, 0], [0.5, 0.5]]]
    ]
    assert not [e for e in running.entries() if e["outcome"] == "failed"]
    assert "failed" not in {line.split()[0] for line in running.server.output().splitlines() if line.split()}
