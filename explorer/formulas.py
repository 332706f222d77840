"""How one cell of each quantity is made: one small function a quantity, in the block's order.

Purpose: the mathematics of the block, cell by cell, independent of the tensor code that computes it.
Must not know: torch, the page. Each function takes the cells of a run and an index, and returns an expression.
"""

from __future__ import annotations

import math
from typing import Protocol

from explorer.expression import Call, Expr, Num, Product, Ratio, Ref, Sum, dot, minus


class Cells(Protocol):
    """What a formula may ask about a run."""

    sizes: dict[str, int]
    norm_eps: float
    norm_topk: bool
    activation: str

    @property
    def qk_norm(self) -> bool: ...
    @property
    def moe(self) -> bool: ...

    def value(self, name: str, index: tuple[int, ...]) -> float:
        """The captured number at `index`, an edit included."""
        ...

    def computed(self, name: str, index: tuple[int, ...]) -> float:
        """The number at `index` before an edit replaced it."""
        ...


def _row(name: str, prefix: tuple[int, ...], n: int, suffix: tuple[int, ...] = ()) -> list[Ref]:
    return [Ref(name, (*prefix, j, *suffix)) for j in range(n)]


def _linear(cells: Cells, source: str, prefix: tuple[int, ...], weight: str, out: int, over: str) -> Expr:
    n = cells.sizes[over]
    return dot(_row(source, prefix, n), _row(weight, (out,), n), over)


def _rms_norm(cells: Cells, source: str, prefix: tuple[int, ...], at: int, weight: str, over: str) -> Expr:
    n = cells.sizes[over]
    squares = Sum(tuple(Product((x, x)) for x in _row(source, prefix, n)), over)
    mean_square = Sum((Ratio(squares, Num(float(n), over)), Num(cells.norm_eps, "ε")))
    return Product((Ratio(Ref(source, (*prefix, at)), Call("sqrt", mean_square)), Ref(weight, (at,))))


def _rotate(cells: Cells, source: str, b: int, h: int, t: int, j: int) -> Expr:
    """Feature j turns together with its partner half a head away (rotate-half pairing)."""
    half = cells.sizes["Dh"] // 2
    partner, sign = (j + half, -1.0) if j < half else (j - half, 1.0)
    own = Product((Ref(source, (b, h, t, j)), Ref("rope_cos", (t, j))))
    other = (Ref(source, (b, h, t, partner)), Ref("rope_sin", (t, j)))
    return Sum((own, Product(other if sign > 0 else (Num(-1.0), *other))))


def _group(cells: Cells, h: int) -> int:
    """The key/value head that query head h reads."""
    return h * cells.sizes["Hkv"] // cells.sizes["H"]


def _softmax(cells: Cells, source: str, prefix: tuple[int, ...], at: int, over: str) -> Expr:
    """exp(s_at − m) / Σ exp(s_j − m), over the entries that are not −∞; m is the largest of them."""
    row = _row(source, prefix, cells.sizes[over])
    values = [cells.value(ref.name, ref.index) for ref in row]
    allowed = [j for j, x in enumerate(values) if x != -math.inf]
    if at not in allowed:
        return Num(0.0, "exp(−∞)")
    peak = Num(max(values[j] for j in allowed), "m")
    powers = {j: Call("exp", minus(row[j], peak)) for j in allowed}
    return Ratio(powers[at], Sum(tuple(powers.values()), over))


def _gated(cells: Cells, gate: Ref, up: Ref) -> Expr:
    """SiLU(g)·u with SiLU(g) = g / (1 + exp(−g)); or ReLU(g)·u. Raises ValueError for another activation."""
    if cells.activation == "relu":
        return Product((gate, up)) if cells.value(gate.name, gate.index) > 0 else Num(0.0, "ReLU")
    if cells.activation != "silu":
        raise ValueError(f"The activation {cells.activation} is not taken apart here; silu and relu are.")
    sigmoid_below = Sum((Num(1.0), Call("exp", Product((Num(-1.0), gate)))))
    return Product((Ratio(gate, sigmoid_below), up))


