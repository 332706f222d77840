"""API calls in every form through a plain proxy before two servers, and the tickets that make it possible."""

from __future__ import annotations

import json
import zlib
from base64 import urlsafe_b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import numpy as np
import pytest
from gradio_client import Client

from explorer import Edit, RunSpec, run
from explorer.link import encode
from explorer.ui import tickets
from explorer.ui.bodies import Unreadable
from tests.api.conftest import stream
from tests.api.two_servers import Proxy

LINKED = RunSpec(B=2, T=3, d_model=8, h=2, weights="random", seed=5, edits=(Edit("probs", (0, 1, 2, 0), 0.75),))
TEXT = ("the cat", "tiny", 12, 0.85, 50, 0.85, 1.0, 4)
UNKNOWN = 'event: error\ndata: "There is no such event."\n\n'


@pytest.fixture(scope="module")
def http(proxy: Proxy) -> Any:
    with httpx.Client(base_url=proxy.url, trust_env=False, timeout=60) as client:
        yield client


@pytest.fixture
def both(proxy: Proxy) -> Any:
    """Both servers have to get something of what a test asks."""
    before = proxy.counts()
    yield
    assert all(now > then for now, then in zip(proxy.counts(), before, strict=True))


def edited(x: float) -> RunSpec:
    return RunSpec(**{**LINKED.given(), "edits": (*LINKED.edits, Edit("resid_pre", (0, 0, 1), x))})


def same(answer: Any, x: float) -> None:
    found = np.array(answer["quantities"]["resid_post"]["values"], dtype=np.float32)
    np.testing.assert_array_equal(found, run(edited(x))["resid_post"])


# ------------------------------------------------------------------------------------------------------- in two steps


@pytest.mark.usefixtures("both")
def test_runs_in_two_steps(http: httpx.Client) -> None:
    for x in range(5):
        events = stream(http, "trace", encode(LINKED), {"edits": [f"resid_pre[0,0,1]={x}"]}, ["resid_post"])
        assert [name for name, _ in events] == ["complete"]
        same(events[0][1][0], x)
    for _ in range(3):
        rows = stream(http, "ledger", encode(LINKED))[-1][1][0]["rows"]
        shapes = {row["name"]: row["shape"] for row in rows}
        assert shapes["probs"] == list(run(LINKED)["probs"].shape)
        figure = stream(http, "figure", "attention", encode(LINKED), None, 0, 1)[-1][1][0]
        assert len(figure["data"]) == len(run(LINKED).figure("attention", h=1).data)


@pytest.mark.usefixtures("both")
def test_texts_in_two_steps(http: httpx.Client) -> None:
    texts = [stream(http, "generate", *TEXT)[-1][1][0] for _ in range(3)]
    assert texts[0]["done"]
    assert all(text == texts[0] for text in texts)
    for _ in range(3):
        events = stream(http, "generate_stream", *TEXT)
        assert [name for name, _ in events] == ["generating"] * (len(events) - 1) + ["complete"]
        assert len(events) > 2
        assert events[-1][1][0] == texts[0]


@pytest.mark.usefixtures("both")
def test_parameters_by_name(http: httpx.Client) -> None:
    for x in range(3):
        asked = {"only": ["resid_post"], "settings": {"edits": [f"resid_pre[0,0,1]={x}"]}, "link": encode(LINKED)}
        event = http.post("gradio_api/call/v2/trace", json=asked).json()["event_id"]
        for way in ("call/v2", "call"):
            said = http.get(f"gradio_api/{way}/trace/{event}").text
            same(json.loads(said.removeprefix("event: complete\ndata: "))[0], x)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"prompts": "x"}, """There is no parameter 'prompts'. Send {"prompt": …, "checkpoint": …"""),
        ({"seed": 1}, """prompt is missing. Send {"prompt": …"""),
        ([], """The body does not fit. Send {"prompt": …"""),
    ],
)
def test_names_that_do_not_fit(http: httpx.Client, asked: Any, says: str) -> None:
    reply = http.post("gradio_api/call/v2/generate", json=asked)
    assert reply.status_code == 400
    assert reply.json()["detail"].startswith(says)


# -------------------------------------------------------------------------------------------------- with gradio_client


def client_of(url: str) -> Client:
    return Client(url, verbose=False, analytics_enabled=False, httpx_kwargs={"trust_env": False})


@pytest.mark.usefixtures("both")
def test_several_clients_at_once_each_get_their_own(proxy: Proxy) -> None:
    def ask(number: int) -> None:
        client = client_of(proxy.url)
        for n in range(4):
            x = 10 * number + n
            settings = {"edits": [f"resid_pre[0,0,1]={x}"]}
            same(client.predict(encode(LINKED), settings, ["resid_post"], api_name="/trace"), x)

    with ThreadPoolExecutor(6) as people:
        list(people.map(ask, range(6)))


