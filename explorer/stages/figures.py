"""The figures of a run by name: what of a Trace goes into which drawing.

Purpose: FIGURES for the stages, notebooks, command line and API.
Must not know: how figures look (explorer.draw), the page.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any

from explorer.draw.attention import Attention, masked_scores_figure, probs_figure, shown_heads
from explorer.draw.norms import norm_figure, projections_figure
from explorer.draw.residual import Stream, Update, norms, residual_figure
from explorer.draw.rope import Turn, rope_figure
from explorer.draw.router import router_figure
from explorer.draw.updates import attn_out_figure, head_contributions, swiglu_figure
from explorer.stages.look import Look
from explorer.typed import amount

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from explorer.capture import Trace

Figure = dict[str, Any]
O_ATTN, X_NEXT, HIDDEN = "O<sub>attn</sub>", "X<sub>next</sub>", "SiLU(G)⊙U"


def norm(look: Look, lang: str = "en") -> Figure:
    """RMS of each token before and after the first RMSNorm."""
    before, after = (look.trace[name][look.b] for name in ("resid_pre", "attn_norm"))
    return norm_figure(("X", before), ("X̄", after), look.tokens, lang)


def projections(look: Look, lang: str = "en") -> Figure:
    """Length of every head's query, key and value vectors."""
    parts = [(name.upper(), look.trace[name][look.b]) for name in ("q", "k", "v")]
    return projections_figure(parts, look.tokens, lang)


def rope(look: Look, lang: str = "en", pair: int | None = None) -> Figure:
    """Feature pairs of one head before and after RoPE."""
    edited = {"rope_cos", "rope_sin"} & set(look.trace.edited)
    turns = [
        Turn(
            x.upper(), x, look.head(f"{x}_norm"), look.head(f"{x}_rot"), bool(edited) or f"{x}_rot" in look.trace.edited
        )
        for x in ("q", "k")
    ]
    return rope_figure(turns, look.angles, look.tokens, pair, lang)


def masked_scores(look: Look, lang: str = "en") -> Figure:
    """Scores after the mask, one heatmap a head."""
    return masked_scores_figure(_attention(look, "masked_scores"), lang)


def probs(look: Look, lang: str = "en") -> Figure:
    """Attention probabilities, one heatmap a head."""
    return probs_figure(_attention(look, "probs"), lang)


def _attention(look: Look, name: str) -> Attention:
    """The heads that are drawn, taken one by one so that a long run never makes all of its scores."""
    heads = list(shown_heads(look.n["H"], look.h))
    values = [look.trace.rows(name, look.b, h) for h in heads]
    return Attention(heads, values, look.future, look.padded, look.tokens, look.h)


def attn_out(look: Look, lang: str = "en") -> Figure:
    """The attention update and how much each head contributes to it."""
    w_o = look.trace.weights["self_attn.o_proj.weight"]
    shares = norms(head_contributions(look.trace["concat"][look.b], w_o, look.n["H"]))
    return attn_out_figure(look.trace["attn_out"][look.b], shares, look.tokens, lang)


def residual(look: Look, lang: str = "en") -> Figure:
    """What attention and the feed-forward each add to the residual stream."""
    streams = [("X", "resid_pre"), ("Y", "resid_mid"), (X_NEXT, "resid_post")]
    updates = [(O_ATTN, "attn", "attn_out"), ("F", "ffn", "ffn_out")]
    return residual_figure(
        [Stream(symbol, look.trace[name][look.b]) for symbol, name in streams],
        [Update(symbol, role, look.trace[name][look.b]) for symbol, role, name in updates],
        look.tokens,
        lang,
    )


def swiglu(look: Look, lang: str = "en") -> Figure:
    """Gate, up and their product in a dense feed-forward. Raises ValueError for a mixture of experts."""
    if look.trace.moe:
        raise ValueError("This run uses experts, so there is no single gate. Ask for the figure 'router' instead.")
    parts = [("G", "gate"), ("U", "up"), (HIDDEN, "hidden")]
    return swiglu_figure([(symbol, look.trace[name][look.b]) for symbol, name in parts], look.tokens, lang)


def router(look: Look, lang: str = "en") -> Figure:
    """Router probabilities and who went where. Raises ValueError for a dense feed-forward."""
    if not look.trace.moe:
        raise ValueError("This run is dense, so there is no router. Set experts, for example RunSpec(experts=4).")
    probs, index, weight = (look.trace[name][look.b] for name in ("router_probs", "expert_index", "expert_weight"))
    return router_figure(probs, index, weight, look.tokens, lang)


DRAWINGS: dict[str, Callable[..., Figure]] = {
    "norm": norm,
    "projections": projections,
    "rope": rope,
    "masked_scores": masked_scores,
    "probs": probs,
    "attention": probs,
    "attn_out": attn_out,
    "residual": residual,
    "swiglu": swiglu,
    "router": router,
}


def build(trace: Trace, name: str, b: int = 0, h: int = 0, lang: str = "en", **choices: int) -> Figure:
    """A figure as a dictionary. choices: what that figure takes besides, for example pair for "rope".

    Raises LookupError for an unknown name, ValueError where this run has no such figure.
    """
    if name not in DRAWINGS:
        near = get_close_matches(name, DRAWINGS, n=1, cutoff=0.4)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise LookupError(f"There is no figure {name!r}.{hint} Figures: {', '.join(DRAWINGS)}.")
    takes = list(signature(DRAWINGS[name]).parameters)[2:]
    if unknown := [choice for choice in choices if choice not in takes]:
        takes = ["b", "h", *takes]
        raise ValueError(f"The figure {name!r} takes no {unknown[0]!r}. It takes {', '.join(takes)}.")
    for at, letter, what in ((b, "B", "batch row"), (h, "H", "head")):
        if not 0 <= at < trace.sizes[letter]:
            raise ValueError(f"This run has no {what} {amount(at)}. Choose one from 0 to {trace.sizes[letter] - 1}.")
    return DRAWINGS[name](Look.at(trace, b, h), lang, **choices)


def figure(trace: Trace, name: str, b: int = 0, h: int = 0, lang: str = "en", **choices: int) -> go.Figure:
    """The same as a plotly Figure, which is what Trace.figure returns."""
    from explorer.draw.figure import to_plotly

    return to_plotly(build(trace, name, b, h, lang, **choices))


def _named(name: str, trace: Trace, **choices: Any) -> Figure:
    return build(trace, name, **choices)


# Name -> function of a Trace (and b, h, lang) that gives the figure as a dictionary.
FIGURES: dict[str, Callable[..., Figure]] = {name: partial(_named, name) for name in DRAWINGS}
