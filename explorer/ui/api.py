"""The HTTP API: the four things the command line can do, as named endpoints for programs.

Purpose: `add_api`. Each endpoint takes a link or settings and returns plain JSON; its docstring is what the API page
and MCP show, limits included.
Must not know: the page, how an answer is computed.

An endpoint never raises: whatever is wrong with a request comes back as {"ok": false, "errors": {field: message}}.
"""

from __future__ import annotations

import inspect
import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import Any

import gradio as gr
from gradio.context import LocalContext
from gradio.events import api as named_endpoint

from explorer import allowance, answers, device
from explorer.asked import read_spec
from explorer.generation import Sampling, write
from explorer.limits import LIMITS
from explorer.offers import OFFERS, message_for_unknown
from explorer.spec import RunSpec, SpecError
from explorer.typed import shown
from explorer.ui import access
from explorer.ui.bodies import REQUIRED, Endpoint
from explorer.ui.gpu import compare
from explorer.ui.manual import manual

log = logging.getLogger(__name__)
Answer = dict[str, Any]
AT_ONCE = 2  # requests that compute at the same time; the others wait in the queue
INTERNAL = "Something went wrong here. It was noted; the request itself may be fine."


def trace(link: str = "", settings: dict[str, Any] | None = None, only: list[str] | None = None) -> Answer:
    """Run one block and return its quantities.

    link: what follows the "?" in the address of a page, or the whole address; "" for the toy.
    settings: RunSpec's fields by name, for example {"weights": "random", "T": 5, "d_model": 12, "h": 3}; edits as
    {"edits": ["resid_pre[0,0,1]=2"]}, what-ifs as {"switches": ["no_mask"]}. They replace what the link says.
    only: names of quantities and weights, for example ["probs", "self_attn.q_proj.weight"]; all quantities if left out.

    Returns {"ok", "link", "settings", "sizes", "edited", "quantities": {name: {"title", "stage", "axes", "shape",
    "dtype", "values"}}, "notes"}. Values are nested lists; what is not finite is "NaN", "Inf" or "-Inf".
    A request that cannot be run returns {"ok": false, "errors": {field: message}}.
    """
    spec, notes = _spec(link, settings)
    return {**answers.trace(spec, _names(only), LIMITS.answer), "notes": notes}


def ledger(link: str = "", settings: dict[str, Any] | None = None) -> Answer:
    """The shape ledger of a run: every quantity with its axes, shape, dtype, bytes and floating-point operations.

    link, settings: as for trace.

    Returns {"ok", "link", "settings", "sizes", "rows": [{"name", "stage", "axes", "symbolic", "shape", "dtype",
    "bytes", "flops", "agrees", "note", ...}], "bytes", "flops", "notes"}, or {"ok": false, "errors": {field: message}}.
    """
    spec, notes = _spec(link, settings)
    return {**answers.ledger(spec), "notes": notes}


def figure(
    name: str = "attention", link: str = "", settings: dict[str, Any] | None = None, row: int = 0, head: int = 0
) -> Answer:
    """One figure of a run, ready for plotly, with the same in words.

    name: for example attention, rope, residual, masked_scores; a wrong name is answered with all of them.
    link, settings: as for trace. row, head: which batch row and query head it shows.

    Returns {"ok", "link", "settings", "sizes", "id", "title", "text", "data", "layout", "notes"}, or
    {"ok": false, "errors": {field: message}}.
    """
    spec, notes = _spec(link, settings)
    row, head = _whole("row", row), _whole("head", head)
    return {**answers.figure(spec, _text("name", name), row, head), "notes": notes}


def generate_stream(
    prompt: str,
    checkpoint: str = "",
    new_tokens: int = 64,
    temperature: float = 0.85,
    top_k: int = 50,
    top_p: float = 0.85,
    repetition_penalty: float = 1.0,
    seed: int = 0,
) -> Iterator[Answer]:
    """Continue a text with a checkpoint of this server; the text comes as it is written.

    Takes and returns what generate does, several times, the last with done = true. Leaving stops the work.
    """
    sampling = Sampling(new_tokens, temperature, top_k, top_p, repetition_penalty, seed)
    name = _text("checkpoint", checkpoint) or next(iter(OFFERS), "")
    if name not in OFFERS:
        raise SpecError({"checkpoint": message_for_unknown(name) if name else "This server offers no checkpoint."})
    for written in write(name, _text("prompt", prompt), sampling):
        yield {"text": written.text, "tokens": written.tokens, "done": written.done, "stopped": written.stopped}


def generate(*given: Any, **named: Any) -> Answer:
    """Continue a text with a checkpoint of this server.

    prompt: the text to continue. checkpoint: one of those offered; "" for the first.
    new_tokens: at most so many. temperature: 0 takes the likeliest token. top_k, top_p: draw among the likeliest.
    repetition_penalty: above 1 repeats less. seed: same seed, same text.

    Returns {"ok", "text", "tokens", "done", "stopped"}, or {"ok": false, "errors": {field: message}}.
    """
    return deque(generate_stream(*given, **named), maxlen=1)[0]


generate.__signature__ = inspect.signature(generate_stream, eval_str=True)  # type: ignore[attr-defined]


def gpu(link: str = "", settings: dict[str, Any] | None = None) -> Answer:
    """Run one block on this server's GPU and compare every quantity with the run on the CPU.

    link, settings: as for trace.

    Returns {"ok", "device", "ms", "rows": [{"name", "difference"}], "largest", "at", "notes"}, or
    {"ok": false, "errors": {field: message}}. difference: relative to the largest magnitude of the quantity.
    """
    spec, notes = _spec(link, settings)
    return {**compare(spec), "notes": notes}


