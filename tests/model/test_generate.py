from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from explorer.model.causal_lm import MiniMindForCausalLM
from explorer.model.generate import choose, generate, keep_top_k, keep_top_p, penalise_repetition
from tests.model.helpers import normal, randomise, small, tiny

logit_rows = st.lists(st.floats(-6, 6, width=32), min_size=1, max_size=9)


def model_of(**fields: Any) -> MiniMindForCausalLM:
    model = randomise(MiniMindForCausalLM(tiny(**fields)))
    assert isinstance(model, MiniMindForCausalLM)
    return model


def prompt(*shape: int) -> Tensor:
    return torch.randint(3, 37, shape, generator=torch.Generator().manual_seed(5))


class Scripted:
    """A model that says what it is told: step i gives row b the token script[b][i], after any prompt."""

    def __init__(self, script: list[list[int]], vocabulary: int = 10) -> None:
        self.script, self.vocabulary, self.step, self.fed = script, vocabulary, 0, []

    def __call__(self, input_ids: Tensor, *_: Any, **__: Any) -> SimpleNamespace:
        logits = torch.zeros(len(self.script), 1, self.vocabulary)
        for row, tokens in enumerate(self.script):
            logits[row, 0, tokens[self.step]] = 9
        self.fed.append(input_ids)
        self.step += 1
        return SimpleNamespace(logits=logits, past_key_values=None)


class Listener:
    def __init__(self) -> None:
        self.heard: list[list[Any]] = []
        self.ended = 0

    def put(self, value: Tensor) -> None:
        self.heard.append(value.tolist())

    def end(self) -> None:
        self.ended += 1


class TestGreedy:
    @pytest.mark.parametrize("use_moe", [False, True], ids=["dense", "experts"])
    def test_each_token_is_the_best_after_the_whole_text(self, use_moe: bool) -> None:
        model, ids = model_of(use_moe=use_moe), prompt(2, 4)
        expected = ids
        with torch.no_grad():
            for _ in range(6):
                best = model(expected).logits[:, -1].argmax(-1, keepdim=True)
                expected = torch.cat((expected, best), 1)
        for options in ({"temperature": 0}, {"do_sample": False}, {"top_k": 1}, {"top_p": 0.0}, {"temperature": 1e-9}):
            for use_cache in (True, False):
                out = model.generate(ids, max_new_tokens=6, eos_token_id=None, use_cache=use_cache, **options)
                assert torch.equal(out, expected), (options, use_cache)

    def test_only_what_the_cache_lacks_is_fed(self) -> None:
        model, ids, fed = model_of(), prompt(2, 4), []
        model.model.embed_tokens.register_forward_pre_hook(lambda _m, args: fed.append(args[0].shape[1]))
        model.generate(ids, max_new_tokens=3, eos_token_id=None)
        assert fed == [4, 1, 1]
        fed.clear()
        model.generate(ids, max_new_tokens=3, eos_token_id=None, use_cache=False)
        assert fed == [4, 5, 6]

    def test_a_cache_from_before_is_used(self) -> None:
        model, ids, fed = model_of(), prompt(2, 5), []
        expected = model.generate(ids, max_new_tokens=3, temperature=0, eos_token_id=None)
        with torch.no_grad():
            cache = model(ids[:, :3], use_cache=True).past_key_values
        model.model.embed_tokens.register_forward_pre_hook(lambda _m, args: fed.append(args[0].shape[1]))
        out = model.generate(ids, past_key_values=cache, max_new_tokens=3, temperature=0, eos_token_id=None)
        assert torch.equal(out, expected)
        assert fed == [2, 1, 1]

    def test_padding_on_the_left_changes_nothing(self) -> None:
        model, ids = model_of(), prompt(2, 6)
        mask = torch.ones_like(ids)
        mask[0, :3] = 0
        options: dict[str, Any] = {"max_new_tokens": 5, "temperature": 0, "eos_token_id": None}
        out = model.generate(ids, mask, **options)
        assert torch.equal(out[0, 3:], model.generate(ids[:1, 3:], **options)[0])
        assert torch.equal(out[1], model.generate(ids[1:], **options)[0])


