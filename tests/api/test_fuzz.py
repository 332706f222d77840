"""Whatever is posted, nothing answers with a server error, and every answer is ok or says what is wrong.

Hypothesis writes the arguments, by the types that the API page states and by none at all.
"""

from __future__ import annotations

import json
import os
from typing import Any

import httpx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from explorer.spec import RunSpec
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


@fuzz
@given(CALLS)
def test_any_arguments_get_an_answer(running: Running, http: httpx.Client, call: tuple[Any, ...]) -> None:
    name, *given = call
    body = json.dumps({"data": given})  # NaN and Infinity as Python writes them: not JSON, and sent all the same
    posted = http.post(f"gradio_api/call/{name}", content=body, headers={"content-type": "application/json"})
    assert posted.status_code < 500, posted.text
    if posted.status_code == 200:
        text = http.get(f"gradio_api/call/{name}/{posted.json()['event_id']}").text
        last = text.strip().split("\n\n")[-1]
        assert last.startswith("event: complete"), (call, text[:300])
        assert is_answer(json.loads(last.split("data: ", 1)[1])[0]), (call, text[:300])


@fuzz
@given(
    st.sampled_from(PATHS),
    ANY | st.dictionaries(st.sampled_from(PARTS), ANY),
    st.sampled_from(["POST", "GET", "PUT", "DELETE", "OPTIONS"]),
)  # fmt: skip
def test_any_body_anywhere_is_no_server_error(http: httpx.Client, path: str, body: Any, method: str) -> None:
    if path == "queue/data" and method == "GET":
        return  # waits for events of a session, as it should
    reply = http.request(
        method, f"gradio_api/{path}", content=json.dumps(body), headers={"content-type": "application/json"}
    )
    assert reply.status_code < 500, (path, body, reply.status_code, reply.text[:300])


def test_the_server_is_as_before(http: httpx.Client, running: Running) -> None:
    assert stream(http, "trace", "", None, ["probs"])[-1][1][0]["quantities"]["probs"]["values"] == [
        [[[1, 0], [0.5, 0.5]]]
    ]
    assert not [e for e in running.entries() if e["outcome"] == "failed"]
    assert "failed" not in {line.split()[0] for line in running.server.output().splitlines() if line.split()}
