"""The language model around the blocks, as a Hugging Face model that AutoModelForCausalLM can save and load.

Embedding, L blocks, final norm, tied output head; shifted-label loss; a cache for each block. Importing this module
takes seconds because it imports transformers, so import it only where a whole model is needed.
"""

# mypy: disable-error-code="no-untyped-call"
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel
from transformers.utils.generic import ModelOutput

from explorer.model.attention import Cache
from explorer.model.block import MiniMindBlock
from explorer.model.config import FIXED_KEYS, MiniMindConfig
from explorer.model.generate import generate
from explorer.model.norm import RMSNorm
from explorer.model.rope import RotaryEmbedding

IGNORED_LABEL = -100
_OWN_KEYS = {field.name for field in fields(MiniMindConfig)} | set(FIXED_KEYS) | {"rope_parameters"}


class MiniMindPretrainedConfig(PreTrainedConfig):
    """MiniMindConfig's fields with Hugging Face's bookkeeping around them; what a saved folder's config.json holds.

    `rope_scaling` is kept under the name that transformers 5 gives it, rope_parameters. Raises ConfigError as
    MiniMindConfig does.
    """

    model_type = "minimind"

    def __init__(self, **given: Any) -> None:
        own = {name: given.pop(name) for name in list(given) if name in _OWN_KEYS}
        checked = MiniMindConfig.from_dict(own).to_dict()
        scaling = checked.pop("rope_scaling") or {"rope_type": "default"}
        super().__init__(**given)
        for name, value in checked.items():
            setattr(self, name, value)
        self.rope_parameters = {**scaling, "rope_theta": self.rope_theta}

    def minimind(self) -> MiniMindConfig:
        """The fields alone, checked again: Hugging Face lets anybody set any of them at any time."""
        return MiniMindConfig.from_dict({name: getattr(self, name) for name in _OWN_KEYS if hasattr(self, name)})


@dataclass
class MiniMindModelOutput(ModelOutput):
    """last_hidden_state [B,T,D] after the final norm; cache, one pair of [B,Hkv,P+T,Dh] a block, with use_cache;
    hidden_states, the input [B,T,D] of each block and then last_hidden_state, with output_hidden_states; aux_loss, the
    blocks' balancing losses added up, a scalar (zero outside training and without experts).
    """

    last_hidden_state: Tensor | None = None
    cache: tuple[Cache, ...] | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    aux_loss: Tensor | None = None

    @property
    def past_key_values(self) -> tuple[Cache, ...] | None:
        """`cache` under the name of the argument that takes it."""
        return self.cache


@dataclass
class MiniMindCausalLMOutput(ModelOutput):
    """loss, a scalar, with labels; logits [B,kept,V]; the rest as in MiniMindModelOutput."""

    loss: Tensor | None = None
    aux_loss: Tensor | None = None
    logits: Tensor | None = None
    cache: tuple[Cache, ...] | None = None
    hidden_states: tuple[Tensor, ...] | None = None

    @property
    def past_key_values(self) -> tuple[Cache, ...] | None:
        """`cache` under the name of the argument that takes it."""
        return self.cache


class MiniMindPreTrainedModel(PreTrainedModel):
    """What Hugging Face needs to know of both models below."""

    config: MiniMindPretrainedConfig
    config_class = MiniMindPretrainedConfig
    base_model_prefix = "model"
    _no_split_modules = ["MiniMindBlock"]  # noqa: RUF012 (transformers' own form)

    def __init__(self, config: MiniMindPretrainedConfig | MiniMindConfig) -> None:
        if isinstance(config, MiniMindConfig):
            config = MiniMindPretrainedConfig(**config.to_dict())
        super().__init__(config)