@pytest.mark.usefixtures("both")
def test_one_client_asks_many_things_at_once(proxy: Proxy) -> None:
    client = client_of(proxy.url)
    text = client.submit(*TEXT, api_name="/generate_stream")
    jobs = [
        client.submit(encode(LINKED), {"edits": [f"resid_pre[0,0,1]={x}"]}, ["resid_post"], api_name="/trace")
        for x in range(8)
    ]
    for x, job in enumerate(jobs):
        same(job.result(60), x)
    assert text.result(60)["done"]
    parts = text.outputs()
    assert len(parts) > 2
    assert [part["done"] for part in parts] == sorted(part["done"] for part in parts)


def test_a_mistake_reaches_the_client(proxy: Proxy) -> None:
    answer = client_of(proxy.url).predict(settings={"T": 1000}, api_name="/ledger")
    assert answer["ok"] is False
    assert "T" in answer["errors"]


# ------------------------------------------------------------------------------------------------------------ tickets


def packed(content: Any) -> str:
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    return urlsafe_b64encode(zlib.compress(text, 9)).decode().rstrip("=")


def test_a_ticket_comes_back_as_it_was() -> None:
    data = ["v=1&T=3", {"edits": ["probs[0,0,2,0]=0.5"], "text": "ü猫"}, None, 1.5]
    ticket = tickets.written("trace", data)
    assert tickets.read(ticket, "trace") == data
    assert ticket.replace("-", "").replace("_", "").isalnum()


TICKET = tickets.written("trace", ["T=3", None, ["probs"]])
BOMB = zlib.compress(b'["trace",["' + b"x" * 2**22 + b'"]]', 9)
WRONG: dict[str, Callable[[], str]] = {
    "another endpoint's": lambda: tickets.written("ledger", ["T=3", None]),
    "tampered with": lambda: TICKET[:20] + ("A" if TICKET[20] != "A" else "B") + TICKET[21:],
    "cut off": lambda: TICKET[:-4],
    "with more behind it": lambda: urlsafe_b64encode(zlib.compress(b'["trace",[]]') + b"more").decode().rstrip("="),
    "no text": lambda: packed(b"\xff\xfe"),
    "no JSON": lambda: packed(b"[" * 5000),
    "no list": lambda: packed({"trace": []}),
    "without data": lambda: packed(["trace", "T=3"]),
    "too much data": lambda: packed(["trace", [None] * 4]),
    "a file": lambda: packed(["trace", [{"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}}]]),
    "a bomb": lambda: urlsafe_b64encode(BOMB).decode().rstrip("="),
    "too long": lambda: "A" * (tickets.LONGEST + 1),
    "other letters": lambda: "%C3%BC~!",
    "an event of old": lambda: "0123456789abcdef0123456789abcdef",
}  # fmt: skip


@pytest.mark.parametrize("kind", WRONG)
def test_a_ticket_that_is_none(http: httpx.Client, kind: str) -> None:
    for way in ("call", "call/v2"):
        reply = http.get(f"gradio_api/{way}/trace/{WRONG[kind]()}")
        assert reply.status_code == 200
        assert reply.headers["content-type"].startswith("text/event-stream")
        assert reply.text == UNKNOWN


def test_a_ticket_for_a_text_needs_a_prompt(http: httpx.Client) -> None:
    for name in ("generate", "generate_stream"):
        assert http.get(f"gradio_api/call/{name}/{packed([name, []])}").text == UNKNOWN


def test_a_bomb_is_not_unpacked() -> None:
    assert len(WRONG["a bomb"]()) < tickets.LONGEST + 1
    with pytest.raises(Unreadable):
        tickets.read(WRONG["a bomb"](), "trace")


def test_what_does_not_fit_into_a_ticket_is_told_the_way(http: httpx.Client) -> None:
    noise = "".join(chr(0x4E00 + n * 7919 % 20000) for n in range(3900))
    for name in ("generate", "generate_stream"):
        reply = http.post(f"gradio_api/call/{name}", json={"data": [noise]})
        assert reply.status_code == 413
        assert reply.json()["detail"] == (
            "The request is too long to be asked in two steps: what it says, packed, has more than 6,000 characters. "
            "Send it to /gradio_api/run/generate, which answers in one."
        )
    assert http.post("gradio_api/run/generate", json={"data": [noise, "tiny", 1]}).json()["data"][0]["done"]


def test_a_ticket_is_good_again(http: httpx.Client) -> None:
    first, second = (http.get(f"gradio_api/call/trace/{TICKET}").text for _ in range(2))
    assert first == second
    assert first.startswith("event: complete")