def add_api(blocks: gr.Blocks) -> None:
    """Give `blocks` the named endpoints: ENDPOINTS, and gpu where there is one."""
    limits = _limits_text()
    with blocks:
        for name, endpoint in _here().items():
            writes = endpoint in WRITING
            named_endpoint(
                _streamed(endpoint) if endpoint is generate_stream else _answered(endpoint),
                api_name=name,
                api_description=f"{endpoint.__doc__}\n{limits}",
                concurrency_limit=1 if writes else AT_ONCE,
                concurrency_id="texts" if writes else "runs",
            )


ENDPOINTS: dict[str, Callable[..., Any]] = {
    "trace": trace, "ledger": ledger, "figure": figure, "generate": generate, "generate_stream": generate_stream,
    "gpu": gpu,
}  # fmt: skip
WRITING = (generate, generate_stream)


def endpoints() -> dict[str, Endpoint]:
    """What may be asked of each that this server has, for the layer before Gradio."""
    return {
        name: Endpoint(
            {
                p.name: REQUIRED if p.default is p.empty else p.default
                for p in inspect.signature(endpoint).parameters.values()
            },
            streams=inspect.isgeneratorfunction(endpoint),
            writes=endpoint in WRITING,
        )
        for name, endpoint in _here().items()
    }


def api_page(address: str) -> str:
    """The page about the endpoints that this server has; address: where it is reached."""
    return manual(_here(), _limits_text(), address)


def _here() -> dict[str, Callable[..., Any]]:
    return {name: endpoint for name, endpoint in ENDPOINTS.items() if endpoint is not gpu or device.gpu_here()}


def _limits_text() -> str:
    """The limits in force, as the API page shows them."""
    n = LIMITS
    return (
        f"Limits: B up to {n.B}, T and past up to {n.T}, d_model up to {n.d_model}, h up to {n.h}, "
        f"d_ff up to {n.d_ff}, {n.experts} experts, {n.edits} edits, {n.flops:.0e} multiplications, "
        f"{n.answer:,} numbers in an answer, {n.text:,} characters of text, {n.new_tokens} new tokens, "
        f"{n.seconds:g} seconds of computing."
    )


def _answered(endpoint: Callable[..., Answer]) -> Callable[..., Answer]:
    """The endpoint with every error as an answer."""

    @wraps(endpoint)
    def answered(*given: Any) -> Answer:
        with access.noted(endpoint.__name__) as call:
            try:
                with allowance.started(_unread()):
                    return {"ok": True, **endpoint(*given)}
            except Exception as error:
                return _refused(call, error)

    _describe(answered, endpoint)
    return answered


def _streamed(endpoint: Callable[..., Iterator[Answer]]) -> Callable[..., Iterator[Answer]]:
    @wraps(endpoint)
    def streamed(*given: Any) -> Iterator[Answer]:
        with access.noted(endpoint.__name__) as call:
            try:
                with allowance.started(_unread()) as held:
                    parts = endpoint(*given)
                while True:
                    with allowance.held(held):  # not across a yield: the next step may come in another context
                        part = next(parts, None)
                    if part is None:
                        return
                    yield {"ok": True, **part}
            except Exception as error:
                yield _refused(call, error)

    _describe(streamed, endpoint)
    return streamed


def _describe(wrapper: Callable[..., Any], endpoint: Callable[..., Any]) -> None:
    """Give the wrapper the endpoint's signature in types instead of text, which is how Gradio documents it."""
    signature = inspect.signature(endpoint, eval_str=True).replace(return_annotation=dict)
    wrapper.__signature__ = signature  # type: ignore[attr-defined]
    wrapper.__annotations__ = {name: p.annotation for name, p in signature.parameters.items()} | {"return": dict}


def _unread() -> Callable[[], bool]:
    """Whether the event that is answered here has lost its reader, for those that come through Gradio's queue."""
    blocks, event_id = LocalContext.blocks.get(None), LocalContext.event_id.get(None)
    event = blocks._queue.event_ids_to_events.get(event_id) if blocks and event_id else None
    return lambda: event is not None and not event.alive


def _refused(call: access.Call, error: Exception) -> Answer:
    if isinstance(error, (SpecError, allowance.Stopped)):
        call.outcome = "left" if isinstance(error, allowance.Left) else "refused"
        return {"ok": False, "errors": error.errors}
    call.outcome = "failed"
    log.error("%s failed", call.endpoint, exc_info=error)
    return {"ok": False, "errors": {"": INTERNAL}}


def _spec(link: object, settings: object) -> tuple[RunSpec, list[str]]:
    if settings is not None and not isinstance(settings, Mapping):
        raise SpecError({"settings": f'settings = {shown(settings)} is not an object. Give for example {{"T": 3}}.'})
    spec, _, notes = read_spec(link_or_address=_text("link", link), settings=settings or {})
    return spec, notes


def _names(only: object) -> list[str]:
    names = [] if only is None else [only] if isinstance(only, str) else only
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise SpecError({"only": f'only = {shown(only)} is not a list of names. Give for example ["probs"].'})
    return names


def _text(name: str, value: object) -> str:
    if value is not None and not isinstance(value, str):
        raise SpecError({name: f"{name} = {shown(value)} is not text."})
    return (value or "").encode("utf-8", "replace").decode("utf-8")  # half characters cannot travel back


def _whole(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise SpecError({name: f"{name} = {shown(value)} is not a whole number."})
    return value
