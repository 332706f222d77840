"""The HTTP API's endpoints as functions: what the command line can do, for programs.

Purpose: ENDPOINTS, `here` and `described`. Each takes a link or settings and returns plain JSON; its docstring is what
the API page and MCP show of it, its parameters each on one line, which is how Gradio reads them for MCP.
Must not know: how a request travels, the page, how an answer is computed.

An endpoint raises SpecError for what is wrong with a request, or allowance.Stopped.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from explorer import answers, device, sources
from explorer.generation import Sampling, write
from explorer.limits import LIMITS
from explorer.spec import RunSpec, SpecError
from explorer.typed import shown
from explorer.ui.gpu import compare

Answer = dict[str, Any]


def trace(link: str = "", settings: dict[str, Any] | None = None, only: list[str] | None = None) -> Answer:
    """Run one block and return its quantities.

    Settings replace what the link says. Edits are settings, {"edits": ["resid_pre[0,0,1]=2"]}, and so are what-ifs,
    {"switches": ["no_mask"]}.

    Parameters:
        link: what follows the "?" in the address of a page, or the whole address; "" for the toy
        settings: RunSpec's fields by name, for example {"weights": "random", "T": 5, "d_model": 12, "h": 3}
        only: names of quantities and weights, for example ["probs", "self_attn.q_proj.weight"]; else all quantities

    Returns:
        {"ok", "link", "settings", "sizes", "edited", "quantities": {name: {"title", "stage", "axes", "shape", "dtype",
        "values"}}, "notes"}. Values are nested lists; what is not finite is "NaN", "Inf" or "-Inf". A request that
        cannot be run returns {"ok": false, "errors": {field: message}}.
    """
    spec, notes = _spec(link, settings)
    return {**answers.trace(spec, _names(only), LIMITS.answer), "notes": notes}


def ledger(link: str = "", settings: dict[str, Any] | None = None) -> Answer:
    """The shape ledger of a run: every quantity with its axes, shape, dtype, bytes and floating-point operations.

    Parameters:
        link: what follows the "?" in the address of a page, or the whole address; "" for the toy
        settings: RunSpec's fields by name, as for trace; they replace what the link says

    Returns:
        {"ok", "link", "settings", "sizes", "rows": [{"name", "stage", "axes", "symbolic", "shape", "dtype", "bytes",
        "flops", "agrees", "note", ...}], "bytes", "flops", "notes"}, or {"ok": false, "errors": {field: message}}.
    """
    spec, notes = _spec(link, settings)
    return {**answers.ledger(spec), "notes": notes}


def figure(
    name: str = "attention", link: str = "", settings: dict[str, Any] | None = None, row: int = 0, head: int = 0
) -> Answer:
    """One figure of a run, ready for plotly, with the same in words.

    Parameters:
        name: for example attention, rope, residual, masked_scores; a wrong name is answered with all of them
        link: what follows the "?" in the address of a page, or the whole address; "" for the toy
        settings: RunSpec's fields by name, as for trace; they replace what the link says
        row: which batch row it shows, counted from 0
        head: which query head it shows, counted from 0

    Returns:
        {"ok", "link", "settings", "sizes", "id", "title", "text", "data", "layout", "notes"}, or {"ok": false,
        "errors": {field: message}}.
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

    Leaving stops the work.

    Parameters:
        prompt: the text to continue
        checkpoint: one of those offered; "" for the first
        new_tokens: at most so many
        temperature: divides the logits before the draw; 0 takes the likeliest token
        top_k: draw among so many of the likeliest tokens; 0 for all
        top_p: draw among the likeliest tokens that together have this probability; 1 for all
        repetition_penalty: above 1, what stands in the text already becomes less likely
        seed: of the draw; the same seed gives the same text

    Returns:
        What generate returns, several times, the last with done = true.
    """
    sampling = Sampling(new_tokens, temperature, top_k, top_p, repetition_penalty, seed)
    for written in write(_text("checkpoint", checkpoint), _text("prompt", prompt), sampling):
        yield {"text": written.text, "tokens": written.tokens, "done": written.done, "stopped": written.stopped}


def generate(*given: Any, **named: Any) -> Answer:
    """Continue a text with a checkpoint of this server.

    Returns:
        {"ok", "text", "tokens", "done", "stopped"}, or {"ok": false, "errors": {field: message}}.
    """
    return deque(generate_stream(*given, **named), maxlen=1)[0]


def _takes_the_same(endpoint: Callable[..., Any], as_this: Callable[..., Any]) -> None:
    """Give an endpoint the parameters of another, signature and description."""
    parameters = "\n".join(f"    {name}: {text}" for name, text in described(as_this).parameters.items())
    about, returns = (inspect.getdoc(endpoint) or "").split("\n\nReturns:")
    endpoint.__doc__ = f"{about}\n\nParameters:\n{parameters}\n\nReturns:{returns}"
    endpoint.__signature__ = inspect.signature(as_this, eval_str=True)  # type: ignore[attr-defined]


def gpu(link: str = "", settings: dict[str, Any] | None = None) -> Answer:
    """Run one block on this server's GPU and compare every quantity with the run on the CPU.

    Parameters:
        link: what follows the "?" in the address of a page, or the whole address; "" for the toy
        settings: RunSpec's fields by name, as for trace; they replace what the link says

    Returns:
        {"ok", "device", "ms", "rows": [{"name", "difference"}], "largest", "at", "notes"}, or {"ok": false, "errors":
        {field: message}}. difference: relative to the largest magnitude of the quantity.
    """
    spec, notes = _spec(link, settings)
    return {**compare(spec), "notes": notes}


ENDPOINTS: dict[str, Callable[..., Any]] = {
    "trace": trace, "ledger": ledger, "figure": figure, "generate": generate, "generate_stream": generate_stream,
    "gpu": gpu,
}  # fmt: skip
WRITING = (generate, generate_stream)


def here() -> dict[str, Callable[..., Any]]:
    """Those that this server has: gpu only where there is one."""
    return {name: endpoint for name, endpoint in ENDPOINTS.items() if endpoint is not gpu or device.gpu_here()}


class Described(NamedTuple):
    """What an endpoint's docstring says of it."""

    about: str
    parameters: dict[str, str]
    returns: str


def described(endpoint: Callable[..., Any]) -> Described:
    """The docstring, taken apart at its headings."""
    about, _, rest = (inspect.getdoc(endpoint) or "").partition("\n\nParameters:\n")
    lines, _, returns = rest.partition("\n\nReturns:\n")
    pairs = (line.strip().split(": ", 1) for line in lines.splitlines())
    return Described(about, dict(pairs), inspect.cleandoc(returns))


_takes_the_same(generate, generate_stream)


def _spec(link: object, settings: object) -> tuple[RunSpec, list[str]]:
    if settings is not None and not isinstance(settings, Mapping):
        raise SpecError({"settings": f'settings = {shown(settings)} is not an object. Give for example {{"T": 3}}.'})
    spec, _, notes = sources.read(link_or_address=_text("link", link), settings=settings or {})
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