def attn_norm(cells: Cells, b: int, t: int, d: int) -> Expr:
    return _rms_norm(cells, "resid_pre", (b, t), d, "input_layernorm.weight", "D")


def _projection(cells: Cells, letter: str, b: int, h: int, t: int, j: int) -> Expr:
    out = h * cells.sizes["Dh"] + j
    return _linear(cells, "attn_norm", (b, t), f"self_attn.{letter}_proj.weight", out, "D")


def q(cells: Cells, b: int, h: int, t: int, j: int) -> Expr:
    return _projection(cells, "q", b, h, t, j)


def k(cells: Cells, b: int, h: int, t: int, j: int) -> Expr:
    return _projection(cells, "k", b, h, t, j)


def v(cells: Cells, b: int, h: int, t: int, j: int) -> Expr:
    return _projection(cells, "v", b, h, t, j)


def _head_norm(cells: Cells, letter: str, b: int, h: int, t: int, j: int) -> Expr:
    if not cells.qk_norm:
        return Ref(letter, (b, h, t, j))
    return _rms_norm(cells, letter, (b, h, t), j, f"self_attn.{letter}_norm.weight", "Dh")


def q_norm(cells: Cells, b: int, h: int, t: int, j: int) -> Expr:
    return _head_norm(cells, "q", b, h, t, j)


def k_norm(cells: Cells, b: int, h: int, t: int, j: int) -> Expr:
    return _head_norm(cells, "k", b, h, t, j)


def q_rot(cells: Cells, b: int, h: int, t: int, j: int) -> Expr:
    return _rotate(cells, "q_norm", b, h, t, j)


def k_rot(cells: Cells, b: int, h: int, t: int, j: int) -> Expr:
    return _rotate(cells, "k_norm", b, h, t, j)


def _cached(cells: Cells, past: str, new: str, b: int, h: int, t: int, j: int) -> Ref:
    offset = cells.sizes["P"]
    return Ref(past, (b, h, t, j)) if t < offset else Ref(new, (b, h, t - offset, j))


def present_k(cells: Cells, b: int, h: int, t: int, j: int) -> Expr:
    return _cached(cells, "past_k", "k_rot", b, h, t, j)


def present_v(cells: Cells, b: int, h: int, t: int, j: int) -> Expr:
    return _cached(cells, "past_v", "v", b, h, t, j)


def scores(cells: Cells, b: int, h: int, i: int, j: int) -> Expr:
    n, g = cells.sizes["Dh"], _group(cells, h)
    products = dot(_row("q_rot", (b, h, i), n), _row("present_k", (b, g, j), n), "Dh")
    return Ratio(products, Call("sqrt", Num(float(n), "d_h")))


def masked_scores(cells: Cells, b: int, h: int, i: int, j: int) -> Expr:
    if cells.value("masked", (b, 0, i, j)):
        return Sum((Num(cells.value("scores", (b, h, i, j)), "S"), Num(-math.inf, "M")))
    return Sum((Ref("scores", (b, h, i, j)), Num(0.0, "M")))


def probs(cells: Cells, b: int, h: int, i: int, j: int) -> Expr:
    return _softmax(cells, "masked_scores", (b, h, i), j, "Tk")


def heads(cells: Cells, b: int, h: int, i: int, d: int) -> Expr:
    g = _group(cells, h)
    seen = [j for j in range(cells.sizes["Tk"]) if not cells.value("masked", (b, 0, i, j))
            or cells.value("probs", (b, h, i, j)) != 0]  # fmt: skip
    return dot([Ref("probs", (b, h, i, j)) for j in seen], [Ref("present_v", (b, g, j, d)) for j in seen], "Tk")


def concat(cells: Cells, b: int, t: int, c: int) -> Expr:
    head, feature = divmod(c, cells.sizes["Dh"])
    return Ref("heads", (b, head, t, feature))


def attn_out(cells: Cells, b: int, t: int, d: int) -> Expr:
    return _linear(cells, "concat", (b, t), "self_attn.o_proj.weight", d, "C")


def resid_mid(cells: Cells, b: int, t: int, d: int) -> Expr:
    return Sum((Ref("resid_pre", (b, t, d)), Ref("attn_out", (b, t, d))))


