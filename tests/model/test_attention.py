from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from explorer.model import MiniMindBlock, MiniMindConfig, RotaryEmbedding, rope_tables
from explorer.model.attention import Attention, masked_softmax, repeat_kv, visible_keys
from explorer.model.rope import rotate
from tests.model.helpers import block_of, close, configs, normal, randomise, run_block, small, tiny, watch


def attention_of(config: MiniMindConfig) -> Attention:
    attention = randomise(Attention(config))
    assert isinstance(attention, Attention)
    return attention


def by_hand(attention: Attention, x: Tensor, config: MiniMindConfig) -> np.ndarray:
    """The update of each token, one head and one query at a time, in float64."""
    weight = {name: w.detach().double().numpy() for name, w in attention.named_parameters()}
    inputs, (cos, sin) = x.double().numpy(), (table.double() for table in rope_tables(config, x.shape[1]))
    batch, tokens, _ = inputs.shape
    width, group = config.head_dim, config.num_attention_heads // config.num_key_value_heads
    out = np.zeros_like(inputs)

    def head(name: str, number: int, row: int) -> np.ndarray:
        """Features of one head for every token of one batch row, normalised and turned if they are to be."""
        features = inputs[row] @ weight[f"{name}_proj.weight"][number * width : (number + 1) * width].T
        if name == "v":
            return features
        rms = np.sqrt((features**2).mean(-1, keepdims=True) + config.rms_norm_eps)
        scaled = features / rms * weight[f"{name}_norm.weight"]
        return rotate(torch.from_numpy(scaled)[None, None], cos, sin)[0, 0].numpy()

    for row in range(batch):
        blends = np.zeros((tokens, config.num_attention_heads * width))
        for number in range(config.num_attention_heads):
            q, k, v = head("q", number, row), head("k", number // group, row), head("v", number // group, row)
            for t in range(tokens):
                scores = np.array([q[t] @ k[s] / math.sqrt(width) for s in range(t + 1)])
                probs = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
                blends[t, number * width : (number + 1) * width] = sum(p * v[s] for s, p in enumerate(probs))
        out[row] = blends @ weight["o_proj.weight"].T
    return out


@pytest.mark.parametrize("kv_heads", [1, 2, 4], ids=["MQA", "GQA", "MHA"])
@pytest.mark.parametrize("flash", [True, False], ids=["flash", "explicit"])
def test_it_is_attention_by_its_definition(kv_heads: int, flash: bool) -> None:
    config = tiny(num_key_value_heads=kv_heads, head_dim=10, flash_attn=flash)
    attention, x = attention_of(config), normal(2, 5, 24)
    close(attention(x, rope_tables(config, 5))[0], by_hand(attention, x, config))


def test_neighbouring_query_heads_share_a_key_value_head() -> None:
    x = normal(2, 3, 4, 5)
    assert torch.equal(repeat_kv(x, 2), torch.stack([x[:, i // 2] for i in range(6)], 1))
    assert repeat_kv(x, 1) is x


def test_what_a_query_may_see() -> None:
    mask = torch.tensor([[0, 1, 1, 1], [1, 1, 1, 0]])
    expected = [[[0, 1, 1, 0], [0, 1, 1, 1]], [[1, 1, 1, 0], [1, 1, 1, 0]]]
    assert visible_keys(2, 4, mask, mask.device)[:, 0].int().tolist() == expected
    assert visible_keys(2, 4, None, mask.device)[0, 0].int().tolist() == [[1, 1, 1, 0], [1, 1, 1, 1]]


class TestMaskedSoftmax:
    def test_masked_cells_get_exactly_nothing(self) -> None:
        probs = masked_softmax(torch.tensor([0.7, 1.1, 0.2, -math.inf]))
        close(probs, torch.tensor([0.32275, 0.48149, 0.19576, 0.0]), 1e-5)
        assert probs[3] == 0

    def test_a_row_that_sees_nothing_gives_zeros_and_no_nan_gradient(self) -> None:
        scores = torch.tensor([[1.0, 2.0], [-math.inf, -math.inf]]).requires_grad_()
        probs = masked_softmax(scores)
        assert probs[1].tolist() == [0, 0]
        probs.square().sum().backward()
        assert scores.grad is not None
        assert scores.grad.isfinite().all()

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_sums_are_taken_in_float32(self, dtype: torch.dtype) -> None:
        """4096 equal scores: float16 and bfloat16 cannot even count that far in ones."""
        probs = masked_softmax(torch.zeros(4096, dtype=dtype))
        assert probs.dtype == dtype
        assert probs.tolist() == [1 / 4096] * 4096

    def test_nan_is_not_hidden(self) -> None:
        assert masked_softmax(torch.tensor([math.nan, 1.0])).isnan().all()


@small
@given(config=configs(), tokens=st.integers(2, 9))
def test_flash_equals_explicit(config: MiniMindConfig, tokens: int) -> None:
    x = normal(2, tokens, config.hidden_size)
    fused, explicit = block_of(config), block_of(config)
    explicit.self_attn.flash = False
    close(run_block(fused, config, x)[0], run_block(explicit, config, x)[0])


@small
@given(config=configs(), chunks=st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_chunks_through_the_cache_equal_the_whole_prefix(config: MiniMindConfig, chunks: list[int]) -> None:
    block, x = block_of(config), normal(2, sum(chunks), config.hidden_size)
    whole, whole_cache = run_block(block, config, x, use_cache=True)
    outs, cache = [], None
    for piece in x.split(chunks, dim=1):
        out, cache = run_block(block, config, piece, past_key_value=cache, use_cache=True)
        outs.append(out)
    close(torch.cat(outs, 1), whole)
    for got, expected in zip(cache, whole_cache, strict=True):
        close(got, expected)


@small
@given(config=configs(), tokens=st.integers(1, 5), pads=st.lists(st.integers(0, 4), min_size=2, max_size=3))
def test_left_padding_changes_nothing_for_real_tokens(config: MiniMindConfig, tokens: int, pads: list[int]) -> None:
    block, longest = block_of(config), tokens + max(pads)
    x = normal(len(pads), longest, config.hidden_size)
    mask = torch.tensor([[0] * pad + [1] * (longest - pad) for pad in pads])
    out, _ = run_block(block, config, x, attention_mask=mask)
    assert out.isfinite().all()
    for row, pad in enumerate(pads):
        alone, _ = run_block(block, config, x[row : row + 1, pad:])
        close(out[row : row + 1, pad:], alone)


@small
@given(config=configs(), pads=st.lists(st.integers(0, 5), min_size=2, max_size=2), new=st.integers(1, 3))
def test_padding_and_cache_together(config: MiniMindConfig, pads: list[int], new: int) -> None:
    block, x = block_of(config), normal(2, 5 + new, config.hidden_size)
    mask = torch.tensor([[0] * pad + [1] * (5 + new - pad) for pad in pads])
    whole, _ = run_block(block, config, x, attention_mask=mask)
    _, cache = run_block(block, config, x[:, :5], attention_mask=mask[:, :5], use_cache=True)
    out, _ = run_block(block, config, x[:, 5:], past_key_value=cache, attention_mask=mask)
    close(out, whole[:, 5:])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_agrees_with_float32_and_padding_never_gives_nan(dtype: torch.dtype) -> None:
    config = tiny()
    x, mask = normal(3, 6, 24), torch.tensor([[0] * pad + [1] * (6 - pad) for pad in (0, 2, 6)])
    full, _ = run_block(block_of(config), config, x, attention_mask=mask)
    out, cache = run_block(block_of(config).to(dtype), config, x.to(dtype), attention_mask=mask, use_cache=True)
    assert out.dtype == cache[0].dtype == cache[1].dtype == dtype
    close(out, full, 5e-2)
    step, _ = run_block(block_of(config).to(dtype), config, x[:, :1].to(dtype), past_key_value=cache)
    assert step.isfinite().all()


def test_a_row_of_padding_alone_gets_no_attention_update() -> None:
    config = tiny()
    block, x = block_of(config), normal(2, 4, 24)
    seen = watch(block)
    run_block(block, config, x, attention_mask=torch.tensor([[0, 0, 0, 0], [1, 1, 1, 1]]))
    assert seen["probs"][0].count_nonzero() == 0
    assert seen["attn_out"][0].count_nonzero() == 0
    assert torch.equal(seen["resid_mid"][0], x[0])
    close(seen["probs"][1].sum(-1), torch.ones(4, 4), 1e-6)


def test_padding_gives_no_nan_gradient() -> None:
    config = tiny()
    block, x = block_of(config), normal(2, 4, 24).requires_grad_()
    mask = torch.tensor([[0, 0, 1, 1], [0, 0, 0, 0]])
    block(x, rope_tables(config, 4), attention_mask=mask)[0].square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in [x, *block.parameters()])


def test_one_token_alone() -> None:
    config = tiny()
    block, x = block_of(config), normal(2, 1, 24)
    seen = watch(block)
    run_block(block, config, x)
    assert torch.equal(seen["probs"], torch.ones(2, 4, 1, 1))
    assert torch.equal(seen["heads"], repeat_kv(seen["v"], 2))


def test_an_empty_cache_is_no_cache() -> None:
    config = tiny()
    block, x, empty = block_of(config), normal(2, 3, 24), torch.zeros(2, 2, 0, 6)
    out, cache = run_block(block, config, x, past_key_value=(empty, empty), use_cache=True)
    expected, expected_cache = run_block(block, config, x, use_cache=True)
    assert torch.equal(out, expected)
    assert all(torch.equal(got, wanted) for got, wanted in zip(cache, expected_cache, strict=True))


def test_the_cache_is_heads_first_and_given_only_when_asked_for() -> None:
    config = tiny()
    block, x = block_of(config), normal(2, 3, 24)
    assert run_block(block, config, x)[1] is None
    assert [part.shape for part in run_block(block, config, x, use_cache=True)[1]] == [(2, 2, 3, 6)] * 2


@pytest.mark.parametrize("name", ["scores", "masked_scores", "probs"])
def test_watching_the_scores_takes_the_explicit_path(name: str) -> None:
    config = tiny()
    block, x, seen = block_of(config), normal(1, 4, 24), []
    unwatched, _ = run_block(block, config, x)
    handle = block.self_attn.taps[name].register_forward_hook(lambda _m, _i, value: seen.append(value))
    watched, _ = run_block(block, config, x)
    assert [value.shape for value in seen] == [(1, 4, 4, 4)]
    close(watched, unwatched)
    handle.remove()
    run_block(block, config, x)
    assert len(seen) == 1


def test_the_fused_kernel_runs_where_minimind_runs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    fused = torch.nn.functional.scaled_dot_product_attention
    monkeypatch.setattr(
        "torch.nn.functional.scaled_dot_product_attention",
        lambda *arguments, **options: calls.append(1) or fused(*arguments, **options),
    )
    config = tiny()
    block, x = block_of(config), normal(1, 3, 24)

    def fused_runs(module: MiniMindBlock = block, tokens: Tensor = x, **options: object) -> bool:
        calls.clear()
        run_block(module, config, tokens, **options)
        return bool(calls)

    cache = run_block(block, config, x, use_cache=True)[1]
    assert fused_runs()
    assert fused_runs(attention_mask=torch.ones(1, 3))
    assert not fused_runs(attention_mask=torch.tensor([[0, 1, 1]]))
    assert not fused_runs(past_key_value=cache)
    assert not fused_runs(tokens=x[:, :1])
    assert not fused_runs(block_of(tiny(flash_attn=False)))


def test_the_norms_of_queries_and_keys_can_be_left_out() -> None:
    config = tiny(qk_norm=False)
    block = block_of(config)
    assert not [name for name in block.state_dict() if "_norm.weight" in name and "self_attn" in name]
    seen = watch(block)
    run_block(block, config, normal(1, 3, 24))
    assert torch.equal(seen["q"], seen["q_norm"])
    assert torch.equal(seen["k"], seen["k_norm"])


def test_values_are_never_rotated() -> None:
    config = tiny()
    block = block_of(config)
    seen = watch(block)
    run_block(block, config, normal(1, 3, 24))
    assert torch.equal(seen["v"], seen["present_v"])
    assert torch.equal(seen["k_rot"], seen["present_k"])
    assert not torch.equal(seen["k_norm"], seen["k_rot"])


def test_wrong_shapes_are_refused_with_the_right_ones() -> None:
    config = tiny()
    block, x = block_of(config), normal(2, 3, 24)
    with pytest.raises(ValueError, match=r"attention_mask has shape \(2, 4\).*\[2, 3\]: 0 cached tokens and 3 new"):
        run_block(block, config, x, attention_mask=torch.ones(2, 4))
    with pytest.raises(ValueError, match="do not fit 3 tokens"):
        block(x, RotaryEmbedding(config)(0, 1))
