"""What a request to a named endpoint may look like, checked before Gradio sees it.

Purpose: bytes -> one entry a parameter, with a sentence for the sender where that cannot be.
Must not know: how a request comes, what the entries mean.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

REQUIRED = object()  # stands for the default of a parameter that has none


class Unreadable(Exception):
    """A body that is too large or not what the endpoint takes; the message is for whoever sent it."""


@dataclass(frozen=True)
class Endpoint:
    """A named endpoint. parameters: their defaults; streams: answers several times; writes: continues texts."""

    parameters: Mapping[str, object]
    streams: bool = False
    writes: bool = False


def read_json(body: bytes, expected: str) -> Any:
    """The body's content. Raises Unreadable naming the form that was expected."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise Unreadable(f"The body is not JSON. Send {expected}.") from None


def in_order(asked: Any, parameters: Mapping[str, object]) -> list[Any]:
    """{"data": [entries, …]} -> one entry a parameter; those left out at the end have their defaults.

    Gradio would answer a wrong count with a server error and print what was sent. Raises Unreadable.
    """
    expected = form(parameters)
    data = asked.get("data") if isinstance(asked, dict) else None
    if not isinstance(data, list) or len(data) > len(parameters):
        raise Unreadable(f"The body does not fit. Send {expected}; entries at the end may be left out.")
    return _completed(dict(zip(parameters, data, strict=False)), parameters, expected)


def by_name(asked: Any, parameters: Mapping[str, object]) -> list[Any]:
    """{parameter: entry, …} -> one entry a parameter. Raises Unreadable."""
    expected = form(parameters, named=True)
    if not isinstance(asked, dict):
        raise Unreadable(f"The body does not fit. Send {expected}; all but the required may be left out.")
    if unknown := [str(name) for name in asked if name not in parameters]:
        raise Unreadable(f"There is no parameter {unknown[0][:60]!r}. Send {expected}.")
    return _completed(asked, parameters, expected)


def form(parameters: Mapping[str, object], named: bool = False) -> str:
    """What a body looks like."""
    if named:
        return "{" + ", ".join(f'"{name}": …' for name in parameters) + "}"
    return f'{{"data": [{", ".join(parameters)}]}}'


def _completed(given: Mapping[str, Any], parameters: Mapping[str, object], expected: str) -> list[Any]:
    if missing := [name for name, default in parameters.items() if name not in given and default is REQUIRED]:
        raise Unreadable(f"{missing[0]} is missing. Send {expected}.")
    return [given.get(name, default) for name, default in parameters.items()]


def refuse_files(asked: Any) -> None:
    """Nothing here takes a file, and Gradio would fetch one from any address that a body names. Raises Unreadable.

    The check is Gradio's own: an object whose "meta" holds a "_type", wherever it stands.
    """
    waiting = [asked]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            meta = part.get("meta")
            if isinstance(meta, dict) and "_type" in meta:
                raise Unreadable("Files cannot be sent here. Send text, numbers and lists.")
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