def ffn_norm(cells: Cells, b: int, t: int, d: int) -> Expr:
    return _rms_norm(cells, "resid_mid", (b, t), d, "post_attention_layernorm.weight", "D")


def gate(cells: Cells, b: int, t: int, n: int) -> Expr:
    return _linear(cells, "ffn_norm", (b, t), "mlp.gate_proj.weight", n, "D")


def up(cells: Cells, b: int, t: int, n: int) -> Expr:
    return _linear(cells, "ffn_norm", (b, t), "mlp.up_proj.weight", n, "D")


def hidden(cells: Cells, b: int, t: int, n: int) -> Expr:
    return _gated(cells, Ref("gate", (b, t, n)), Ref("up", (b, t, n)))


def router_logits(cells: Cells, b: int, t: int, e: int) -> Expr:
    return _linear(cells, "ffn_norm", (b, t), "mlp.gate.weight", e, "D")


def router_probs(cells: Cells, b: int, t: int, e: int) -> Expr:
    return _softmax(cells, "router_logits", (b, t), e, "E")


def _chosen(cells: Cells, b: int, t: int, slot: int) -> int:
    return int(cells.value("expert_index", (b, t, slot)))


def expert_index(cells: Cells, b: int, t: int, slot: int) -> Expr:
    """The number of the expert with the largest probability for slot 0, the second largest for slot 1, and so on.

    A choice, not arithmetic: it has no derivative, and the expression is the chosen number itself.
    """
    probabilities = [cells.value("router_probs", (b, t, e)) for e in range(cells.sizes["E"])]
    wanted = sorted(probabilities, reverse=True)[slot]
    alike = [e for e, p in enumerate(probabilities) if p == wanted]
    taken = int(cells.computed("expert_index", (b, t, slot)))  # which of equals comes first is the kernel's choice
    return Num(float(taken if taken in alike or not alike else alike[0]), "arg max")


def expert_weight(cells: Cells, b: int, t: int, slot: int) -> Expr:
    own = Ref("router_probs", (b, t, _chosen(cells, b, t, slot)))
    if not cells.norm_topk:
        return own
    chosen = [Ref("router_probs", (b, t, _chosen(cells, b, t, s))) for s in range(cells.sizes["k"])]
    return Ratio(own, Sum((Sum(tuple(chosen), "k"), Num(1e-20))))


def _expert(cells: Cells, source: str, prefix: tuple[int, ...], part: str, slot: int, out: int, over: str) -> Expr:
    expert = _chosen(cells, prefix[0], prefix[1], slot)
    return _linear(cells, source, prefix, f"mlp.experts.{expert}.{part}_proj.weight", out, over)


def expert_gate(cells: Cells, b: int, t: int, slot: int, n: int) -> Expr:
    return _expert(cells, "ffn_norm", (b, t), "gate", slot, n, "D")


def expert_up(cells: Cells, b: int, t: int, slot: int, n: int) -> Expr:
    return _expert(cells, "ffn_norm", (b, t), "up", slot, n, "D")


def expert_hidden(cells: Cells, b: int, t: int, slot: int, n: int) -> Expr:
    return _gated(cells, Ref("expert_gate", (b, t, slot, n)), Ref("expert_up", (b, t, slot, n)))


def expert_out(cells: Cells, b: int, t: int, slot: int, d: int) -> Expr:
    return _expert(cells, "expert_hidden", (b, t, slot), "down", slot, d, "F")


def ffn_out(cells: Cells, b: int, t: int, d: int) -> Expr:
    if not cells.moe:
        return _linear(cells, "hidden", (b, t), "mlp.down_proj.weight", d, "F")
    slots = range(cells.sizes["k"])
    answers = [Ref("expert_out", (b, t, s, d)) for s in slots]
    return dot([Ref("expert_weight", (b, t, s)) for s in slots], answers, "k")


def resid_post(cells: Cells, b: int, t: int, d: int) -> Expr:
    return Sum((Ref("resid_mid", (b, t, d)), Ref("ffn_out", (b, t, d))))
