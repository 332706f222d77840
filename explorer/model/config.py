"""Every number that fixes a MiniMind model's shape and arithmetic, checked once when it is built.

Field names are MiniMind's own, so its config.json loads as it is. This module must not import torch or transformers:
a configuration is plain data that a page, a link or a checkpoint reader can validate before any tensor exists.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from difflib import get_close_matches
from typing import Any, Self

FROM_THE_OTHERS: Any = None  # the default of a size that is calculated from other sizes
HIDDEN_ACTS = ("silu", "gelu", "relu")

# Keys that Hugging Face writes into a config.json and that do not change what the model computes.
# fmt: off
BOOKKEEPING_KEYS = frozenset((
    "_attn_implementation", "_commit_hash", "_name_or_path", "add_cross_attention", "architectures",
    "attention_dropout", "attn_implementation", "auto_map", "aux_loss_alpha", "chunk_size_feed_forward",
    "cross_attention_hidden_size", "decoder_start_token_id", "dtype", "finetuning_task", "id2label",
    "initializer_range", "is_decoder", "is_encoder_decoder", "label2id", "layer_types", "max_window_layers",
    "model_type", "n_routed_experts", "output_attentions", "output_hidden_states", "output_router_logits", "prefix",
    "pretraining_tp", "problem_type", "pruned_heads", "return_dict", "scoring_func",
    "sep_token_id", "seq_aux", "sliding_window", "task_specific_params", "tie_encoder_decoder", "tokenizer_class",
    "torch_dtype", "torchscript", "transformers_version", "use_bfloat16", "use_cache",
))
# fmt: on

# Keys that do change what a model computes: accepted only with the one value that MiniMind computes.
FIXED_KEYS: Mapping[str, tuple[Any, ...]] = {
    "attention_bias": (False, None),
    "mlp_bias": (False, None),
    "use_sliding_window": (False, None),
    "decoder_sparse_step": (1, None),
    "mlp_only_layers": ([], (), None),
}


class ConfigError(ValueError):
    """A configuration that no MiniMind model can have; the message says what to change."""


@dataclass(frozen=True)
class RopeScaling:
    """YaRN's numbers, MiniMind's defaults (Peng et al. 2023, "YaRN", section 3.2).

    factor: how many times longer the context is to become; original_max_position_embeddings: the length that the model
    was trained with, in tokens; beta_fast, beta_slow: turns within that length above which a feature pair keeps its
    frequency and below which it is slowed by the whole factor; attention_factor: multiplies both RoPE tables.
    """

    factor: float = 16.0
    original_max_position_embeddings: int = 2048
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    attention_factor: float = 1.0

    def __post_init__(self) -> None:
        for field in fields(self):
            _require_number(f"rope_scaling.{field.name}", getattr(self, field.name), above=0)
        if self.beta_fast < self.beta_slow:
            raise ConfigError(
                f"rope_scaling: beta_fast={self.beta_fast} is below beta_slow={self.beta_slow}; "
                "beta_fast counts the turns of the fast pairs, so give it the larger number"
            )

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self | None:
        """Read a `rope_scaling` entry. None where its type is "default", which scales nothing."""
        kind = given.get("rope_type", given.get("type", "yarn"))
        if kind == "default":
            return None
        if kind != "yarn":
            raise ConfigError(f'rope_scaling type "{kind}" is not known here; allowed: "yarn" or "default"')
        known = {field.name for field in fields(cls)}
        _reject_unknown(set(given) - known - {"rope_type", "type", "rope_theta"}, known, "rope_scaling")
        return cls(**{name: value for name, value in given.items() if name in known and value is not None})


@dataclass(frozen=True)
class MiniMindConfig:
    """MiniMind's configuration; the defaults are MiniMind-3's published shape.

    A field left at None is filled in from the others when the object is built: num_key_value_heads = heads,
    head_dim = hidden_size // heads, intermediate_size = ⌈π·hidden_size/64⌉·64, moe_intermediate_size =
    intermediate_size; and with inference_rope_scaling on, rope_scaling gets YaRN's defaults.

    Raises ConfigError (a ValueError) for a value that no model can have.
    """

    hidden_size: int = 768  # D
    num_hidden_layers: int = 8  # L
    num_attention_heads: int = 8  # H
    num_key_value_heads: int = 4  # Hkv, divides H
    head_dim: int = FROM_THE_OTHERS  # Dh, even
    intermediate_size: int = FROM_THE_OTHERS  # F
    vocab_size: int = 6400  # V
    max_position_embeddings: int = 32768
    rms_norm_eps: float = 1e-6
    rope_theta: float = 1e6
    angle_step: float = 1.0  # radians that feature pair 0 turns from one position to the next
    qk_norm: bool = True
    dropout: float = 0.0
    flash_attn: bool = True
    hidden_act: str = "silu"
    inference_rope_scaling: bool = False
    rope_scaling: RopeScaling | None = None
    use_moe: bool = False
    num_experts: int = 4  # E
    num_experts_per_tok: int = 1  # k
    moe_intermediate_size: int = FROM_THE_OTHERS  # F of one expert
    norm_topk_prob: bool = True
    router_aux_loss_coef: float = 5e-4
    tie_word_embeddings: bool = True
    bos_token_id: int | None = 1
    eos_token_id: int | tuple[int, ...] | None = 2
    pad_token_id: int | None = 0

    def __post_init__(self) -> None:
        for name in ("hidden_size", "num_attention_heads"):
            _require_size(name, getattr(self, name))
        self._fill_in()
        for name in _SIZES:
            _require_size(name, getattr(self, name))
        for name in _SWITCHES:
            if not isinstance(getattr(self, name), bool):
                raise ConfigError(f"{name}={getattr(self, name)!r}: give true or false")
        self._check_heads()
        self._check_numbers()

    def _fill_in(self) -> None:
        """Give every field that was left at None the value that follows from the others."""

        def fill(name: str, value: object) -> None:
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)

        stops: object = self.eos_token_id
        if isinstance(stops, list):
            object.__setattr__(self, "eos_token_id", tuple(stops))
        scaling: object = self.rope_scaling
        if isinstance(scaling, Mapping):
            object.__setattr__(self, "rope_scaling", RopeScaling.from_dict(scaling))
        if self.inference_rope_scaling:
            fill("rope_scaling", RopeScaling())
        head_dim: object = self.head_dim
        if head_dim is None and self.hidden_size % self.num_attention_heads:
            raise ConfigError(
                f"num_attention_heads={self.num_attention_heads} does not divide hidden_size={self.hidden_size}; "
                f"choose one of {_divisors(self.hidden_size)}, or set head_dim yourself"
            )
        fill("num_key_value_heads", self.num_attention_heads)
        fill("head_dim", self.hidden_size // self.num_attention_heads)
        fill("intermediate_size", math.ceil(self.hidden_size * math.pi / 64) * 64)
        fill("moe_intermediate_size", self.intermediate_size)

    def _check_heads(self) -> None:
        if self.num_attention_heads % self.num_key_value_heads:
            raise ConfigError(
                f"num_key_value_heads={self.num_key_value_heads} does not divide "
                f"num_attention_heads={self.num_attention_heads}; choose one of {_divisors(self.num_attention_heads)}"
            )
        if self.head_dim % 2:
            raise ConfigError(
                f"head_dim={self.head_dim} is odd, but RoPE turns features in pairs; "
                "choose an even head_dim (hidden_size divided by num_attention_heads must be even)"
            )
        if self.num_experts_per_tok > self.num_experts:
            raise ConfigError(
                f"num_experts_per_tok={self.num_experts_per_tok} is more than num_experts={self.num_experts}; "
                f"choose 1 to {self.num_experts}"
            )

    def _check_numbers(self) -> None:
        _require_number("rms_norm_eps", self.rms_norm_eps, above=0)
        _require_number("rope_theta", self.rope_theta, above=0)
        _require_number("angle_step", self.angle_step)
        _require_number("router_aux_loss_coef", self.router_aux_loss_coef, at_least=0)
        _require_number("dropout", self.dropout, at_least=0, below=1)
        if self.yarn and self.rope_theta <= 1:
            raise ConfigError(f"rope_theta={self.rope_theta}: YaRN needs pairs of falling speed; give more than 1")
        if self.hidden_act not in HIDDEN_ACTS:
            raise ConfigError(f'hidden_act="{self.hidden_act}" is not known here; choose one of {list(HIDDEN_ACTS)}')

    @property
    def yarn(self) -> RopeScaling | None:
        """YaRN's numbers where scaling is on. It slows frequencies only if the context is longer than in training."""
        return self.rope_scaling if self.inference_rope_scaling else None

    def parameter_count(self) -> int:
        """How many numbers a whole language model of this configuration learns, without building it."""
        width, head = self.hidden_size, self.head_dim
        attention = 2 * width * head * (self.num_attention_heads + self.num_key_value_heads)
        if self.use_moe:
            feed_forward = self.num_experts * (3 * width * self.moe_intermediate_size + width)
        else:
            feed_forward = 3 * width * self.intermediate_size
        norms = 2 * width + (2 * head if self.qk_norm else 0)
        embeddings = self.vocab_size * width * (1 if self.tie_word_embeddings else 2)
        return embeddings + self.num_hidden_layers * (attention + feed_forward + norms) + width

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain data that JSON can hold; `from_dict` reads them back."""
        plain = asdict(self)
        if isinstance(self.eos_token_id, tuple):
            plain["eos_token_id"] = list(self.eos_token_id)
        if self.rope_scaling is not None:
            plain["rope_scaling"] = {"type": "yarn", "rope_type": "yarn", **plain["rope_scaling"]}
        return plain

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Read a config.json: MiniMind's fields, plus Hugging Face's bookkeeping keys, which are ignored.

        Raises ConfigError for any other key, naming the fields that are spelt nearly the same.
        """
        plain = _rename(given)
        known = {field.name for field in fields(cls)}
        _reject_unknown(set(plain) - known - BOOKKEEPING_KEYS - set(FIXED_KEYS) - {"n_shared_experts"}, known, "config")
        _refuse_other_models(plain)
        return cls(**{name: value for name, value in plain.items() if name in known})


