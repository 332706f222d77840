"""How much one run may ask for.

Purpose: the bounds that RunSpec checks before anything is computed, set once for a server.
Must not know: torch, what is computed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields

ENVIRONMENT_PREFIX = "EXPLORER_LIMIT_"
LEAST = {  # what the toy takes
    "T": 2, "d_model": 2, "d_ff": 2, "link": 1000, "answer": 1000, "score_bytes": 2**20, "flops": 1e6, "seconds": 0.05,
}  # fmt: skip
MAX_POSITIONS = 32768  # MiniMind-3's; cached tokens count


@dataclass
class Limits:
    """Upper bounds, each in the unit of its field; bytes are bytes, flops are multiplications and additions.

    score_bytes: what scores, masked scores and probabilities of one run may take in memory
    link:        characters of a permalink's query string
    cache_bytes: what finished runs may take in the server's cache
    answer:      numbers in one answer of the HTTP API
    new_tokens:  how far one request may continue a text
    seconds:     how long one request may compute; it is looked at between runs of a block and between tokens
    """

    B: int = 8
    T: int = 1024
    d_model: int = 1024
    h: int = 32
    d_ff: int = 4096
    experts: int = 16
    edits: int = 256
    text: int = 4000
    flops: float = 4e10
    parameters: float = 4e7
    score_bytes: int = 128 * 2**20
    cache_bytes: int = 256 * 2**20
    link: int = 16_000
    answer: int = 200_000
    new_tokens: int = 256
    seconds: float = 20.0

    def update(self, wanted: Mapping[str, str]) -> None:
        """Set bounds by name from text, for example {"T": "2048"}. Raises ValueError naming the wrong entry."""
        known = {f.name: float if f.type == "float" else int for f in fields(self)}
        for name, text in wanted.items():
            if name not in known:
                raise ValueError(f"There is no limit {name!r}. Limits: {', '.join(known)}.")
            try:
                value = float(text)
            except ValueError:
                value = 0.0
            least = LEAST.get(name, 1)
            if not least <= value < float("inf"):
                raise ValueError(f"Limit {name} = {text!r} is no number from {least:g} on. Use for example {name}=64.")
            setattr(self, name, known[name](value))


def read_limits(text: str) -> dict[str, str]:
    """ "T=256,B=4" -> {"T": "256", "B": "4"}, for Limits.update. Raises ValueError."""
    wanted = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"The limit {part!r} has no value. Write limits as NAME=NUMBER, for example T=256,B=4.")
        wanted[name.strip()] = value.strip()
    return wanted


def from_environment(environment: Mapping[str, str] = os.environ) -> Limits:
    """The limits, with EXPLORER_LIMIT_T=2048 and the like applied."""
    limits = Limits()
    prefix = len(ENVIRONMENT_PREFIX)
    limits.update({k[prefix:]: v for k, v in environment.items() if k.startswith(ENVIRONMENT_PREFIX)})
    return limits


LIMITS, TROUBLE = Limits(), ""  # TROUBLE: what is wrong with the environment's limits; commands say it and stop
try:
    LIMITS = from_environment()
except ValueError as error:
    TROUBLE = f"{ENVIRONMENT_PREFIX}…: {error}"
