"""Every quantity of the block, declared once.

Purpose: for each intermediate, its stage, axes, symbol, colour role, cost, and how ONE CELL of it follows from
cells of others. The ledger, hover texts, cell inspector, block map and many tests are read from this table.
Must not know: torch, how the model is written, the page.

Sources: attention, Vaswani et al. 2017 §3.2; RoPE, Su et al. 2021 §3.4 (rotate-half pairing as in LLaMA, Touvron et
al. 2023 §2.2); RMSNorm, Zhang & Sennrich 2019 §4; SwiGLU, Shazeer 2020 §2; grouped queries, Ainslie et al. 2023 §2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TypeAlias

from explorer import formulas as f
from explorer.expression import Expr
from explorer.messages import either, say

Sizes: TypeAlias = Mapping[str, int]


Formula: TypeAlias = Callable[..., Expr]  # (cells of the run, *index of one cell) -> the expression that made it


@dataclass(frozen=True)
class Quantity:
    """One named tensor of the block.

    name:    the tap's name and the key of a Trace
    stage:   1–8; 0 for what the block is given
    axes:    letters of explorer.axes, heads first
    latex:   its symbol
    title:   a few words
    role:    colour role: resid, q, k, v, score, prob, attn, ffn
    scale:   "signed" (diverging around 0), "unit" (0 to 1) or "index" (whole numbers, not a magnitude)
    inputs:  the quantities and weights it is computed from, dense and with experts; W_GATE and the like stand for an
             expert's own
    mixes:   the axis letter that is summed away when one cell is made, "" for none
    formula: how one cell is made; None for what the block is given
    flops:   floating-point operations for the whole tensor, counting a multiply-add as 2 (leading terms only)
    alias:   the quantity whose memory this shares when no cache is used, "" for none
    only:    "" always, "dense" or "moe"
    """

    name: str
    stage: int
    axes: tuple[str, ...]
    latex: str
    title: str
    role: str
    scale: str = "signed"
    inputs: tuple[str, ...] = ()
    mixes: str = ""
    formula: Formula | None = None
    flops: Callable[[Sizes], int] = field(default=lambda n: 0, repr=False)
    alias: str = ""
    only: str = ""


@dataclass(frozen=True)
class Weight:
    """One learned tensor, by its name in the block's state_dict; axes as stored ([out, in])."""

    name: str
    stage: int
    axes: tuple[str, ...]
    latex: str
    title: str
    role: str


WQ, WK, WV, WO = (f"self_attn.{x}_proj.weight" for x in "qkvo")
Q_GAMMA, K_GAMMA = "self_attn.q_norm.weight", "self_attn.k_norm.weight"
NORM1, NORM2 = "input_layernorm.weight", "post_attention_layernorm.weight"
W_GATE, W_UP, W_DOWN = (f"mlp.{x}_proj.weight" for x in ("gate", "up", "down"))
W_ROUTER = "mlp.gate.weight"

WEIGHTS: dict[str, Weight] = {
    w.name: w
    for w in (
        Weight(NORM1, 1, ("D",), r"\gamma_1", "scale of the first RMSNorm", "resid"),
        Weight(WQ, 2, ("C", "D"), "W_Q", "query projection", "q"),
        Weight(WK, 2, ("Ckv", "D"), "W_K", "key projection", "k"),
        Weight(WV, 2, ("Ckv", "D"), "W_V", "value projection", "v"),
        Weight(Q_GAMMA, 2, ("Dh",), r"\gamma_q", "scale of the per-head query norm", "q"),
        Weight(K_GAMMA, 2, ("Dh",), r"\gamma_k", "scale of the per-head key norm", "k"),
        Weight(WO, 6, ("D", "C"), "W_O", "output projection", "attn"),
        Weight(NORM2, 8, ("D",), r"\gamma_2", "scale of the second RMSNorm", "resid"),
        Weight(W_GATE, 8, ("F", "D"), r"W_{\text{gate}}", "gate projection", "ffn"),
        Weight(W_UP, 8, ("F", "D"), r"W_{\text{up}}", "up projection", "ffn"),
        Weight(W_DOWN, 8, ("D", "F"), r"W_{\text{down}}", "down projection", "ffn"),
        Weight(W_ROUTER, 8, ("E", "D"), "W_r", "router", "ffn"),
    )
}

