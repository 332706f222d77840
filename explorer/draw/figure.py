"""What all figures share: layout, panes, axes, stems, and the way to plotly's own object.

Purpose: assemble traces into one figure dictionary `{"id", "title", "text", "data", "layout"}`.
Must not know: which figure is built.

Rules that keep redrawing cheap: only heatmaps and unstacked scatters; for the same sizes the number of traces, the
lengths of their arrays and the layout stay the same, so an update changes arrays (and, in steps, `zmin`/`zmax`
or an axis range). Layouts have no template, no background and no font of their own: they take the page's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from explorer.draw.numbers import Array, plain
from explorer.draw.positions import Positions
from explorer.draw.scales import PALETTE, Figure, paint, themed

if TYPE_CHECKING:
    import plotly.graph_objects as go

Trace = dict[str, Any]
FAINT = "rgba(128,128,128,0.22)"
LINE = "rgba(128,128,128,0.55)"
DASHES = {"circle-open": "dot", "square": "dash"}  # lines that stand for lollipops with these marks
CROWD = 32  # beyond so many lollipops in a row, a line is drawn
CLEAR = "rgba(0,0,0,0)"


def layout(height: int, **more: Any) -> dict[str, Any]:
    """The common layout; `more` is added to it."""
    return {
        "height": height,
        "margin": {"l": 48, "r": 12, "t": 26, "b": 46},
        "paper_bgcolor": CLEAR,
        "plot_bgcolor": CLEAR,
        "font": {"family": "inherit", "size": 12},
        "hovermode": "closest",
        "showlegend": False,
        **more,
    }


def legend(y: float = 0.995, anchor: str = "top", inside: str = "container") -> dict[str, Any]:
    """Layout entries of a legend in one line; y is its `anchor` side, measured in the whole figure or the "paper"."""
    where = {"orientation": "h", "x": 0, "y": y, "yanchor": anchor, "yref": inside}
    return {"showlegend": True, "legend": {**where, "bgcolor": CLEAR, "itemsizing": "constant"}}


def spread(n: int, gap: float) -> list[tuple[float, float]]:
    """n domains of equal width over 0 to 1, `gap` apart."""
    width = (1 - gap * (n - 1)) / n
    return [(round(i * (width + gap), 4), round(i * (width + gap) + width, 4)) for i in range(n)]


def suffix(pane: int) -> str:
    """Plotly's axis numbering: "" for the first pane, "2" for the second."""
    return "" if pane == 0 else str(pane + 1)


def whole_axis(n: int, start: int = 0, title: str = "", most: int = 10, down: bool = False) -> dict[str, Any]:
    """An axis of whole numbers start … start+n−1 with at most about `most` ticks; `down` counts from the top."""
    low, high = start - 0.5, start + n - 0.5
    raw = max(1, int(np.ceil(n / most)))
    step = next(s * 10**p for p in range(6) for s in (1, 2, 5) if s * 10**p >= raw)
    axis: dict[str, Any] = {
        "range": [high, low] if down else [low, high],
        "tickmode": "linear",
        "tick0": 0,
        "dtick": step,
        "showgrid": False,
        "zeroline": False,
    }
    if title:
        axis["title"] = {"text": title, "standoff": 6}
    return axis


