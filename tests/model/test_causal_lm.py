from __future__ import annotations

import copy
import json
import logging
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM

from explorer.model import ConfigError, MiniMindConfig, rope_tables
from explorer.model.causal_lm import MiniMindForCausalLM, MiniMindModel, MiniMindPretrainedConfig, next_token_loss
from tests.model.helpers import close, configs, normal, randomise, small, tiny

YARN = {"inference_rope_scaling": True, "rope_scaling": {"factor": 4, "original_max_position_embeddings": 16}}


@pytest.fixture(autouse=True)
def transformers_is_silent() -> Iterator[None]:
    """Python's warnings are errors already; transformers' own go through its logger."""
    heard: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: heard.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("transformers")
    logger.addHandler(handler)
    yield
    logger.removeHandler(handler)
    assert not heard


def model_of(config: MiniMindConfig) -> MiniMindForCausalLM:
    model = randomise(MiniMindForCausalLM(config))
    assert isinstance(model, MiniMindForCausalLM)
    return model


def tokens(*shape: int, vocabulary: int = 37) -> Tensor:
    return torch.randint(vocabulary, shape, generator=torch.Generator().manual_seed(3))


def logits_of(model: MiniMindForCausalLM, ids: Tensor, **options: Any) -> Tensor:
    with torch.no_grad():
        logits = model(ids, **options).logits
    assert isinstance(logits, Tensor)
    return logits


def test_it_is_embedding_blocks_norm_and_the_embedding_again() -> None:
    config = tiny()
    model, ids = model_of(config), tokens(2, 5)
    with torch.no_grad():
        x = model.model.embed_tokens.weight[ids]
        for block in model.model.layers:
            x, _ = block(x, rope_tables(config, 5))
        states = model.model.norm(x)
    close(logits_of(model, ids), states @ model.model.embed_tokens.weight.T)


def test_hidden_states_are_each_block_s_input_and_then_the_final_state() -> None:
    model, ids = model_of(tiny()), tokens(1, 4)
    inputs: list[Tensor] = []
    for block in model.model.layers:
        block.register_forward_pre_hook(lambda _m, args: inputs.append(args[0]))
    with torch.no_grad():
        output = model(ids, output_hidden_states=True)
    assert len(output.hidden_states) == 3
    assert all(got is wanted for got, wanted in zip(output.hidden_states, inputs, strict=False))
    close(output.logits, model.lm_head(output.hidden_states[-1]))
    assert model(ids).hidden_states is None


class TestLoss:
    def test_each_position_is_scored_on_the_next_label(self) -> None:
        logits, labels = normal(2, 4, 5), torch.tensor([[9, 1, -100, 3], [9, 4, 0, -100]])
        losses = []
        for row, position, label in [(0, 0, 1), (0, 2, 3), (1, 0, 4), (1, 1, 0)]:
            scores = logits[row, position].double().numpy()
            losses.append(np.log(np.exp(scores).sum()) - scores[label])
        close(next_token_loss(logits, labels), torch.tensor(np.mean(losses)))

    @pytest.mark.parametrize("labels", [torch.full((2, 4), -100), torch.zeros(2, 1, dtype=torch.int64)])
    def test_no_label_at_all_costs_nothing(self, labels: Tensor) -> None:
        logits = normal(*labels.shape, 5).requires_grad_()
        loss = next_token_loss(logits, labels)
        loss.backward()
        assert loss == 0
        assert logits.grad is not None
        assert logits.grad.count_nonzero() == 0

    def test_labels_of_another_shape_are_refused(self) -> None:
        with pytest.raises(ValueError, match=r"labels have shape \(2, 3\).*\[2, 4\]"):
            next_token_loss(normal(2, 4, 5), torch.zeros(2, 3, dtype=torch.int64))

    @pytest.mark.parametrize("kept", [0, 1, 3, 99, torch.tensor([0, 2])], ids=str)
    def test_keeping_fewer_logits_changes_neither_them_nor_the_loss(self, kept: int | Tensor) -> None:
        model, ids = model_of(tiny()), tokens(2, 5)
        whole = model(ids, labels=ids)
        part = model(ids, labels=ids, logits_to_keep=kept)
        expected = whole.logits[:, kept] if isinstance(kept, Tensor) else whole.logits[:, -kept:]
        assert torch.equal(part.loss, whole.loss)
        assert torch.equal(part.logits, expected)
        close(model(ids, logits_to_keep=kept).logits, expected)

    def test_the_balancing_losses_are_added_up_apart_from_it(self) -> None:
        model, ids = model_of(tiny(use_moe=True, router_aux_loss_coef=1.0)), tokens(2, 5)
        assert model(ids).aux_loss == 0
        output = model.train()(ids, labels=ids)
        close(output.aux_loss, sum(block.mlp.aux_loss for block in model.model.layers), 1e-6)
        assert output.aux_loss > 1
        close(output.loss, next_token_loss(output.logits, ids), 1e-6)

    def test_a_dense_model_has_none(self) -> None:
        assert model_of(tiny()).train()(tokens(1, 3)).aux_loss == 0