X, Q4, KV4, SCORES = ("B", "T", "D"), ("B", "H", "T", "Dh"), ("B", "Hkv", "T", "Dh"), ("B", "H", "Tq", "Tk")
HIDDEN, SLOT_F, SLOT = ("B", "T", "F"), ("B", "T", "k", "F"), ("B", "T", "k")


def _count(letters: str, each: int = 1) -> Callable[[Sizes], int]:
    """`each` operations for every combination of the axes in `letters` (separated by blanks)."""

    def flops(sizes: Sizes) -> int:
        total = each
        for letter in letters.split():
            total *= sizes[letter]
        return total

    return flops


def _ffn_out_flops(sizes: Sizes) -> int:
    """The down projection, or with experts the weighted sum of their answers."""
    return _count("B T k D" if sizes["E"] else "B T F D", 2)(sizes)


QUANTITIES: dict[str, Quantity] = {
    q.name: q
    for q in (
        # What the block is given.
        Quantity("resid_pre", 0, X, "X", "residual stream entering the block", "resid"),
        Quantity("past_k", 0, ("B", "Hkv", "P", "Dh"), r"K_{\text{past}}", "cached keys, already rotated", "k"),
        Quantity("past_v", 0, ("B", "Hkv", "P", "Dh"), r"V_{\text{past}}", "cached values", "v"),
        Quantity("rope_cos", 0, ("T", "Dh"), r"\cos m\theta", "RoPE cosines of this call's positions", "resid"),
        Quantity("rope_sin", 0, ("T", "Dh"), r"\sin m\theta", "RoPE sines of this call's positions", "resid"),
        # 1 Normalize.
        Quantity("attn_norm", 1, X, r"\bar X", "normalized stream", "resid", inputs=("resid_pre", NORM1),
                 formula=f.attn_norm, flops=_count("B T D", 4)),
        # 2 Project and split into heads.
        Quantity("q", 2, Q4, "Q", "queries", "q", inputs=("attn_norm", WQ), mixes="D",
                 formula=f.q, flops=_count("B T D C", 2)),
        Quantity("k", 2, KV4, "K", "keys", "k", inputs=("attn_norm", WK), mixes="D",
                 formula=f.k, flops=_count("B T D Ckv", 2)),
        Quantity("v", 2, KV4, "V", "values", "v", inputs=("attn_norm", WV), mixes="D",
                 formula=f.v, flops=_count("B T D Ckv", 2)),
        Quantity("q_norm", 2, Q4, r"\hat Q", "queries, normalized per head", "q", inputs=("q", Q_GAMMA),
                 formula=f.q_norm, flops=_count("B T C", 4)),
        Quantity("k_norm", 2, KV4, r"\hat K", "keys, normalized per head", "k", inputs=("k", K_GAMMA),
                 formula=f.k_norm, flops=_count("B T Ckv", 4)),
        # 3 Rotate.
        Quantity("q_rot", 3, Q4, "Q'", "rotated queries", "q", inputs=("q_norm", "rope_cos", "rope_sin"),
                 formula=f.q_rot, flops=_count("B T C", 3)),
        Quantity("k_rot", 3, KV4, "K'", "rotated keys", "k", inputs=("k_norm", "rope_cos", "rope_sin"),
                 formula=f.k_rot, flops=_count("B T Ckv", 3)),
        Quantity("present_k", 3, ("B", "Hkv", "Tk", "Dh"), r"K'_{\text{all}}", "keys, cached ones first", "k",
                 inputs=("past_k", "k_rot"), formula=f.present_k, alias="k_rot"),
        Quantity("present_v", 3, ("B", "Hkv", "Tk", "Dh"), r"V_{\text{all}}", "values, cached ones first", "v",
                 inputs=("past_v", "v"), formula=f.present_v, alias="v"),
        # 4 Score and mask.
        Quantity("scores", 4, SCORES, "S", "scores: each query against each key", "score",
                 inputs=("q_rot", "present_k"), mixes="Dh", formula=f.scores, flops=_count("B H Tq Tk Dh", 2)),
        Quantity("masked_scores", 4, SCORES, "A", "scores with the mask added", "score", inputs=("scores",),
                 formula=f.masked_scores, flops=_count("B H Tq Tk")),
        # 5 Softmax and blend.
        Quantity("probs", 5, SCORES, "P", "attention probabilities", "prob", "unit", inputs=("masked_scores",),
                 mixes="Tk", formula=f.probs, flops=_count("B H Tq Tk", 3)),
        Quantity("heads", 5, ("B", "H", "Tq", "Dh"), "O", "blended values, one row a query", "v",
                 inputs=("probs", "present_v"), mixes="Tk", formula=f.heads, flops=_count("B H Tq Tk Dh", 2)),
        # 6 Concatenate and project.
        Quantity("concat", 6, ("B", "T", "C"), r"\text{concat}(O)", "heads side by side", "attn", inputs=("heads",),
                 formula=f.concat),
        Quantity("attn_out", 6, X, r"O_{\text{attn}}", "attention update", "attn", inputs=("concat", WO), mixes="C",
                 formula=f.attn_out, flops=_count("B T C D", 2)),
        # 7 First residual.
        Quantity("resid_mid", 7, X, "Y", "stream after attention", "resid", inputs=("resid_pre", "attn_out"),
                 formula=f.resid_mid, flops=_count("B T D")),
        # 8 Feed-forward and second residual.
        Quantity("ffn_norm", 8, X, r"\bar Y", "normalized stream", "resid", inputs=("resid_mid", NORM2),
                 formula=f.ffn_norm, flops=_count("B T D", 4)),
        Quantity("gate", 8, HIDDEN, "G", "gate before SiLU", "ffn", inputs=("ffn_norm", W_GATE), mixes="D",
                 formula=f.gate, flops=_count("B T D F", 2), only="dense"),
        Quantity("up", 8, HIDDEN, "U", "what the gate lets through", "ffn", inputs=("ffn_norm", W_UP), mixes="D",
                 formula=f.up, flops=_count("B T D F", 2), only="dense"),
        Quantity("hidden", 8, HIDDEN, r"\text{SiLU}(G)\odot U", "gated hidden features", "ffn", inputs=("gate", "up"),
                 formula=f.hidden, flops=_count("B T F", 5), only="dense"),
        Quantity("router_logits", 8, ("B", "T", "E"), "R", "router scores", "ffn", inputs=("ffn_norm", W_ROUTER),
                 mixes="D", formula=f.router_logits, flops=_count("B T D E", 2), only="moe"),
        Quantity("router_probs", 8, ("B", "T", "E"), r"\text{softmax}(R)", "router probabilities", "prob", "unit",
                 inputs=("router_logits",), mixes="E", formula=f.router_probs, flops=_count("B T E", 3), only="moe"),
        Quantity("expert_index", 8, SLOT, "e", "experts a token is sent to", "ffn", "index", inputs=("router_probs",),
                 formula=f.expert_index, only="moe"),
        Quantity("expert_weight", 8, SLOT, "w", "share of each chosen expert", "ffn", "unit",
                 inputs=("router_probs", "expert_index"), formula=f.expert_weight, flops=_count("B T k", 2),
                 only="moe"),
        Quantity("expert_gate", 8, SLOT_F, "G_e", "gate of the chosen expert, before SiLU", "ffn",
                 inputs=("ffn_norm", "expert_index", W_GATE), mixes="D", formula=f.expert_gate,
                 flops=_count("B T k D F", 2), only="moe"),
        Quantity("expert_up", 8, SLOT_F, "U_e", "what that gate lets through", "ffn",
                 inputs=("ffn_norm", "expert_index", W_UP), mixes="D", formula=f.expert_up,
                 flops=_count("B T k D F", 2), only="moe"),
        Quantity("expert_hidden", 8, SLOT_F, r"\text{SiLU}(G_e)\odot U_e", "gated hidden features of that expert",
                 "ffn", inputs=("expert_gate", "expert_up"), formula=f.expert_hidden,
                 flops=_count("B T k F", 5), only="moe"),
        Quantity("expert_out", 8, ("B", "T", "k", "D"), "F_e", "that expert's answer", "ffn",
                 inputs=("expert_hidden", "expert_index", W_DOWN), mixes="F", formula=f.expert_out,
                 flops=_count("B T k F D", 2), only="moe"),
        Quantity("ffn_out", 8, X, "F", "feed-forward update", "ffn", mixes="F",
                 inputs=("hidden", W_DOWN, "expert_weight", "expert_out"), formula=f.ffn_out, flops=_ffn_out_flops),
        Quantity("resid_post", 8, X, r"X_{\text{next}}", "residual stream leaving the block", "resid",
                 inputs=("resid_mid", "ffn_out"), formula=f.resid_post, flops=_count("B T D")),
    )
}  # fmt: skip

