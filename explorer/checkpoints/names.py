"""From the names in a file to MiniMind's names: which stored weight, or which part of one, becomes which weight.

Layouts that are read, all of them public:
- MiniMind's own (model.layers.N.self_attn.q_proj.weight …), which Qwen3, Qwen3-MoE and Llama share name for name;
- the same without the leading "model.", as a bare base model is saved;
- fused experts, as transformers 5 holds them: experts.gate_up_proj [E, 2F, D], gate first, and experts.down_proj
  [E, D, F] (transformers, models/qwen3_moe/modeling_qwen3_moe.py, Qwen3MoeExperts);
- early MiniMind (tok_embeddings, attention.wq, feed_forward.w1 …), whose RoPE pairs feature 2i with feature 2i+1.

Must not know files or how a model is built.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from torch import Tensor

from explorer.checkpoints.report import Misshaped
from explorer.checkpoints.shapes import EMBEDDING, HEAD, Shapes, model_shapes
from explorer.checkpoints.stored import Stored
from explorer.model.config import MiniMindConfig

# Tables and masks that older files carry along; they are computed again here.
_BUFFERS = re.compile(r"(^|\.)(freqs_cos|freqs_sin|pos_cis|inv_freq|attention\.mask|causal_mask)$")
_WRAPPERS = ("module.", "_orig_mod.")  # put before every name by DataParallel and by torch.compile
_EARLY = re.compile(r"^(tok_embeddings\.|layers\.\d+\.(attention|feed_forward|attention_norm|ffn_norm)\.)")
_EARLY_TOP = {"tok_embeddings.weight": EMBEDDING, "norm.weight": "model.norm.weight", "output.weight": HEAD}
_EARLY_PARTS = {
    **{f".attention.w{part}.": f".self_attn.{part}_proj." for part in "qkvo"},
    ".attention_norm.": ".input_layernorm.",
    ".ffn_norm.": ".post_attention_layernorm.",
    ".feed_forward.": ".mlp.",
    ".w1.": ".gate_proj.",
    ".w3.": ".up_proj.",
    ".w2.": ".down_proj.",
}


@dataclass(frozen=True)
class Names:
    """The weights of a file under MiniMind's names: MiniMind's name -> name in the file.

    early: the layout is early MiniMind's. buffers: stored names that hold no weights and are left out.
    """

    stored: Mapping[str, str]
    early: bool
    buffers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Part:
    """One weight of the model: the stored weight it comes from and, if it is not that one as it is, how."""

    stored: str
    take: Callable[[Tensor], Tensor] | None = None


@dataclass(frozen=True)
class Plan:
    """Where every weight of the model comes from, and what does not fit."""

    parts: Mapping[str, Part] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    misshaped: tuple[Misshaped, ...] = ()


def minimind_names(stored: Mapping[str, Stored]) -> Names:
    """Give every stored weight MiniMind's name; a name that fits no layout is kept as it is."""
    buffers = tuple(name for name in stored if _BUFFERS.search(name))
    plain = _unwrap({name: name for name in stored if name not in buffers})
    early = any(_EARLY.match(name) for name in plain)
    if early:
        plain = _rename(plain, _from_early)
    elif "embed_tokens.weight" in plain:
        plain = _rename(plain, lambda name: name if name == HEAD else f"model.{name}")
    return Names(plain, early, buffers)


def make_plan(names: Names, stored: Mapping[str, Stored], config: MiniMindConfig) -> Plan:
    """Compare what the configuration asks for with what is stored, weight by weight."""
    wanted = model_shapes(config)
    found = {name: stored[original].shape for name, original in names.stored.items()}
    parts: dict[str, Part] = {}
    misshaped: list[Misshaped] = []
    used: set[str] = set()
    _take_experts(found, names, wanted, config, parts, misshaped, used)
    for name, shape in wanted.items():
        source = HEAD if name == EMBEDDING and name not in found and config.tie_word_embeddings else name
        if name in parts or source not in found:
            continue
        used.add(source)
        parts[name] = Part(names.stored[source], _reorder(name, config) if names.early else None)
        if found[source] != shape:
            misshaped.append(Misshaped(name, found[source], shape))
    if config.tie_word_embeddings and HEAD in found and HEAD not in used:
        used.add(HEAD)
        if found[HEAD] != wanted[EMBEDDING]:
            misshaped.append(Misshaped(HEAD, found[HEAD], wanted[EMBEDDING]))
    return Plan(
        parts,
        missing=tuple(name for name in wanted if name not in parts),
        unexpected=tuple(original for name, original in names.stored.items() if name not in used),
        misshaped=tuple(misshaped),
    )


def _take_experts(
    found: Shapes,
    names: Names,
    wanted: Shapes,
    config: MiniMindConfig,
    parts: dict[str, Part],
    misshaped: list[Misshaped],
    used: set[str],
) -> None:
    """Cut fused experts apart: one stored weight becomes one or two weights for each expert."""
    if not config.use_moe:
        return
    experts, width, hidden = config.num_experts, config.hidden_size, config.moe_intermediate_size
    fused = {
        "gate_up_proj": ((experts, 2 * hidden, width), {"gate_proj": (0, hidden), "up_proj": (hidden, 2 * hidden)}),
        "down_proj": ((experts, width, hidden), {"down_proj": (0, width)}),
    }
    for layer in range(config.num_hidden_layers):
        path = f"model.layers.{layer}.mlp.experts"
        for name, (shape, cuts) in fused.items():
            whole = f"{path}.{name}"
            if whole not in found:
                continue
            used.add(whole)
            if found[whole] != shape:
                misshaped.append(Misshaped(whole, found[whole], shape))
            for expert in range(experts):
                for projection, (start, end) in cuts.items():
                    target = f"{path}.{expert}.{projection}.weight"
                    if target in wanted and target not in found:
                        parts[target] = Part(names.stored[whole], _cut(expert, start, end))


def _cut(expert: int, start: int, end: int) -> Callable[[Tensor], Tensor]:
    """One expert's rows start … end − 1 of a fused weight [E, rows, columns]."""
    return lambda whole: whole[expert, start:end]


def _reorder(name: str, config: MiniMindConfig) -> Callable[[Tensor], Tensor] | None:
    """For q and k of early MiniMind: put features 0, 2, 4 … of each head before 1, 3, 5 …

    What were neighbours then stand Dh/2 apart, where this model pairs them. Scores sum over a head's features, so the
    same order in q and k changes none of them.
    """
    if not name.endswith(("self_attn.q_proj.weight", "self_attn.k_proj.weight")):
        return None
    head = config.head_dim
    return lambda weight: weight.reshape(-1, head // 2, 2, weight.shape[-1]).transpose(1, 2).reshape(weight.shape)


def _unwrap(plain: dict[str, str]) -> dict[str, str]:
    """Take off a prefix that every name carries."""
    for prefix in _WRAPPERS:
        if plain and all(name.startswith(prefix) for name in plain):
            plain = {name.removeprefix(prefix): original for name, original in plain.items()}
    return plain


def _rename(plain: dict[str, str], to: Callable[[str], str]) -> dict[str, str]:
    """A second weight for a name that is taken keeps the name it has, and so is reported as unexpected."""
    renamed: dict[str, str] = {}
    for name, original in plain.items():
        target = to(name)
        renamed[name if target in renamed else target] = original
    return renamed


def _from_early(name: str) -> str:
    if name in _EARLY_TOP:
        return _EARLY_TOP[name]
    if not name.startswith("layers."):
        return name
    for early, late in _EARLY_PARTS.items():
        name = name.replace(early, late)
    return f"model.{name}"
