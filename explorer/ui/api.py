"""The HTTP API: the functions of endpoints.py as Gradio's named endpoints, within the limits, with errors as answers.

Purpose: `add_api`, and for the layer before Gradio `endpoints`.
Must not know: the page, what an endpoint does.

Nothing is raised here: whatever is wrong with a request comes back as {"ok": false, "errors": {field: message}}.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import gradio as gr
from gradio.context import LocalContext
from gradio.events import api as named_endpoint

from explorer import allowance
from explorer.limits import LIMITS
from explorer.spec import SpecError
from explorer.ui import access
from explorer.ui.bodies import REQUIRED, Endpoint
from explorer.ui.endpoints import WRITING, Answer, described, here
from explorer.ui.manual import manual

log = logging.getLogger(__name__)
AT_ONCE = 2  # requests that compute at the same time; the others wait in the queue
INTERNAL = "Something went wrong here. It was noted; the request itself may be fine."


def add_api(blocks: gr.Blocks) -> None:
    """Give `blocks` the named endpoints that this server has."""
    limits = _limits_text()
    with blocks:
        for name, endpoint in here().items():
            writes, said = endpoint in WRITING, described(endpoint)
            named_endpoint(
                _streamed(endpoint) if inspect.isgeneratorfunction(endpoint) else _answered(endpoint),
                api_name=name,
                api_description=f"{said.about}\n\nReturns {said.returns}\n\n{limits}",
                concurrency_limit=1 if writes else AT_ONCE,
                concurrency_id="texts" if writes else "runs",
            )


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
        for name, endpoint in here().items()
    }


def api_page(address: str) -> str:
    """The page about the endpoints that this server has; address: where it is reached."""
    return manual(here(), _limits_text(), address)


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