class TestStopping:
    def test_each_row_ends_on_its_own_and_is_filled_up(self) -> None:
        model, listener = Scripted([[4, 2, 5, 5, 5], [5, 6, 7, 2, 5], [5, 3, 5, 5, 5]]), Listener()
        ids = torch.ones(3, 2, dtype=torch.int64)
        out = generate(model, ids, temperature=0, eos_token_id=[2, 3], pad_token_id=0, streamer=listener)
        new = [[4, 2, 0, 0], [5, 6, 7, 2], [5, 3, 0, 0]]
        assert out.tolist() == [[1, 1, *row] for row in new]
        assert listener.heard == [ids.tolist(), *np.array(new).T.tolist()]
        assert listener.ended == 1

    def test_without_a_padding_token_the_stop_token_fills(self) -> None:
        out = generate(Scripted([[2, 5], [5, 2]]), torch.ones(2, 1, dtype=torch.int64), temperature=0, eos_token_id=2)
        assert out.tolist() == [[1, 2, 2], [1, 5, 2]]

    def test_without_a_stop_token_it_goes_on(self) -> None:
        model = Scripted([[2, 2, 2]])
        assert generate(model, torch.ones(1, 1, dtype=torch.int64), temperature=0, max_new_tokens=3).shape == (1, 4)

    def test_the_configuration_names_the_tokens(self) -> None:
        model, ids = model_of(eos_token_id=None), prompt(1, 3)
        free = model.generate(ids, max_new_tokens=8, temperature=0)
        assert free.shape == (1, 11)
        model.config.eos_token_id = int(free[0, 4])
        stopped = model.generate(ids, max_new_tokens=8, temperature=0)
        assert stopped.tolist() == free[:, : stopped.shape[1]].tolist()
        assert stopped.shape[1] <= 5

    def test_no_new_tokens_is_the_prompt(self) -> None:
        ids = prompt(1, 3)
        assert torch.equal(model_of().generate(ids, max_new_tokens=0), ids)

    def test_the_listener_is_told_the_end_even_if_the_model_fails(self) -> None:
        listener = Listener()
        with pytest.raises(IndexError):
            generate(Scripted([[4]]), torch.ones(1, 1, dtype=torch.int64), temperature=0, streamer=listener)
        assert listener.heard == [[[1]], [4]]
        assert listener.ended == 1


class TestDrawing:
    def test_the_same_seed_gives_the_same_text(self) -> None:
        model, ids = model_of(), prompt(2, 3)

        def text(**options: Any) -> list[list[int]]:
            rows: list[list[int]] = model.generate(
                ids, max_new_tokens=12, eos_token_id=None, top_p=1.0, **options
            ).tolist()
            return rows

        assert text(seed=1) == text(seed=1) == text(generator=torch.Generator().manual_seed(1))
        assert text(seed=1) != text(seed=2)

    def test_tokens_come_as_often_as_their_probability(self) -> None:
        logits = torch.tensor([0.0, 1.0, 2.0, -math.inf])
        drawn = choose(logits.expand(20000, 4), 2.0, 0, 1.0, torch.Generator().manual_seed(0))
        expected = np.exp([0, 0.5, 1]) / np.exp([0, 0.5, 1]).sum()
        np.testing.assert_allclose(np.bincount(drawn, minlength=4) / 20000, [*expected, 0], atol=0.015)

    @pytest.mark.parametrize("temperature", [1e-4, 1e-6, 0, 1e4])
    def test_extreme_temperatures_are_finite(self, temperature: float) -> None:
        logits = torch.tensor([[3e4, -3e4, 2.9e4]]).expand(50, 3)
        drawn = choose(logits, temperature, 0, 1.0, torch.Generator().manual_seed(0))
        assert temperature > 1 or drawn.eq(0).all()

    def test_more_than_the_vocabulary_is_all_of_it(self) -> None:
        logits = normal(3, 7)
        assert torch.equal(keep_top_k(logits, 99), logits)
        assert torch.equal(keep_top_k(logits, 0), logits)
        model, ids = model_of(), prompt(1, 3)
        everything = model.generate(ids, seed=3, max_new_tokens=5, top_k=0, eos_token_id=None)
        assert torch.equal(everything, model.generate(ids, seed=3, max_new_tokens=5, top_k=10**9, eos_token_id=None))

    @small
    @given(row=logit_rows, k=st.integers(1, 10))
    def test_top_k(self, row: list[float], k: int) -> None:
        kept = keep_top_k(torch.tensor([row]), k)[0].isfinite().tolist()
        bar = sorted(row, reverse=True)[: min(k, len(row))][-1]
        assert kept == [value >= bar for value in row]

    @small
    @given(row=logit_rows, p=st.floats(0, 1))
    def test_top_p_keeps_the_fewest_that_reach_it(self, row: list[float], p: float) -> None:
        kept = keep_top_p(torch.tensor([row]), p)[0].isfinite().numpy()
        probs = np.exp(np.array(row) - max(row))
        probs /= probs.sum()
        inside, outside = probs[kept], probs[~kept]
        assert inside.size >= 1
        assert not outside.size or inside.min() >= outside.max() - 1e-6
        assert inside.sum() >= p - 1e-5
        assert inside.size == 1 or inside.sum() - inside.min() < p + 1e-5

    def test_one_very_likely_token_is_kept(self) -> None:
        kept = keep_top_p(torch.tensor([[0.0, 20.0, 0.0]]), 0.5)
        assert kept.tolist() == [[-math.inf, 20.0, -math.inf]]

    def test_top_p_of_one_changes_nothing(self) -> None:
        logits = torch.tensor([[0.0, -200.0, 3.0]])
        assert torch.equal(keep_top_p(logits, 1.0), logits)


