from __future__ import annotations

import json
from typing import Any

import pytest

from explorer.model import ConfigError, MiniMindConfig, RopeScaling
from tests.model.helpers import tiny


def test_the_defaults_are_minimind_3() -> None:
    config = MiniMindConfig()
    assert (config.head_dim, config.intermediate_size, config.moe_intermediate_size) == (96, 2432, 2432)
    assert (config.num_attention_heads, config.num_key_value_heads, config.num_hidden_layers) == (8, 4, 8)
    assert (config.vocab_size, config.max_position_embeddings, config.rope_theta) == (6400, 32768, 1e6)


def test_a_field_left_out_follows_from_the_others() -> None:
    config = MiniMindConfig(hidden_size=100, num_attention_heads=5, num_key_value_heads=None)  # type: ignore[arg-type]
    assert (config.num_key_value_heads, config.head_dim, config.intermediate_size) == (5, 20, 320)
    assert MiniMindConfig(intermediate_size=10).moe_intermediate_size == 10


@pytest.mark.parametrize(
    ("fields", "parts"),
    [
        ({"hidden_size": 12, "num_attention_heads": 5}, ["num_attention_heads=5", "[1, 2, 3, 4, 6, 12]", "head_dim"]),
        ({"num_attention_heads": 8, "num_key_value_heads": 3}, ["num_key_value_heads=3", "[1, 2, 4, 8]"]),
        ({"hidden_size": 12, "num_attention_heads": 4, "num_key_value_heads": 2}, ["head_dim=3", "odd", "even"]),
        ({"hidden_size": 0}, ["hidden_size=0", "at least 1"]),
        ({"num_hidden_layers": -2}, ["num_hidden_layers=-2", "at least 1"]),
        ({"vocab_size": 2.5}, ["vocab_size=2.5", "whole number"]),
        ({"num_attention_heads": True}, ["num_attention_heads=True", "whole number"]),
        ({"intermediate_size": "12"}, ["intermediate_size='12'", "whole number"]),
        ({"hidden_size": 10**400}, ["hidden_size=1000", "at most 2147483647"]),
        ({"rope_theta": 10**400}, ["rope_theta=1000", "finite"]),
        ({"rope_theta": 1.0, "inference_rope_scaling": True}, ["rope_theta=1.0", "YaRN", "more than 1"]),
        ({"use_moe": "yes"}, ["use_moe='yes'", "true or false"]),
        ({"rms_norm_eps": 0}, ["rms_norm_eps=0", "above 0"]),
        ({"rope_theta": float("nan")}, ["rope_theta=nan", "finite"]),
        ({"angle_step": float("inf")}, ["angle_step=inf", "finite"]),
        ({"dropout": 1.0}, ["dropout=1.0", "at least 0", "below 1"]),
        ({"hidden_act": "swish"}, ['hidden_act="swish"', "silu"]),
        ({"num_experts": 2, "num_experts_per_tok": 3}, ["num_experts_per_tok=3", "1 to 2"]),
        ({"rope_scaling": {"type": "linear"}}, ['"linear"', '"yarn"']),
        ({"rope_scaling": {"factr": 2}}, ['"factr"', "did you mean factor"]),
        ({"rope_scaling": {"factor": 0}}, ["rope_scaling.factor=0", "above 0"]),
        ({"rope_scaling": {"beta_fast": 1, "beta_slow": 32}}, ["beta_fast=1", "beta_slow=32"]),
    ],
)
def test_a_value_that_no_model_can_have_is_refused_with_what_to_do(fields: dict[str, Any], parts: list[str]) -> None:
    with pytest.raises(ConfigError) as error:
        MiniMindConfig(**fields)
    assert isinstance(error.value, ValueError)
    for part in parts:
        assert part in str(error.value)


def test_an_unknown_key_names_its_neighbours() -> None:
    with pytest.raises(ConfigError, match="did you mean hidden_size"):
        MiniMindConfig.from_dict({"hiden_size": 8})
    with pytest.raises(ConfigError, match="the fields are angle_step"):
        MiniMindConfig.from_dict({"zzzzqq": 8})


def test_hugging_face_bookkeeping_is_ignored() -> None:
    given = {"architectures": ["X"], "model_type": "minimind", "torch_dtype": "float32", "transformers_version": "5"}
    assert MiniMindConfig.from_dict(given | {"hidden_size": 64}) == MiniMindConfig(hidden_size=64)


def test_every_key_that_transformers_writes_is_known() -> None:
    from transformers import LlamaConfig, Qwen3Config, Qwen3MoeConfig

    for other in (LlamaConfig(), Qwen3Config()):
        MiniMindConfig.from_dict(other.to_dict())
    assert MiniMindConfig.from_dict(Qwen3MoeConfig(num_experts=6, num_experts_per_tok=2).to_dict()).num_experts == 6


def test_what_minimind_does_not_compute_is_refused() -> None:
    with pytest.raises(ConfigError, match="attention_bias=True: MiniMind computes only attention_bias=False"):
        MiniMindConfig.from_dict({"attention_bias": True})
    with pytest.raises(ConfigError, match='every block of MiniMind has "full_attention"'):
        MiniMindConfig.from_dict({"layer_types": ["full_attention", "sliding_attention"]})
    with pytest.raises(ConfigError, match="shared experts"):
        MiniMindConfig.from_dict({"use_moe": True, "n_shared_experts": 1})


def test_it_survives_json() -> None:
    config = tiny(inference_rope_scaling=True, rope_scaling={"factor": 8}, use_moe=True)
    assert MiniMindConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    assert hash(config) == hash(MiniMindConfig.from_dict(config.to_dict()))


def test_several_stop_tokens_are_kept() -> None:
    config = MiniMindConfig.from_dict({"eos_token_id": [2, 5]})
    assert config.eos_token_id == (2, 5)
    assert config.to_dict()["eos_token_id"] == [2, 5]
    assert hash(config) == hash(MiniMindConfig.from_dict(config.to_dict()))


def test_yarn_is_off_unless_asked_for() -> None:
    assert MiniMindConfig(rope_scaling=RopeScaling()).yarn is None
    assert MiniMindConfig(inference_rope_scaling=True).yarn == RopeScaling(16, 2048, 32, 1, 1)
    assert MiniMindConfig(inference_rope_scaling=True, rope_scaling=RopeScaling(factor=2)).yarn == RopeScaling(factor=2)


def test_both_spellings_of_rope_numbers_are_read() -> None:
    old = {"rope_theta": 5e5, "inference_rope_scaling": True, "rope_scaling": {"type": "yarn", "factor": 3}}
    new = {"inference_rope_scaling": True, "rope_parameters": {"rope_type": "yarn", "factor": 3, "rope_theta": 5e5}}
    assert MiniMindConfig.from_dict(old) == MiniMindConfig.from_dict(new)
    plain = MiniMindConfig.from_dict({"rope_parameters": {"rope_type": "default", "rope_theta": 5e5}})
    assert plain == MiniMindConfig(rope_theta=5e5)


@pytest.mark.parametrize("fields", [{}, {"use_moe": True}, {"qk_norm": False, "tie_word_embeddings": False}])
def test_parameter_count_is_that_of_the_built_model(fields: dict[str, Any]) -> None:
    from explorer.model.causal_lm import MiniMindForCausalLM

    config = tiny(**fields)
    assert config.parameter_count() == sum(p.numel() for p in MiniMindForCausalLM(config).parameters())
