"""From a config.json, or from shapes alone, to a MiniMindConfig.

Read are the configurations of MiniMind (all versions), Qwen3, Qwen3-MoE and Llama. MiniMind-3 is published as the
second and third, MiniMind2 as the fourth. What such a configuration may ask for and MiniMind does not compute is
refused in words; what has no effect is left out. Must not know files or tensors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from explorer.checkpoints.report import CheckpointError
from explorer.checkpoints.rope_settings import rope_fields
from explorer.checkpoints.shapes import EMBEDDING, HEAD, Shapes, model_shapes
from explorer.model.config import ConfigError, MiniMindConfig

FIELDS = frozenset(field.name for field in fields(MiniMindConfig))
_OWN = frozenset(("angle_step", "qk_norm", "inference_rope_scaling", "use_moe", "dropout", "flash_attn"))
KINDS = {"minimind": "MiniMind", "qwen3": "Qwen3", "qwen3_moe": "Qwen3-MoE", "llama": "Llama"}

# Early MiniMind (its class was LMConfig) and transformers have other words for the same fields.
_SYNONYMS = {
    "dim": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "n_kv_heads": "num_key_value_heads",
    "hidden_dim": "intermediate_size",
    "norm_eps": "rms_norm_eps",
    "max_seq_len": "max_position_embeddings",
    "num_local_experts": "num_experts",
    "n_routed_experts": "num_experts",
    "aux_loss_alpha": "router_aux_loss_coef",
}
# Keys that would change the computation, with the values under which they do not.
_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "attention_bias": (False, None),
    "mlp_bias": (False, None),
    "decoder_sparse_step": (1, None),
    "mlp_only_layers": ([], None),
    "quantization_config": (None,),
    "scoring_func": ("softmax", None),
    "partial_rotary_factor": (1, None),
}
_HF_DEFAULTS: Mapping[str, Any] = {
    "rms_norm_eps": 1e-6,
    "rope_theta": 1e4,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}
# What each kind means when it says nothing (transformers 5.24, configuration_*.py; MiniMind's own class).
_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "minimind": {},
    "qwen3": {**_HF_DEFAULTS, "qk_norm": True, "use_moe": False},
    "qwen3_moe": {**_HF_DEFAULTS, "qk_norm": True, "use_moe": True, "norm_topk_prob": False},
    "llama": {**_HF_DEFAULTS, "qk_norm": False, "use_moe": False},
}
_EARLY_DEFAULTS = {"rms_norm_eps": 1e-5, "qk_norm": False}
# Keys with no effect on the forward pass here; anything else that is unknown is named in a note.
_SILENT = re.compile(
    r"^(_.*|architectures|auto_map|model_type|transformers_version|(torch_)?dtype|initializer_range|use_cache"
    r"|attention_dropout|max_window_layers|layer_types|(use_)?sliding_window|rope_(theta|scaling|parameters)"
    r"|output_.*|pretraining_tp|seq_aux|multiple_of|n_shared_experts|return_dict|.*_token_id|tokenizer_class)$"
)


@dataclass(frozen=True)
class Reading:
    """A configuration, where it came from in one word, and what was assumed on the way."""

    config: MiniMindConfig
    kind: str
    notes: tuple[str, ...]


def read_config(
    given: Mapping[str, Any] | None, told: Mapping[str, Any], shapes: Shapes, early: bool, tied: bool
) -> Reading:
    """The configuration of a checkpoint whose weights have these names and shapes.

    given: the config.json, None where there is none. told: MiniMindConfig fields from the caller, which win. early: the
    weights lie in early MiniMind's layout. tied: what the files say about the head, used where the configuration is
    silent. Raises CheckpointError for a kind, a value or a mechanism that MiniMind does not have, and where shapes
    alone leave something open.
    """
    unknown = sorted(set(told) - FIELDS)
    if unknown:
        raise CheckpointError(f"config has no field {unknown[0]!r}; the fields are {', '.join(sorted(FIELDS))}")
    try:
        return _read(given, told, shapes, early, tied)
    except CheckpointError:
        raise
    except (ConfigError, TypeError, ValueError, ArithmeticError) as problem:
        raise CheckpointError(f"the configuration cannot be used: {problem}") from problem


def _read(given: Mapping[str, Any] | None, told: Mapping[str, Any], shapes: Shapes, early: bool, tied: bool) -> Reading:
    notes: list[str] = []
    kind = "minimind" if given is None else _kind(given)
    known = {**({} if given is None else _fields(given, kind, notes)), **told}
    seen = _from_shapes(shapes, known)
    if given is None:
        _check_told(known, seen, shapes, early)
    defaults = {**_DEFAULTS[kind], **(_EARLY_DEFAULTS if early else {})}
    if kind == "minimind" and not seen["qk_norm"]:
        defaults["rms_norm_eps"] = 1e-5  # MiniMind2's value
    config = MiniMindConfig(**{"tie_word_embeddings": tied, **seen, **defaults, **known})
    if given is None:
        notes.append(_assumed(config, known))
    if kind == "minimind" and not config.qk_norm:
        notes.append("the weights have no q_norm and k_norm (MiniMind2 has none), so qk_norm is off.")
    if early:
        notes.append("early MiniMind's layout: q and k were reordered from neighbouring pairs to half-apart pairs.")
    return Reading(config, "early MiniMind" if early else KINDS[kind], tuple(notes))


def _kind(given: Mapping[str, Any]) -> str:
    kind = given.get("model_type", "minimind")
    if kind not in KINDS:
        raise CheckpointError(
            f'config.json is of a model of type "{kind}"; allowed are {", ".join(KINDS)}. '
            "Choose a MiniMind checkpoint, or one of these layouts"
        )
    return str(kind)


def _fields(given: Mapping[str, Any], kind: str, notes: list[str]) -> dict[str, Any]:
    """The MiniMindConfig fields that a config.json states; refuses what MiniMind does not compute."""
    for name, allowed in _NEUTRAL.items():
        if given.get(name) not in allowed:
            raise CheckpointError(f"config.json has {name}={given[name]!r}, which MiniMind does not compute")
    _refuse_windows(given)
    _refuse_shared_experts(given)
    said: dict[str, Any] = {}
    ignored = []
    for key, value in given.items():
        name = _SYNONYMS.get(key, key)
        if name in (FIELDS if kind == "minimind" else FIELDS - _OWN) and not name.startswith("rope_"):
            if name not in said and (value is not None or name.endswith("_token_id")):
                said[name] = value
        elif not _SILENT.match(key) and value not in (None, False, [], {}, ""):
            ignored.append(key)
    if "n_routed_experts" in given:  # MiniMind2
        if not said.get("use_moe"):  # its dense configurations describe experts that are not there
            said = {name: value for name, value in said.items() if not _is_moe(name)}
        elif said.get("num_experts_per_tok") == 1:  # it renormalised only where several experts share a token
            said["norm_topk_prob"] = False
    if ignored:
        notes.append(f"config.json also says {', '.join(sorted(ignored))}; this has no counterpart here.")
    return said | rope_fields(given, own=kind == "minimind")


def _is_moe(name: str) -> bool:
    return "expert" in name or name in ("moe_intermediate_size", "norm_topk_prob", "router_aux_loss_coef")


def _refuse_windows(given: Mapping[str, Any]) -> None:
    """Sliding windows count only where they are switched on; some configurations carry an unused length along."""
    layers = given.get("layer_types") or []
    slides = given.get("use_sliding_window") and given.get("sliding_window") is not None
    odd = sorted({str(layer) for layer in layers} - {"full_attention"}) if isinstance(layers, list) else ["?"]
    if slides or odd:
        what = f"use_sliding_window with sliding_window={given.get('sliding_window')}" if slides else f"layers of {odd}"
        raise CheckpointError(f"config.json has {what}; MiniMind's attention always sees the whole text")


def _refuse_shared_experts(given: Mapping[str, Any]) -> None:
    if given.get("use_moe") and given.get("n_shared_experts"):
        raise CheckpointError(
            f"config.json has n_shared_experts={given['n_shared_experts']!r}: MiniMind2's mixture of experts adds "
            "shared experts, which MiniMind-3's does not have; choose a dense MiniMind2 or a MiniMind-3 checkpoint"
        )


# ---------------------------------------------------------------------------------------------- what shapes tell


def _from_shapes(shapes: Shapes, known: Mapping[str, Any]) -> dict[str, Any]:
    """Every field that the shapes of the weights settle, given those already known."""
    layers = sorted({int(found[1]) for name in shapes if (found := re.match(r"model\.layers\.(\d{1,6})\.", name))})
    embedding = _matrix(shapes, EMBEDDING) or _matrix(shapes, HEAD)
    if embedding is None or not layers:
        raise CheckpointError(
            "these weights are not a language model of a known layout: "
            + ("no token embedding" if embedding is None else "no layers")
            + f" among {len(shapes)} names such as {', '.join(list(shapes)[:3]) or '(none)'}"
        )
    first = f"model.layers.{layers[0]}."
    vocab, width = embedding
    seen: dict[str, Any] = {"vocab_size": vocab, "hidden_size": width, "num_hidden_layers": layers[-1] + 1}
    seen["qk_norm"] = any(name.endswith(("q_norm.weight", "k_norm.weight")) for name in shapes)
    gate = _matrix(shapes, f"{first}mlp.gate_proj.weight")
    if gate is not None:
        seen["intermediate_size"] = gate[0]
    router = _matrix(shapes, f"{first}mlp.gate.weight")
    if router is not None:
        seen |= {"use_moe": True, "num_experts": router[0]}
        expert = _matrix(shapes, f"{first}mlp.experts.0.gate_proj.weight")
        fused = shapes.get(f"{first}mlp.experts.down_proj", ())
        if expert is not None:
            seen["moe_intermediate_size"] = expert[0]
        elif len(fused) == 3:
            seen["moe_intermediate_size"] = fused[2]
    return seen | _heads(shapes, first, known)


def _heads(shapes: Shapes, first: str, known: Mapping[str, Any]) -> dict[str, int]:
    """Heads and features per head. q_norm's size is Dh; without it one of the two numbers must be known."""
    queries, keys = (_matrix(shapes, f"{first}self_attn.{name}_proj.weight") for name in "qk")
    if queries is None or keys is None:
        return {}
    norm = shapes.get(f"{first}self_attn.q_norm.weight", ())
    heads, head = known.get("num_attention_heads"), known.get("head_dim") or (norm[0] if len(norm) == 1 else None)
    if head is None and isinstance(heads, int) and heads > 0:
        if queries[0] % heads:
            raise CheckpointError(f"num_attention_heads={heads} cannot be right: q_proj has {queries[0]} rows to share")
        head = queries[0] // heads
    if not isinstance(head, int) or head < 1 or queries[0] % head or keys[0] % head:
        return {}
    return {"head_dim": head, "num_attention_heads": queries[0] // head, "num_key_value_heads": keys[0] // head}


def _check_told(known: Mapping[str, Any], seen: Mapping[str, Any], shapes: Shapes, early: bool) -> None:
    """Without a config.json, refuse to guess what the shapes leave open and a wrong guess would spoil silently."""
    if "num_attention_heads" not in {**seen, **known}:
        _check_attention(shapes)
        raise CheckpointError(
            "there is no config.json, and without q_norm the shapes do not tell how many heads there are; "
            'put a config.json beside the file, with at least {"num_attention_heads": 8} (MiniMind2\'s number)'
        )
    if early and "rope_theta" not in known:
        raise CheckpointError(
            "there is no config.json, and weights of early MiniMind do not tell their RoPE base; put a config.json "
            'beside the file, with at least {"rope_theta": 1e6} for MiniMind2, 1e4 for MiniMind 1'
        )


def _check_attention(shapes: Shapes) -> None:
    """Refuse weights without queries or keys, naming first what no layout has; of layers the first that has it."""
    one = MiniMindConfig(num_hidden_layers=1, tie_word_embeddings=False)
    usual = model_shapes(one).keys() | model_shapes(replace(one, use_moe=True)).keys()
    there = {re.sub(r"\.\d+\.", ".0.", name): name for name in reversed(shapes)}
    needed = [name for name in usual if name.endswith((".q_proj.weight", ".k_proj.weight"))]
    if missing := sorted(set(needed) - there.keys()):
        odd = sorted(there[name] for name in there.keys() - usual) or ["none"]
        listed = ", ".join(odd[:6]) + (f" and {len(odd) - 6} more" if len(odd) > 6 else "")
        raise CheckpointError(
            f"unexpected names: {listed}; expected instead: {', '.join(missing)} and so on for every layer. "
            "Rename the weights, or choose a checkpoint of MiniMind, Qwen3 or Llama"
        )


def _assumed(config: MiniMindConfig, known: Mapping[str, Any]) -> str:
    names = ["rms_norm_eps", "rope_theta", *(["num_experts_per_tok", "norm_topk_prob"] if config.use_moe else [])]
    assumed = [f"{name}={getattr(config, name):g}" for name in names if name not in known]
    return "no config.json: sizes were read off the weights" + (
        f"; assumed {', '.join(assumed)}." if assumed else "; nothing had to be assumed."
    )


def _matrix(shapes: Shapes, name: str) -> tuple[int, int] | None:
    shape = shapes.get(name, ())
    return (shape[0], shape[1]) if len(shape) == 2 else None