_SIZES = (
    *("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim"),
    *("intermediate_size", "vocab_size", "max_position_embeddings"),
    *("num_experts", "num_experts_per_tok", "moe_intermediate_size"),
)
_SWITCHES = ("qk_norm", "flash_attn", "inference_rope_scaling", "use_moe", "norm_topk_prob", "tie_word_embeddings")
_LARGEST_SIZE = 2**31 - 1


def _rename(given: Mapping[str, Any]) -> dict[str, Any]:
    """A copy with MiniMind's names for what transformers 5 calls rope_parameters and num_local_experts."""
    plain = dict(given)
    parameters = dict(plain.pop("rope_parameters", None) or {})
    scaling = plain.get("rope_scaling") or {}
    theta = parameters.pop("rope_theta", scaling.get("rope_theta"))
    if theta is not None:
        plain.setdefault("rope_theta", theta)
    if parameters and not scaling:
        plain["rope_scaling"] = parameters
    experts = plain.pop("num_local_experts", None)
    if experts is not None:
        plain.setdefault("num_experts", experts)
    return plain


def _refuse_other_models(plain: Mapping[str, Any]) -> None:
    """Raise ConfigError where a key asks for something that MiniMind does not compute."""
    for name, allowed in FIXED_KEYS.items():
        if name in plain and plain[name] not in allowed:
            raise ConfigError(f"{name}={plain[name]!r}: MiniMind computes only {name}={allowed[0]!r}")
    if set(plain.get("layer_types") or ()) - {"full_attention"}:
        raise ConfigError('layer_types: every block of MiniMind has "full_attention"')
    if plain.get("use_moe") and "n_shared_experts" in plain and "num_experts" not in plain:
        raise ConfigError(
            "n_shared_experts belongs to MiniMind2's mixture of experts, which has shared experts; "
            "only MiniMind-3's (num_experts, no shared ones) can be built here"
        )


def _reject_unknown(unknown: set[str], known: set[str], where: str) -> None:
    for name in sorted(unknown):
        near = get_close_matches(name, known, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"the fields are {', '.join(sorted(known))}"
        raise ConfigError(f'{where} has no field "{name}"; {hint}')


def _require_size(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _LARGEST_SIZE:
        raise ConfigError(f"{name}={value!r:.40}: give a whole number, at least 1 and at most {_LARGEST_SIZE}")


def _require_number(
    name: str, value: object, above: float | None = None, at_least: float | None = None, below: float | None = None
) -> None:
    try:
        number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    except OverflowError:
        number = math.inf
    limits = {"above": above, "at least": at_least, "below": below}
    kept = (
        math.isfinite(number)
        and (above is None or number > above)
        and (at_least is None or number >= at_least)
        and (below is None or number < below)
    )
    if not kept:
        bounds = "".join(f", {word} {limit}" for word, limit in limits.items() if limit is not None)
        raise ConfigError(f"{name}={value!r:.40}: give a finite number{bounds}")


def _divisors(number: int) -> list[int]:
    return [candidate for candidate in range(1, min(number, 1024) + 1) if number % candidate == 0]
