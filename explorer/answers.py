"""What the command line and the HTTP API answer: a run, its ledger, a figure, as plain data.

Purpose: RunSpec -> dictionaries of text, numbers and lists that are JSON as they are.
Must not know: gradio, argparse, how an answer travels.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from difflib import get_close_matches
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from explorer import link
from explorer.asked import as_settings
from explorer.axes import AXES
from explorer.capture import CaptureError, TooLarge, Trace
from explorer.quantities import QUANTITIES, weight_of
from explorer.run import run
from explorer.spec import RunSpec, SpecError

Answer = dict[str, Any]


def traced(spec: RunSpec) -> Trace:
    """The run. Raises SpecError, also where only the block itself finds that something does not fit."""
    try:
        return run(spec)
    except CaptureError as error:
        raise SpecError({"": str(error)}) from None


def trace(spec: RunSpec, only: Iterable[str] = (), most: int | None = None) -> Answer:
    """A run: {"link", "settings", "sizes", "edited", "quantities": {name: {"title", "stage", "axes", "shape", "dtype",
    "values"}}}; values are nested lists, with "NaN", "Inf" and "-Inf" for what is not finite.

    only: names of quantities and weights; all quantities when empty. most: numbers allowed in the answer.
    Raises SpecError.
    """
    done = traced(spec)
    names = chosen(done, only)
    cells = sum(int(np.prod(_shape(done, name))) for name in names)
    if most is not None and cells > most:
        raise SpecError(
            {"only": f"The answer would hold {cells:,} numbers; at most {most:,} are sent. Name fewer quantities."}
        )
    return {**_head(done), "edited": list(done.edited), "quantities": {name: _quantity(done, name) for name in names}}


def chosen(done: Trace, only: Iterable[str]) -> list[str]:
    """The names of quantities and weights asked for, each once; all quantities when none is. Raises SpecError."""
    names = list(dict.fromkeys(only)) or list(done.names)
    unknown = [name for name in names if name not in done and name not in done.weights]
    if unknown:
        known, wrong = (*done.names, *done.weights), str(unknown[0])[:60]
        near = get_close_matches(wrong, known, n=1, cutoff=0.5)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise SpecError({"only": f"This run has no {wrong!r}.{hint} It has {', '.join(known)}."})
    return names


def values(done: Trace, name: str) -> NDArray[Any]:
    """A quantity or weight of a run as one array. Raises SpecError for scores too large to be computed at once."""
    try:
        return done[name] if name in done else done.weights[name]
    except TooLarge as error:
        raise SpecError({"only": str(error)}) from None


def ledger(spec: RunSpec) -> Answer:
    """{"link", "settings", "sizes", "rows": [one a quantity: name, stage, axes, shape, …], "bytes", "flops"}."""
    done = traced(spec)
    rows = done.ledger()
    return {
        **_head(done),
        "rows": [{**asdict(row), "axes": list(row.axes), "shape": list(row.shape)} for row in rows],
        "bytes": rows.bytes,
        "flops": rows.flops,
    }


def figure(spec: RunSpec, name: str, row: int = 0, head: int = 0, lang: str = "en") -> Answer:
    """{"link", "settings", "id", "title", "text", "data", "layout"}: a plotly figure and the same in words.

    row, head: which batch row and head it shows; lang: "en" or "zh". Raises SpecError for a name that this run has no
    figure of.
    """
    from explorer.stages.figures import build

    done = traced(spec)
    try:
        drawn = build(done, name, row, head, lang)
    except (LookupError, ValueError) as error:
        raise SpecError({"figure": str(error.args[0])}) from None
    return {**_head(done), **drawn}


def numbers(array: NDArray[Any]) -> Any:
    """Nested lists of the shortest decimals that float32 tells apart; "NaN", "Inf", "-Inf" for what is not finite."""
    listed = orjson.loads(orjson.dumps(np.ascontiguousarray(array), option=orjson.OPT_SERIALIZE_NUMPY))
    if np.issubdtype(array.dtype, np.floating):
        for index in np.argwhere(~np.isfinite(array)):
            cell = listed
            for i in index[:-1]:
                cell = cell[i]
            value = array[tuple(index)]
            cell[index[-1]] = "NaN" if np.isnan(value) else "Inf" if value > 0 else "-Inf"
    return listed


def _head(done: Trace) -> Answer:
    """What every answer opens with; link is "" where the run does not fit into one."""
    spec = done.spec or RunSpec()
    try:
        query = link.encode(spec)
    except link.LinkTooLong:
        query = ""
    sizes = {letter: n for letter, n in done.sizes.items() if letter in AXES}
    return {"link": query, "settings": as_settings(spec), "sizes": sizes}


def _shape(done: Trace, name: str) -> tuple[int, ...]:
    return done.shape(name) if name in done else done.weights[name].shape


def _quantity(done: Trace, name: str) -> Answer:
    about = QUANTITIES[name] if name in done else weight_of(name)
    array = values(done, name)
    return {
        "title": about.title, "stage": about.stage, "axes": list(about.axes), "shape": list(array.shape),
        "dtype": done.dtype(name), "values": numbers(array),
    }  # fmt: skip
