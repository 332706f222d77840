"""How a trace shows itself at the end of a notebook cell.

Must not know: figures, the page.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from explorer.axes import AXES, symbolic_shape
from explorer.quantities import QUANTITIES
from explorer.tables import html_table

if TYPE_CHECKING:
    from explorer.capture.trace import Trace

SIZES = ("B", "T", "P", "D", "H", "Hkv", "Dh", "F")
HEAD = ("stage", "quantity", "", "axes", "shape", "values")
FEW = 8  # numbers that are written out; of more, the range is given
MOST_NAMED = 4  # edited quantities and weights in one line


def describe(trace: Trace) -> str:
    """One line: the sizes, how many quantities there are, and which of them and of the weights were edited."""
    sizes = ", ".join(f"{AXES[a].symbol}={n}" for a in SIZES if (n := trace.sizes[a]))
    named, more = trace.edited[:MOST_NAMED], len(trace.edited) - MOST_NAMED
    edited = f", edited: {', '.join(named)}{f' and {more} more' if more > 0 else ''}" if named else ""
    return f"<Trace of a block with {sizes}: {len(trace.names)} quantities{edited}>"


def trace_html(trace: Trace) -> str:
    """A heading with the sizes, and a row for each quantity: what it is, its shape, its numbers or their range."""
    rows = [
        (
            str(QUANTITIES[name].stage or "in"), name, QUANTITIES[name].title, symbolic_shape(trace.axes(name)),
            "×".join(map(str, trace.shape(name))), _values(trace, name),
        )
        for name in trace.names
    ]  # fmt: skip
    sizes = ", ".join(f"{AXES[a].symbol} = {trace.sizes[a]}" for a in SIZES if a != "F" or trace.sizes[a])
    changed = f" Edited: {', '.join(trace.edited)}." if trace.edited else ""
    return f"<p><b>One run of a block</b> with {escape(sizes)}.{escape(changed)}</p>{html_table(HEAD, rows)}"


def _values(trace: Trace, name: str) -> str:
    if name in trace.recomputed:
        return "computed on demand"
    values = trace.tensor(name).detach()
    edited = ", edited" if name in trace.edited else ""
    if not values.numel():
        return "none"
    if values.numel() <= FEW:
        return ", ".join(f"{x:.4g}" for x in values.flatten().tolist()) + edited
    finite = values[values.isfinite()]
    if not finite.numel():
        return f"none finite{edited}"
    hidden = values.numel() - finite.numel()
    odd = f", {hidden} not finite" if hidden else ""
    return f"{float(finite.min()):.4g} to {float(finite.max()):.4g}{odd}{edited}"
