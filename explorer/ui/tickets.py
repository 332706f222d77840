"""An event's name that is the request itself, so that any server can answer it.

Purpose: a request -> URL-safe text and back. Whoever holds a ticket knows what was asked and could ask it anyway; it is
checked like any other request when it comes back.
Must not know: what the entries mean, who holds the ticket.

A proxy writes addresses into its log, and with them what was asked, as it does with the links of the page.
"""

from __future__ import annotations

import json
import re
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

from explorer.ui.bodies import Unreadable

LONGEST = 6000  # characters; common proxies take request lines of 8,000
UNPACKED = 2**20  # bytes, as a body
TICKET = re.compile(rf"[\w-]{{1,{LONGEST}}}", re.ASCII)


class TooLong(Exception):
    """The request does not fit into an address."""


def written(name: str, data: list[Any]) -> str:
    """The ticket of one request to the endpoint `name`. Raises TooLong."""
    packed = zlib.compress(json.dumps([name, data], separators=(",", ":")).encode(), 9)
    ticket = urlsafe_b64encode(packed).decode().rstrip("=")
    if len(ticket) > LONGEST:
        raise TooLong
    return ticket


def read(ticket: str, name: str) -> list[Any]:
    """What the ticket asks of the endpoint `name`. Raises Unreadable where that is nothing."""
    nothing = Unreadable("There is no such event.")
    if not TICKET.fullmatch(ticket):
        raise nothing
    try:
        packed = urlsafe_b64decode(ticket + "=" * (-len(ticket) % 4))
        unpacker = zlib.decompressobj()
        text = unpacker.decompress(packed, UNPACKED)
        whole = unpacker.eof and not unpacker.unused_data and not unpacker.unconsumed_tail
        asked = json.loads(text) if whole else None
    except (ValueError, RecursionError, zlib.error):
        raise nothing from None
    if not (isinstance(asked, list) and len(asked) == 2 and asked[0] == name and isinstance(asked[1], list)):
        raise nothing
    data: list[Any] = asked[1]
    return data