@small
@given(config=configs(), chunks=st.lists(st.integers(1, 3), min_size=1, max_size=4), pad=st.integers(0, 2))
def test_chunks_through_the_cache_equal_the_whole_text(config: MiniMindConfig, chunks: list[int], pad: int) -> None:
    model, ids = model_of(config), tokens(2, pad + sum(chunks))
    mask = torch.ones_like(ids)
    mask[0, :pad] = 0
    whole, cache, outs = logits_of(model, ids, attention_mask=mask), None, []
    for piece in ids.split([pad + chunks[0], *chunks[1:]], dim=1):
        seen = piece.shape[1] + (0 if cache is None else cache[0][0].shape[2])
        with torch.no_grad():
            output = model(piece, attention_mask=mask[:, :seen], past_key_values=cache, use_cache=True)
        cache = output.past_key_values
        outs.append(output.logits)
    close(torch.cat(outs, 1)[mask.bool()], whole[mask.bool()])


@small
@given(config=configs(), pad=st.integers(1, 4))
def test_left_padding_changes_nothing_for_real_tokens(config: MiniMindConfig, pad: int) -> None:
    model, ids = model_of(config), tokens(2, 4 + pad)
    mask = torch.ones_like(ids)
    mask[0, :pad] = 0
    out = logits_of(model, ids, attention_mask=mask)
    assert out.isfinite().all()
    close(out[:1, pad:], logits_of(model, ids[:1, pad:]))
    close(out[1:], logits_of(model, ids[1:]))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(dtype: torch.dtype) -> None:
    model, ids = model_of(tiny()), tokens(2, 6)
    full = logits_of(model, ids)
    out = logits_of(model.to(dtype), ids, attention_mask=torch.tensor([[0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1]]))
    assert out.dtype == dtype
    assert out.isfinite().all()
    close(out[1:], full[1:], 5e-2)


class TestTables:
    @pytest.mark.parametrize("move", [torch.nn.Module.half, torch.nn.Module.bfloat16], ids=["half", "bfloat16"])
    def test_casting_the_model_leaves_them_in_float32(self, move: Any) -> None:
        model = move(model_of(tiny()))
        logits_of(model, tokens(1, 5))
        assert torch.equal(model.model.rotary.cos[:5], rope_tables(tiny(), 5)[0])

    def test_built_on_meta_then_loaded(self) -> None:
        model, ids = model_of(tiny()), tokens(1, 5)
        with torch.device("meta"):
            other = MiniMindForCausalLM(tiny())
        other.to_empty(device="cpu").load_state_dict(model.state_dict())
        assert torch.equal(logits_of(other.eval(), ids), logits_of(model, ids))

    def test_a_position_beyond_them_is_refused(self) -> None:
        model = model_of(tiny(max_position_embeddings=8))
        with torch.no_grad():
            cache = model(tokens(1, 8), use_cache=True).past_key_values
        with pytest.raises(ValueError, match="position 8 was asked for, but this model has positions 0 to 7"):
            model(tokens(1, 1), past_key_values=cache)


