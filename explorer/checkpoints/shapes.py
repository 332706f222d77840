"""The name and shape of every weight that a configuration asks for, from arithmetic alone.

Nothing is allocated: a configuration of a hundred billion parameters is counted as quickly as a small one. Names are
those of MiniMindForCausalLM's state dict. Must not know files or stored layouts.
"""

from __future__ import annotations

from dataclasses import replace

from explorer.checkpoints.limits import Limits
from explorer.checkpoints.report import CheckpointError, human_count
from explorer.model.config import MiniMindConfig

Shapes = dict[str, tuple[int, ...]]

EMBEDDING = "model.embed_tokens.weight"
HEAD = "lm_head.weight"
FINAL_NORM = "model.norm.weight"


def block_shapes(config: MiniMindConfig) -> Shapes:
    """Every weight of one MiniMindBlock, by its name within the block."""
    width, head = config.hidden_size, config.head_dim
    queries, keys = config.num_attention_heads * head, config.num_key_value_heads * head
    shapes: Shapes = {
        "input_layernorm.weight": (width,),
        "self_attn.q_proj.weight": (queries, width),
        "self_attn.k_proj.weight": (keys, width),
        "self_attn.v_proj.weight": (keys, width),
        "self_attn.o_proj.weight": (width, queries),
        "post_attention_layernorm.weight": (width,),
    }
    if config.qk_norm:
        shapes |= {"self_attn.q_norm.weight": (head,), "self_attn.k_norm.weight": (head,)}
    if not config.use_moe:
        return shapes | _swiglu("mlp", width, config.intermediate_size)
    shapes["mlp.gate.weight"] = (config.num_experts, width)
    for expert in range(config.num_experts):
        shapes |= _swiglu(f"mlp.experts.{expert}", width, config.moe_intermediate_size)
    return shapes


def model_shapes(config: MiniMindConfig) -> Shapes:
    """Every weight of MiniMindForCausalLM; a tied head is the embedding and has no entry of its own."""
    shapes: Shapes = {EMBEDDING: (config.vocab_size, config.hidden_size), FINAL_NORM: (config.hidden_size,)}
    one = block_shapes(config)
    for layer in range(config.num_hidden_layers):
        shapes |= {f"model.layers.{layer}.{name}": shape for name, shape in one.items()}
    if not config.tie_word_embeddings:
        shapes[HEAD] = (config.vocab_size, config.hidden_size)
    return shapes


def count_parameters(config: MiniMindConfig) -> int:
    """Parameters of the whole model, a tied head counted once."""
    width = config.hidden_size
    heads = 2 * config.num_attention_heads + 2 * config.num_key_value_heads  # q and o, k and v
    attention = heads * config.head_dim * width + (2 * config.head_dim if config.qk_norm else 0)
    if config.use_moe:
        feed_forward = config.num_experts * (width + 3 * width * config.moe_intermediate_size)
    else:
        feed_forward = 3 * width * config.intermediate_size
    embeddings = config.vocab_size * width * (1 if config.tie_word_embeddings else 2)
    return embeddings + width + config.num_hidden_layers * (attention + feed_forward + 2 * width)


def block_parameters(config: MiniMindConfig) -> int:
    """Parameters of one block."""
    rest = replace(config, num_hidden_layers=1)
    embeddings = config.vocab_size * config.hidden_size * (1 if config.tie_word_embeddings else 2)
    return count_parameters(rest) - embeddings - config.hidden_size


def check_size(config: MiniMindConfig, bytes_each: int, limits: Limits, only_block: bool = False) -> None:
    """Raises CheckpointError if what is to be built would take more memory than the limit allows.

    only_block: one block alone is to be built.
    """
    count = block_parameters(config) if only_block else count_parameters(config)
    what = "one block has" if only_block else "the configuration describes"
    limits.check_bytes(f"{what} {human_count(count)} parameters, which would take", count * bytes_each)


def check_names(config: MiniMindConfig, limits: Limits) -> None:
    """Raises CheckpointError if the weights are too many to be written down one by one."""
    names = config.num_hidden_layers * (11 + (3 * config.num_experts if config.use_moe else 0))
    if names > limits.names:
        layers, parameters = human_count(config.num_hidden_layers), human_count(count_parameters(config))
        raise CheckpointError(
            f"the configuration describes {human_count(names)} weights in {layers} layers ({parameters} parameters); "
            f"the limit is {limits.names:,} weights: check num_hidden_layers and num_experts"
        )


def _swiglu(path: str, width: int, hidden: int) -> Shapes:
    return {
        f"{path}.gate_proj.weight": (hidden, width),
        f"{path}.up_proj.weight": (hidden, width),
        f"{path}.down_proj.weight": (width, hidden),
    }
