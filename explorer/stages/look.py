"""One place of a run that the stages talk about: a batch row, a head, a token.

Purpose: short ways to the rows and cells that facts and figures need.
Must not know: sentences, figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from explorer import sources
from explorer.draw.positions import Positions
from explorer.model.rope import rope_frequencies
from explorer.run import config_of

if TYPE_CHECKING:
    from explorer.capture import Trace

Array: TypeAlias = "np.ndarray[Any, Any]"
CLOSE = 2e-3  # relative; wide enough for half precision, far below what an edit is made for


def agrees(found: Array | float, expected: Array | float, size: float = 1.0) -> bool:
    """Whether a captured value is what a formula gives, within CLOSE of the larger of the two and of `size`."""
    a, b = np.asarray(found, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    reach = max(size, *(float(np.abs(x[np.isfinite(x)]).max(initial=0.0)) for x in (a, b)))
    return bool(np.all((np.abs(a - b) <= CLOSE * reach) | (a == b) | (np.isnan(a) & np.isnan(b))))


@dataclass(frozen=True)
class Look:
    """b, h, t: batch row, query head, token of this call. `at` clips them to what the run has."""

    trace: Trace
    b: int
    h: int
    t: int

    @classmethod
    def at(cls, trace: Trace, b: int = 0, h: int = 0, t: int | None = None) -> Look:
        """A place; numbers beyond the end mean the last, no token means the last, which sees the most keys."""
        n = trace.sizes
        token = n["T"] - 1 if t is None else t
        return cls(trace, *(min(max(i, 0), n[a] - 1) for i, a in ((b, "B"), (h, "H"), (token, "T"))))

    def holds(
        self, names: str | tuple[str, ...], found: Array | float, expected: Array | float, size: float = 1.0
    ) -> bool:
        """Whether these numbers are what the formula gives: always, unless an edit replaced some of a quantity named
        here, which is the one they belong to or one that the formula takes as it should be.
        """
        named = (names,) if isinstance(names, str) else names
        return not set(named) & set(self.trace.edited) or agrees(found, expected, size)

    @property
    def n(self) -> dict[str, int]:
        """Axis letter -> length."""
        return self.trace.sizes

    @property
    def past(self) -> int:
        return self.n["P"]

    @property
    def position(self) -> int:
        """Where the token stands, cached tokens counted."""
        return self.past + self.t

    @cached_property
    def tokens(self) -> Positions:
        """How this batch row's tokens are called."""
        texts = self.trace.tokens
        return Positions(self.past, texts[self.b] if texts else ())

    @property
    def name(self) -> str | int:
        """The token in a sentence: its position, with its text where one was read."""
        return self.tokens.called(self.position)

    @property
    def kv(self) -> int:
        """The key/value head that the query head reads."""
        return self.h * self.n["Hkv"] // self.n["H"]

    def token(self, name: str) -> Array:
        """The token's row of a [B, T, …] quantity, float64."""
        return np.asarray(self.trace[name][self.b, self.t], dtype=np.float64)

    def head(self, name: str) -> Array:
        """One head of q-like [B, H, T, Dh] or k/v-like [B, Hkv, T, Dh]: [T, Dh]."""
        values = self.trace[name][self.b]
        return np.asarray(values[self.h if self.trace.axes(name)[1] == "H" else self.kv])

    def vector(self, name: str) -> Array:
        """The token's vector in this head, [Dh] float64."""
        return np.asarray(self.head(name)[self.t], dtype=np.float64)

    def query(self, name: str) -> Array:
        """The token's row of scores, masked_scores or probs: [Tk] float64."""
        return np.asarray(self.trace.rows(name, self.b, self.h, self.t, self.t + 1)[0], dtype=np.float64)

    @cached_property
    def keys(self) -> Array:
        """All keys this head can be compared with, cached ones first: [Tk, Dh]."""
        return self._present("present_k", "k_rot")

    @cached_property
    def values(self) -> Array:
        """All values this head can blend, cached ones first: [Tk, Dh]."""
        return self._present("present_v", "v")

    def _present(self, name: str, alias: str) -> Array:
        return self.head(name if name in self.trace else alias)

    @cached_property
    def masked(self) -> Array:
        """bool [Tq, Tk]: the mask hides this key from this query."""
        return np.asarray(self.trace.masked[min(self.b, len(self.trace.masked) - 1), 0])

    @cached_property
    def future(self) -> Array:
        """bool [Tq, Tk]: the key stands after the query."""
        query = self.past + np.arange(self.n["Tq"])[:, None]
        return np.asarray(np.arange(self.n["Tk"])[None] > query)

    @cached_property
    def padded(self) -> Array:
        """bool [Tq, Tk]: hidden although it does not stand after the query."""
        return np.asarray(self.masked & ~self.future)

    @cached_property
    def speeds(self) -> Array | None:
        """[Dh/2] radians a position that RoPE turns each pair, slowed by YaRN where it is on; None where not known."""
        if (spec := self.trace.spec) is None:
            return None
        config = sources.config_of(spec) if spec.checkpoint else config_of(spec)
        return np.asarray(rope_frequencies(config).numpy(), dtype=np.float64) * config.angle_step

    @cached_property
    def angles(self) -> Array:
        """[T, Dh/2] radians that RoPE turns each pair, edits of its tables left out, whole turns included where they
        are known.
        """
        if self.speeds is not None:
            return np.asarray(np.outer(self.past + np.arange(self.n["T"]), self.speeds))
        cos, sin = self.tables
        table = np.arctan2(sin, cos) % (2 * np.pi)
        table[table > 2 * np.pi - 1e-6] = 0.0
        return np.asarray(table)

    @cached_property
    def tables(self) -> tuple[Array, Array]:
        """RoPE's cosines and sines, [T, Dh/2] float64 each, as they were before an edit."""
        half = self.n["Dh"] // 2
        cos, sin = (np.asarray(self.trace.before(x)[:, :half], dtype=np.float64) for x in ("rope_cos", "rope_sin"))
        return cos, sin