class TestSavedFolder:
    @pytest.mark.parametrize("fields", [{}, {"use_moe": True}, YARN, {"tie_word_embeddings": False}], ids=str)
    def test_it_comes_back_bit_for_bit_whatever_the_buffers_hold(self, fields: dict[str, Any], tmp_path: Path) -> None:
        model, ids = model_of(tiny(**fields)), tokens(2, 30)
        before = logits_of(model, ids)
        model.save_pretrained(tmp_path)
        loaded = AutoModelForCausalLM.from_pretrained(tmp_path)
        assert isinstance(loaded, MiniMindForCausalLM)
        assert loaded.config.minimind() == model.config.minimind() == tiny(**fields)
        assert [name for name, _ in loaded.named_buffers()] == ["model.rotary.cos", "model.rotary.sin"]
        loaded.model.rotary.cos = torch.full((64, 6), math.nan)
        loaded.model.rotary.sin = torch.full((64, 6), math.nan)
        assert torch.equal(logits_of(loaded, ids), before)
        for buffer in loaded.buffers():
            buffer.fill_(math.nan)
        assert torch.equal(logits_of(loaded, ids), before)
        for got, expected in zip(loaded.model.rotary(0, 30), rope_tables(tiny(**fields), 30), strict=True):
            assert torch.equal(got, expected)

    @pytest.mark.parametrize("tied", [True, False])
    def test_tied_weights_are_one_object_before_and_after(self, tied: bool, tmp_path: Path) -> None:
        model = model_of(tiny(tie_word_embeddings=tied))
        model.save_pretrained(tmp_path)
        for each in (model, AutoModelForCausalLM.from_pretrained(tmp_path), copy.deepcopy(model)):
            assert (each.lm_head.weight is each.model.embed_tokens.weight) == tied
            assert ("lm_head.weight" in dict(each.named_parameters())) != tied

    def test_in_half_precision_the_tables_stay_whole(self, tmp_path: Path) -> None:
        model_of(tiny()).save_pretrained(tmp_path)
        loaded = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float16)
        assert logits_of(loaded, tokens(1, 4)).dtype == torch.float16
        assert torch.equal(loaded.model.rotary.cos[:4], rope_tables(tiny(), 4)[0])

    def test_the_body_alone_loads_too(self, tmp_path: Path) -> None:
        model, ids = model_of(tiny()), tokens(1, 4)
        model.save_pretrained(tmp_path)
        body = AutoModel.from_pretrained(tmp_path)
        assert isinstance(body, MiniMindModel)
        with torch.no_grad():
            assert torch.equal(model.lm_head(body(ids).last_hidden_state), logits_of(model, ids))

    def test_its_configuration_is_readable_without_transformers(self, tmp_path: Path) -> None:
        config = tiny(**YARN)
        model_of(config).save_pretrained(tmp_path)
        plain = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
        assert plain["model_type"] == "minimind"
        assert MiniMindConfig.from_dict(plain) == config
        assert AutoConfig.from_pretrained(tmp_path).minimind() == config

    def test_parameter_names_are_minimind_s(self) -> None:
        names = set(MiniMindForCausalLM(tiny()).state_dict())
        assert {"model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"} <= names
        assert all(name.startswith(("model.layers.0.", "model.layers.1.")) for name in names - {
            "model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"
        })  # fmt: skip


class TestConfiguration:
    def test_minimind_s_own_spelling_is_read_without_a_warning(self) -> None:
        given = tiny(**YARN).to_dict()
        assert "rope_scaling" in given
        config = MiniMindPretrainedConfig(**given)
        assert config.minimind() == tiny(**YARN)
        assert config.rope_parameters["factor"] == 4
        assert config.rope_scaling == config.rope_parameters

    def test_it_is_checked_when_built_and_when_used(self) -> None:
        with pytest.raises(ConfigError, match="num_key_value_heads=3"):
            MiniMindPretrainedConfig(num_attention_heads=4, num_key_value_heads=3)
        config = MiniMindPretrainedConfig()
        config.num_key_value_heads = 3
        with pytest.raises(ConfigError, match="num_key_value_heads=3"):
            MiniMindForCausalLM(config)

    def test_a_fresh_model_starts_small_with_norms_of_one(self) -> None:
        model = MiniMindForCausalLM(tiny())
        assert 0.01 < model.model.embed_tokens.weight.std() < 0.03
        assert model.model.norm.weight.eq(1).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"input_ids": torch.tensor([1, 2])}, r"input_ids has shape \(2,\); give \[B, T\]"),
        ({"input_ids": torch.zeros(1, 0, dtype=torch.int64)}, "at least one token"),
        ({"input_ids": tokens(1, 2), "past_key_values": ()}, "one .keys, values. pair for each of the 2 blocks"),
        ({"input_ids": tokens(1, 2), "attention_mask": torch.ones(1, 3)}, r"attention_mask has shape \(1, 3\)"),
    ],
)
def test_wrong_arguments_are_refused_with_the_right_ones(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model_of(tiny())(**arguments)


@pytest.mark.parametrize("use_moe", [False, True], ids=["dense", "experts"])
def test_it_learns_and_can_be_copied_in_the_middle(use_moe: bool) -> None:
    torch.manual_seed(0)
    model, ids = MiniMindForCausalLM(tiny(use_moe=use_moe)).train(), tokens(2, 8)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(30):
        output = model(ids, labels=ids)
        (output.loss + output.aux_loss).backward()
        optimiser.step()
        optimiser.zero_grad()
        losses.append(output.loss.item())
    assert losses[-1] < losses[0] / 3
    assert torch.equal(logits_of(copy.deepcopy(model).eval(), ids), logits_of(model.eval(), ids))