class MiniMindModel(MiniMindPreTrainedModel):
    """Token numbers to final hidden states: input_ids [B,T] -> last_hidden_state [B,T,D]."""

    def __init__(self, config: MiniMindPretrainedConfig | MiniMindConfig) -> None:
        super().__init__(config)
        own = self.config.minimind()
        self.embed_tokens = nn.Embedding(own.vocab_size, own.hidden_size)
        self.dropout = nn.Dropout(own.dropout)
        self.layers = nn.ModuleList(MiniMindBlock(own, layer_id) for layer_id in range(own.num_hidden_layers))
        self.norm = RMSNorm(own.hidden_size, own.rms_norm_eps)
        self.rotary = RotaryEmbedding(own)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: Sequence[Cache] | None = None,
        use_cache: bool = False,
        output_hidden_states: bool = False,
    ) -> MiniMindModelOutput:
        """input_ids [B,T]; attention_mask [B,P+T], 1 real and 0 padding; past_key_values, what an earlier call returned
        for the P tokens before these.

        Raises ValueError for shapes that do not fit one another and for positions beyond the model's limit.
        """
        if input_ids.dim() != 2 or 0 in input_ids.shape:
            raise ValueError(f"input_ids has shape {tuple(input_ids.shape)}; give [B, T], at least one token a row")
        pasts = self._pasts(past_key_values)
        start = 0 if pasts[0] is None else pasts[0][0].shape[2]
        position_embeddings = self.rotary(start, input_ids.shape[1], input_ids.device)
        every_key = (input_ids.shape[0], start + input_ids.shape[1])
        if attention_mask is not None and attention_mask.shape == every_key and attention_mask.all():
            attention_mask = None  # no padding at all: the blocks may take their fused path

        x = self.dropout(self.embed_tokens(input_ids))
        inputs, presents = [], []
        for layer, past in zip(self.layers, pasts, strict=True):
            inputs.append(x)
            x, present = layer(x, position_embeddings, past, use_cache, attention_mask)
            presents.append(present)
        x = self.norm(x)
        return MiniMindModelOutput(
            last_hidden_state=x,
            cache=tuple(presents) if use_cache else None,
            hidden_states=(*inputs, x) if output_hidden_states else None,
            aux_loss=self._aux_loss(x),
        )

    def _pasts(self, past_key_values: Sequence[Cache] | None) -> Sequence[Cache | None]:
        """One past for each block."""
        if past_key_values is None:
            return [None] * len(self.layers)
        given: object = past_key_values
        if not isinstance(given, tuple | list) or len(given) != len(self.layers):
            raise ValueError(
                f"past_key_values must hold one (keys, values) pair for each of the {len(self.layers)} blocks; "
                "pass on what an earlier call with use_cache=True returned"
            )
        return past_key_values

    def _aux_loss(self, like: Tensor) -> Tensor:
        total = like.new_zeros((), dtype=torch.float32)
        for layer in self.layers:
            own = getattr(layer.mlp, "aux_loss", None)
            total = total if own is None else total + own
        return total


class MiniMindForCausalLM(MiniMindPreTrainedModel):
    """Token numbers to next-token logits: input_ids [B,T] -> logits [B,T,V]. The output head is the embedding matrix,
    one parameter object, unless tie_word_embeddings is off.
    """

    _tied_weights_keys = {"lm_head.weight": "model.embed_tokens.weight"}  # noqa: RUF012 (transformers' own form)

    def __init__(self, config: MiniMindPretrainedConfig | MiniMindConfig) -> None:
        super().__init__(config)
        self.model = MiniMindModel(self.config)
        self.lm_head = nn.Linear(self.config.hidden_size, self.config.vocab_size, bias=False)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: Sequence[Cache] | None = None,
        labels: Tensor | None = None,
        use_cache: bool = False,
        logits_to_keep: int | Tensor = 0,
        output_hidden_states: bool = False,
    ) -> MiniMindCausalLMOutput:
        """Arguments as MiniMindModel's, and:

        labels [B,T]: the tokens themselves, −100 where none counts; position t is scored on labels[t+1].
        logits_to_keep: how many positions' logits to return, counted from the end (0: all), or their indices. It does
        not change the loss, which is always over all labels.
        """
        states = self.model(input_ids, attention_mask, past_key_values, use_cache, output_hidden_states)
        x = states.last_hidden_state
        kept = slice(-logits_to_keep, None) if isinstance(logits_to_keep, int) else logits_to_keep
        if labels is None:
            loss, logits = None, self.lm_head(x[:, kept])
        else:
            logits = self.lm_head(x)
            loss, logits = next_token_loss(logits, labels), logits[:, kept]
        return MiniMindCausalLMOutput(
            loss=loss, aux_loss=states.aux_loss, logits=logits, cache=states.cache, hidden_states=states.hidden_states
        )

    def generate(self, input_ids: Tensor, attention_mask: Tensor | None = None, **options: Any) -> Tensor:
        """Continue the text; see explorer.model.generate for every option. Stop and padding tokens are the
        configuration's where none are given. do_sample=False, Hugging Face's word, means temperature=0.
        """
        if not options.pop("do_sample", True):
            options["temperature"] = 0.0
        options.setdefault("eos_token_id", self.config.eos_token_id)
        options.setdefault("pad_token_id", self.config.pad_token_id)
        options.setdefault("max_positions", self.config.max_position_embeddings)
        return generate(cast(Any, self), input_ids, attention_mask, **options)


def next_token_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy of each position's logits [B,T,V] with the next position's label [B,T], −100 left out.

    Computed in float32. Zero, with a gradient of zero, where no label counts (one token, or all of them ignored).
    """
    if labels.shape != logits.shape[:2]:
        raise ValueError(f"labels have shape {tuple(labels.shape)}; give one for each token, {list(logits.shape[:2])}")
    targets = labels[:, 1:].flatten()
    total = F.cross_entropy(logits[:, :-1].flatten(0, 1).float(), targets, ignore_index=IGNORED_LABEL, reduction="sum")
    return total / (targets != IGNORED_LABEL).sum().clamp(min=1)


AutoConfig.register(MiniMindPretrainedConfig.model_type, MiniMindPretrainedConfig, exist_ok=True)
AutoModel.register(MiniMindPretrainedConfig, MiniMindModel, exist_ok=True)
AutoModelForCausalLM.register(MiniMindPretrainedConfig, MiniMindForCausalLM, exist_ok=True)