def token_axis(tokens: Positions, count: int, title: str) -> dict[str, Any]:
    """An axis across the figure over the `count` tokens of this call, labelled with their texts where there are any."""
    axis = whole_axis(count, tokens.past, title)
    step = axis["dtick"]
    return axis | tokens.axis(range(-(-tokens.past // step) * step, tokens.past + count, step))


def room(margin: dict[str, int], tokens: Positions, left: bool = False, below: bool = False) -> dict[str, int]:
    """The margins with room for tokens' texts at the left or below."""
    more = {"l": tokens.left * left, "b": tokens.below * below}
    return {side: width + more.get(side, 0) for side, width in margin.items()}


def value_axis(low: float, high: float, title: str = "") -> dict[str, Any]:
    """An axis of magnitudes with faint grid lines."""
    axis: dict[str, Any] = {
        "range": [low, high],
        "gridcolor": FAINT,
        "zerolinecolor": LINE,
        "zeroline": True,
        "nticks": 6,
    }
    if title:
        axis["title"] = {"text": title, "standoff": 6}
    return axis


def place(
    axes: dict[str, Any], pane: int, x: dict[str, Any], y: dict[str, Any], box: Sequence[Sequence[float]]
) -> None:
    """Put an x and a y axis into `axes` (a layout) as pane number `pane` over box = (x domain, y domain)."""
    s = suffix(pane)
    axes[f"xaxis{s}"] = {**x, "domain": list(box[0]), "anchor": f"y{s}"}
    axes[f"yaxis{s}"] = {**y, "domain": list(box[1]), "anchor": f"x{s}"}


def heading(pane: int, text: str) -> dict[str, Any]:
    """A title above a pane, as a layout annotation."""
    s = suffix(pane)
    where = {"xref": f"x{s} domain", "yref": f"y{s} domain", "x": 0, "y": 1, "xanchor": "left", "yanchor": "bottom"}
    return {**where, "text": text, "showarrow": False, "font": {"size": 12}}


def stems(
    name: str,
    at: Array,
    heights: Array,
    role: str,
    hover: str,
    pane: int = 0,
    shift: float = 0.0,
    called: Sequence[Any] | None = None,
    **more: Any,
) -> Trace:
    """One lollipop a value: a thin line from 0 to the value with a mark at its end, `shift` beside its place.

    at, heights: [n]. A height that is not finite leaves a gap. Beyond CROWD values one line joins their tops instead.
    `hover` may use %{customdata}: what the place is called in `called`, or the place itself.
    """
    told = np.asarray(at).tolist() if called is None else list(called)
    n = len(at)
    s, colour, symbol = suffix(pane), PALETTE["light"][role], more.pop("symbol", "circle")
    trace: Trace = {"type": "scatter", "name": name, "xaxis": f"x{s}", "yaxis": f"y{s}", "connectgaps": False}
    trace |= {"hovertemplate": hover, "line": {"color": colour, "width": 1.5}, "meta": paint(line_color=role)}
    if n > CROWD:
        line = {**trace["line"], "dash": DASHES.get(symbol, "solid")}
        crowd = {
            "mode": "lines",
            "line": line,
            "x": plain(at),
            "y": plain(heights),
            "customdata": told,
        }
        return trace | crowd | more
    x, y = np.full(3 * n, np.nan), np.full(3 * n, np.nan)
    x[0::3], x[1::3] = np.asarray(at) + shift, np.asarray(at) + shift
    y[0::3], y[1::3] = np.where(np.isfinite(np.asarray(heights, dtype=np.float64)), 0, np.nan), heights
    trace |= {
        "mode": "lines+markers",
        "x": plain(x),
        "y": plain(y),
        "customdata": [name for name in told for _ in range(3)],
    }
    trace["marker"] = {"color": colour, "size": [0, 9, 0] * n, "symbol": symbol, "opacity": 1}
    return trace | {"meta": paint(line_color=role, marker_color=role)} | more


def figure(key: str, title: str, text: str, data: list[Trace], shape: dict[str, Any]) -> Figure:
    """The figure dictionary that page, notebook and API share."""
    return {"id": key, "title": title, "text": text, "data": data, "layout": shape}


def to_plotly(fig: Figure, theme: str = "light") -> go.Figure:
    """The figure as plotly.graph_objects.Figure, with its title, for notebooks and files."""
    import plotly.graph_objects as go

    coloured = themed(fig, theme)
    shape = {**coloured["layout"], "template": "none"}
    shape["margin"] = {**shape["margin"], "t": shape["margin"]["t"] + 34}
    shape["height"] = shape["height"] + 34
    shape["title"] = {"text": fig["title"], "font": {"size": 15}, "x": 0.01, "xanchor": "left"}
    shape["font"] = {
        **shape["font"],
        "family": "system-ui, sans-serif",
        "color": "#1f2430" if theme == "light" else "#e6e9ef",
    }
    if theme == "dark":
        shape["paper_bgcolor"] = shape["plot_bgcolor"] = "#14171d"
    return go.Figure({"data": coloured["data"], "layout": shape})