GIVEN = tuple(q.name for q in QUANTITIES.values() if q.stage == 0)
SCORE_TAPS = ("scores", "masked_scores", "probs")
LONGEST_NAME = 60
EXPERT_WEIGHT = re.compile(r"mlp\.experts\.(0|[1-9][0-9]{0,3})\.(gate|up|down)_proj\.weight")


class UnknownName(KeyError):
    """A quantity or weight name that does not exist; the message names near ones and all."""

    def __str__(self) -> str:
        return str(self.args[0])


def near_names(asked: str, known: Collection[str]) -> list[str]:
    """At most three of `known` that were probably meant: those with the parts asked for between their dots ("q_proj" in
    "self_attn.q_proj.weight"), else those spelt alike, as a whole or in as many of their last parts.
    """
    if whole := [name for name in known if f".{asked}." in f".{name}."]:
        return whole[:3]
    parts = asked.count(".") + 1
    ends = {".".join(name.split(".")[-parts:]): name for name in reversed([*known])} | {name: name for name in known}
    near = get_close_matches(asked, ends, n=6, cutoff=0.5)
    return list(dict.fromkeys(ends[end] for end in near))[:3]


def unknown_name(name: str, known: list[str], listed: bool = True, also: Collection[str] = ()) -> UnknownName:
    """The error to raise for `name`, with what was probably meant, of `known` or `also`. listed: it names all that is
    known.
    """
    asked = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
    near = near_names(asked, [*known, *also])
    hint = say(" Did you mean {near}?", near=either(*map(repr, near))) if near else ""
    if not listed:
        return UnknownName(
            say(
                "No quantity or weight is named {asked!r}.{hint} The shape ledger lists every quantity, and each stage "
                "shows its weights.",
                asked=asked, hint=hint,
            )
        )  # fmt: skip
    return UnknownName(
        say(
            "No quantity or weight is named {asked!r}.{hint} Known: {known}.",
            asked=asked, hint=hint, known=", ".join(known),
        )
    )  # fmt: skip


def expert_weight_name(expert: int, part: str) -> str:
    """The state_dict name of one expert's projection; part is gate, up or down."""
    return f"mlp.experts.{expert}.{part}_proj.weight"


def weight_of(name: str) -> Weight:
    """The declaration of a weight by state_dict name; experts share the dense feed-forward's declarations.

    Raises UnknownName.
    """
    if name in WEIGHTS:
        return WEIGHTS[name]
    if of_expert := EXPERT_WEIGHT.fullmatch(name):
        number, part = of_expert.groups()
        base = WEIGHTS[f"mlp.{part}_proj.weight"]
        latex = f"{base.latex}^{{({number})}}"
        return Weight(name, base.stage, base.axes, latex, f"expert {number}: {base.title}", base.role)
    raise unknown_name(name, [*QUANTITIES, *WEIGHTS], listed=False)
