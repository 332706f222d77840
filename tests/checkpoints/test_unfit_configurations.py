"""Configurations that MiniMind cannot compute, and requests that a checkpoint cannot meet, are refused in words."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import torch

from explorer.checkpoints import CheckpointError, Limits, check_report, load, open_checkpoint
from explorer.checkpoints.shapes import model_shapes
from explorer.model.config import MiniMindConfig
from tests.checkpoints.making import SIZES, random_weights
from tests.checkpoints.refusing import refused, rewrite

pytestmark = pytest.mark.usefixtures("nothing_is_built")


# ------------------------------------------------------------------------------------------------ configurations


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"model_type": "gpt2"}, 'of a model of type "gpt2"; allowed are minimind, qwen3, qwen3_moe, llama'),
        ({"attention_bias": True}, "attention_bias=True, which MiniMind does not compute"),
        ({"quantization_config": {"bits": 4}}, "quantization_config="),
        ({"use_sliding_window": True, "sliding_window": 8}, "always sees the whole text"),
        ({"layer_types": ["full_attention", "sliding_attention", "full_attention"]}, "always sees the whole text"),
        ({"mlp_only_layers": [1]}, r"mlp_only_layers=\[1\]"),
        ({"decoder_sparse_step": 2}, "decoder_sparse_step=2"),
        ({"hidden_act": "gelu_new"}, 'hidden_act="gelu_new" is not known'),
        ({"rope_scaling": {"rope_type": "linear", "factor": 2.0}}, 'RoPE scaling of type "linear"'),
        ({"rope_scaling": [1]}, "must be an object"),
        ({"rope_scaling": {"type": "yarn", "factor": 2.0}}, "YaRN, which needs"),
        ({"num_key_value_heads": 3}, "does not divide num_attention_heads"),
        ({"num_attention_heads": "four"}, "num_attention_heads='four'"),
        ({"rms_norm_eps": 10**400}, "configuration cannot be used"),
        ({"rope_theta": [1]}, "configuration cannot be used"),
        ({"hidden_size": 10**400}, "configuration cannot be used|could not|would take over|would take"),
        ({"head_dim": -6}, "head_dim=-6"),
    ],
)
def test_a_configuration_that_minimind_cannot_compute(folder: Path, change: dict[str, Any], says: str) -> None:
    rewrite(folder, **change)
    refused(folder, says)


def test_shared_experts_are_refused(folder: Path) -> None:
    rewrite(folder, model_type="minimind", use_moe=True, n_routed_experts=4, n_shared_experts=1)
    refused(folder, "n_shared_experts=1: MiniMind2's mixture of experts adds shared experts")


def test_a_configuration_of_a_hundred_billion_parameters(folder: Path) -> None:
    rewrite(
        folder, hidden_size=12288, num_hidden_layers=72, num_attention_heads=96, num_key_value_heads=96, head_dim=128,
        intermediate_size=32768,
    )  # fmt: skip
    start = time.perf_counter()
    with pytest.raises(CheckpointError, match=r"describes 130,\d{3},\d{3},\d{3} parameters, which would take 48\d"):
        load(folder)
    with pytest.raises(CheckpointError, match="raise the limit"):
        check_report(folder)
    with pytest.raises(CheckpointError, match="of the wrong shape"):
        open_checkpoint(folder)
    assert time.perf_counter() - start < 1


@pytest.mark.parametrize("sizes", [{"num_hidden_layers": 10**9}, {"num_experts": 10**9, "model_type": "qwen3_moe"}])
def test_a_configuration_of_countless_small_layers(folder: Path, sizes: dict[str, Any]) -> None:
    rewrite(folder, **sizes)
    refused(folder, "the limit is", limits=Limits(max_bytes=10**40))
    refused(folder, "the limit is|wrong shape")


def test_a_limit_on_bytes(folder: Path) -> None:
    with pytest.raises(CheckpointError, match=r"the configuration describes .* the limit is 1.0 KiB"):
        load(folder, limits=Limits(max_bytes=1024))
    with pytest.raises(CheckpointError, match=r"one block has 2,348 parameters, which would take 9.2 KiB"):
        load(folder, layer=0, limits=Limits(max_bytes=1024))


@pytest.mark.parametrize("text", [b"{", b"[]", b"\xff\xfe", b'{"a": NaN}', b'{"a":' * 50_000, b" " * 2_000_000])
def test_a_config_that_is_not_one(folder: Path, text: bytes) -> None:
    (folder / "config.json").write_bytes(text)
    refused(folder, "config.json is (not|1.9 MiB large)")


def test_a_told_field_that_does_not_exist(folder: Path) -> None:
    refused(folder, "config has no field 'heads'; the fields are", config={"heads": 4})


@pytest.mark.parametrize("layer", [-1, 3])
def test_a_layer_that_does_not_exist(folder: Path, layer: int) -> None:
    with pytest.raises(CheckpointError, match=f"layer {layer} was asked for; this checkpoint has layers 0 to 2"):
        load(folder, layer=layer)


def test_a_number_format_that_does_not_exist(folder: Path) -> None:
    refused(folder, "dtype torch.int8 was asked for", dtype=torch.int8)


def test_tokens_outside_the_vocabulary(folder: Path) -> None:
    checkpoint = open_checkpoint(folder)
    for ids in (torch.tensor([[40]]), torch.tensor([[-1]]), torch.tensor([3])):
        with pytest.raises(ValueError, match="each from 0 to 39"):
            checkpoint.hidden_states(ids, 0)


def test_what_shapes_leave_open_is_asked_for(tmp_path: Path) -> None:
    config = MiniMindConfig(**{**SIZES, "head_dim": 4}, qk_norm=False)
    torch.save(random_weights(model_shapes(config)), tmp_path / "a.pth")
    refused(
        tmp_path / "a.pth", r'how many heads there are; put a config.json beside the file, with at least \{"num_atten'
    )
    refused(
        tmp_path / "a.pth", "num_attention_heads=5 cannot be right: q_proj has 16", config={"num_attention_heads": 5}
    )
    early = {"tok_embeddings.weight": torch.zeros(40, 16), "layers.0.attention.wq.weight": torch.zeros(16, 16),
             "layers.0.attention.wk.weight": torch.zeros(8, 16)}  # fmt: skip
    torch.save(early, tmp_path / "b.pth")
    refused(tmp_path / "b.pth", r'with at least \{"rope_theta": 1e6\} for MiniMind2', config={"num_attention_heads": 4})


def test_what_is_asked_for_is_enough(tmp_path: Path) -> None:
    config = MiniMindConfig(**{**SIZES, "head_dim": 4}, qk_norm=False)
    torch.save(random_weights(model_shapes(config)), tmp_path / "a.pth")
    (tmp_path / "config.json").write_text('{"num_attention_heads": 4}')
    assert open_checkpoint(tmp_path / "a.pth").config.head_dim == 4


@pytest.mark.parametrize("qk_norm", [True, False])
def test_names_that_no_layout_has_are_listed_first(tmp_path: Path, qk_norm: bool) -> None:
    weights = random_weights(model_shapes(MiniMindConfig(**SIZES, qk_norm=qk_norm)))
    renamed = {name.replace("self_attn", "attention"): value for name, value in weights.items()}
    torch.save(renamed, tmp_path / "a.pth")
    said = str(refused(tmp_path / "a.pth", r"unexpected names: model\.layers\.0\.attention\.k(_norm|_proj)\.weight, "))
    assert "expected instead: model.layers.0.self_attn.k_proj.weight, model.layers.0.self_attn.q_proj.weight" in said
    assert "num_attention_heads" not in said and "config=" not in said


# ----------------------------------------------------------------------------------------------------- it warns


def test_what_is_not_used_is_noted(folder: Path) -> None:
    rewrite(folder, embedding_multiplier=3, initializer_range=0.02)
    assert "config.json also says embedding_multiplier; this has no counterpart here." in check_report(folder)