class TestRepetition:
    def test_what_a_row_has_said_gets_less_likely(self) -> None:
        logits, ids = torch.tensor([[2.0, -2.0, 3.0, -3.0]] * 2), torch.tensor([[0, 0, 1], [3, 2, 2]])
        expected = [[1.0, -4.0, 3.0, -3.0], [2.0, -2.0, 1.5, -6.0]]
        assert penalise_repetition(logits, ids, None, 2.0).tolist() == expected
        assert torch.equal(penalise_repetition(logits, ids, None, 1.0), logits)

    def test_padding_was_not_said(self) -> None:
        logits, ids = torch.tensor([[2.0, 4.0]]), torch.tensor([[0, 1]])
        assert penalise_repetition(logits, ids, torch.tensor([[0, 1]]), 2.0).tolist() == [[2.0, 2.0]]

    def test_a_high_penalty_avoids_repetition(self) -> None:
        model, ids = model_of(), prompt(1, 2)
        plain = model.generate(ids, max_new_tokens=12, temperature=0, eos_token_id=None)[0].tolist()
        varied = model.generate(ids, max_new_tokens=12, temperature=0, eos_token_id=None, repetition_penalty=50.0)
        assert len(set(plain)) < len(plain)
        assert len(set(varied[0].tolist())) > len(set(plain))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": -1}, r"temperature=-1: give 0 \(greedy\) or more"),
        ({"temperature": math.nan}, "temperature=nan"),
        ({"top_k": -1}, r"top_k=-1: give 0 \(all tokens\) or more"),
        ({"top_p": 1.5}, r"top_p=1.5: give 0 to 1 \(all tokens\)"),
        ({"repetition_penalty": 0}, "repetition_penalty=0: give above 0"),
        ({"max_new_tokens": -1}, "max_new_tokens=-1"),
        ({"max_new_tokens": 63}, "2 prompt tokens and 63 new ones.*64 positions.*at most 62 new tokens"),
        ({"attention_mask": torch.ones(1, 3)}, r"attention_mask has shape \(1, 3\), input_ids \(1, 2\)"),
        ({"attention_mask": torch.tensor([[1, 0]])}, "ends in padding.*pad on the left"),
        ({"input_ids": torch.zeros(1, 0, dtype=torch.int64)}, "at least one token"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model_of().generate(**({"input_ids": prompt(1, 2)} | options))


def test_a_generation_leaves_the_model_as_it_was() -> None:
    model, ids = model_of(), prompt(1, 3)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    model.generate(ids, max_new_tokens=3)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert model.lm_head.weight.requires_grad
    assert model(ids).logits.requires_grad
