"""Each check can fail: what it checks is broken, one thing at a time, and the check says so."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

from explorer import RunSpec
from explorer.bridge import ROWS
from explorer.model import attention, config, feed_forward, rope
from explorer.run import _block, _parts, _rope, finished
from tests.bridge.cases import SPECS

GQA, PADDED, EXPERTS, TOY = SPECS["gqa"], SPECS["cache and padding"], SPECS["experts"], SPECS["toy"]
CONFIG, ATTENTION, DECODE, RUNTIME, FEED_FORWARD, WRAPPER = ROWS


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """No finished run of a broken block before or after."""

    def forget() -> None:
        finished.clear()
        for kept in (_block, _parts, _rope):
            kept.cache_clear()

    forget()
    yield
    forget()


def failing(row: Any, spec: RunSpec) -> set[str]:
    """The keys of the points that do not hold; the verdict agrees with them, and each has its sentence."""
    found = row.check(spec)
    wrong = {point.key for point in found.points if not point.holds}
    assert found.holds == (not wrong)
    assert all(row.sentences(found, "en")) and all(row.sentences(found, "zh"))
    return wrong


# --------------------------------------------------------------------------------------------------------- config


def test_a_config_that_takes_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config.MiniMindConfig, "_check_heads", lambda self: None)
    assert failing(CONFIG, GQA) == {"groups_taken", "odd_taken"}


def test_a_head_count_that_does_not_divide_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(self: Any) -> None:
        object.__setattr__(self, "head_dim", self.head_dim or 4)
        object.__setattr__(self, "num_key_value_heads", self.num_key_value_heads or self.num_attention_heads)

    monkeypatch.setattr(config.MiniMindConfig, "_fill_in", fill)
    assert failing(CONFIG, GQA) == {"heads_taken"}


def test_a_ledger_that_disagrees(monkeypatch: pytest.MonkeyPatch) -> None:
    from explorer.capture.trace import Trace

    original = Trace.ledger

    def other(self: Trace) -> Any:
        rows = original(self)
        rows[3] = replace(rows[3], shape=(9, 9, 9))
        return rows

    monkeypatch.setattr(Trace, "ledger", other)
    assert failing(CONFIG, GQA) == {"ledger_off"}


# ------------------------------------------------------------------------------------------------------ attention


def tiled(x: torch.Tensor, times: int) -> torch.Tensor:
    return x.repeat(1, times, 1, 1)


def test_tiled_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "repeat_kv", tiled)
    assert failing(ATTENTION, GQA) == {"repeat", "own"}
    assert failing(ATTENTION, TOY) == {"repeat_one"}, "one key/value head: only the nearest case can tell"


def test_a_scale_that_was_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention.math, "sqrt", lambda x: 1.0)
    assert failing(ATTENTION, GQA) == {"own"}


def test_tables_that_stretch(monkeypatch: pytest.MonkeyPatch) -> None:
    original = rope.rope_tables
    monkeypatch.setattr(rope, "rope_tables", lambda *a: tuple(1.01 * table for table in original(*a)))
    assert "circle" in failing(ATTENTION, GQA)


def test_positions_that_are_added_instead_of_turned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rope, "rotate", lambda x, cos, sin: x + sin)
    assert failing(ATTENTION, GQA) == {"offset"}
    assert failing(ATTENTION, SPECS["one token"]) == {"offset_alone"}


# --------------------------------------------------------------------------------------------------------- decode


def test_positions_that_start_over(monkeypatch: pytest.MonkeyPatch) -> None:
    original = rope.RotaryEmbedding.forward
    monkeypatch.setattr(rope.RotaryEmbedding, "forward", lambda self, start, *rest: original(self, 0, *rest))
    assert {"cached", "start"} <= failing(DECODE, GQA)


def test_positions_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    original = rope.RotaryEmbedding.forward
    monkeypatch.setattr(
        rope.RotaryEmbedding, "forward", lambda self, start, *rest: original(self, start % 32768, *rest)
    )
    assert failing(DECODE, GQA) == {"end_taken"}


def test_a_cache_the_wrong_way_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "_after", lambda past, new: new if past is None else torch.cat((new, past), dim=2))
    assert "cache" in failing(DECODE, GQA)


def test_a_cache_that_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "_after", lambda past, new: new)
    assert failing(DECODE, GQA) == {"cached", "cache"}


# -------------------------------------------------------------------------------------------------------- runtime


def top_left(queries: int, keys: int, mask: Any, device: Any) -> torch.Tensor:
    causal = (torch.arange(keys)[None] <= torch.arange(queries)[:, None])[None, None]
    return causal if mask is None else causal & mask.bool()[:, None, None, :]


def test_a_mask_from_the_top_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "visible_keys", top_left)
    assert failing(RUNTIME, PADDED) == {"cache"}
    assert failing(RUNTIME, GQA) == {"cache_none"}


def test_no_mask_on_the_explicit_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "visible_keys", lambda q, k, mask, device: torch.ones(1, 1, q, k, dtype=torch.bool))
    assert {"flash", "padded", "ahead"} <= failing(RUNTIME, GQA)


def test_padding_that_is_overlooked(monkeypatch: pytest.MonkeyPatch) -> None:
    original = attention.visible_keys
    monkeypatch.setattr(attention, "visible_keys", lambda q, k, mask, device: original(q, k, None, device))
    assert failing(RUNTIME, GQA) == {"padded"}


def test_a_softmax_of_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "masked_softmax", lambda scores: scores.softmax(-1))
    assert "finite" in failing(RUNTIME, GQA)


# --------------------------------------------------------------------------------------------------- feed-forward


def test_shares_that_are_not_renormalised(monkeypatch: pytest.MonkeyPatch) -> None:
    original = feed_forward.MOEFeedForward.__init__

    def without(self: Any, *given: Any) -> None:
        original(self, *given)
        self.normalise = False

    monkeypatch.setattr(feed_forward.MOEFeedForward, "__init__", without)
    assert failing(FEED_FORWARD, EXPERTS) == {"copies", "shares"}
    assert failing(FEED_FORWARD, TOY) == {"copies", "shares"}


def test_tokens_that_come_back_in_another_order(monkeypatch: pytest.MonkeyPatch) -> None:
    original = feed_forward.Dispatch.__init__

    def shuffled(self: Any, *given: Any) -> None:
        original(self, *given)
        self.back = self.there

    monkeypatch.setattr(feed_forward.Dispatch, "__init__", shuffled)
    assert "dispatch" in failing(FEED_FORWARD, EXPERTS)


def test_a_gate_without_its_activation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_forward.FeedForward, "__init__", _with_identity(feed_forward.FeedForward.__init__))
    assert "formula" in failing(FEED_FORWARD, GQA)


def _with_identity(original: Any) -> Any:
    def made(self: Any, *given: Any) -> None:
        original(self, *given)
        self.act = torch.nn.Identity()

    return made


def test_a_balancing_loss_without_its_coefficient(monkeypatch: pytest.MonkeyPatch) -> None:
    original = feed_forward.MOEFeedForward._balance
    monkeypatch.setattr(feed_forward.MOEFeedForward, "_balance", lambda self, p, i: 2 * original(self, p, i))
    assert failing(FEED_FORWARD, EXPERTS) == {"balance"}


# -------------------------------------------------------------------------------------------------------- wrapper


@pytest.fixture
def causal_lm() -> Any:
    from explorer.model import causal_lm

    return causal_lm


def after_init(monkeypatch: pytest.MonkeyPatch, causal_lm: Any, change: Any) -> None:
    original = causal_lm.MiniMindForCausalLM.__init__

    def made(self: Any, *given: Any) -> None:
        original(self, *given)
        change(self)

    monkeypatch.setattr(causal_lm.MiniMindForCausalLM, "__init__", made)


def test_weights_that_are_not_tied(monkeypatch: pytest.MonkeyPatch, causal_lm: Any) -> None:
    after_init(
        monkeypatch, causal_lm, lambda m: setattr(m.lm_head, "weight", torch.nn.Parameter(m.lm_head.weight.clone()))
    )
    assert failing(WRAPPER, GQA) == {"untied"}


def test_labels_that_are_not_shifted(monkeypatch: pytest.MonkeyPatch, causal_lm: Any) -> None:
    def unshifted(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())

    monkeypatch.setattr(causal_lm, "next_token_loss", unshifted)
    assert failing(WRAPPER, GQA) == {"loss"}


def test_logits_that_ignore_the_cache(monkeypatch: pytest.MonkeyPatch, causal_lm: Any) -> None:
    monkeypatch.setattr(causal_lm.MiniMindModel, "_pasts", lambda self, past: [None] * len(self.layers))
    assert failing(WRAPPER, GQA) == {"cached"}


def test_a_vocabulary_of_another_size(monkeypatch: pytest.MonkeyPatch, causal_lm: Any) -> None:
    original = causal_lm.MiniMindForCausalLM.forward

    def shorter(self: Any, *given: Any, **more: Any) -> Any:
        out = original(self, *given, **more)
        wide = copy.copy(out)
        wide.logits = torch.cat((out.logits, out.logits[..., :1] - 100), dim=-1)
        return wide

    monkeypatch.setattr(causal_lm.MiniMindForCausalLM, "forward", shorter)
    assert "logits" in failing(WRAPPER, GQA)


def test_a_least_likely_continuation(monkeypatch: pytest.MonkeyPatch, causal_lm: Any) -> None:
    from explorer.model import generate

    monkeypatch.setattr(generate, "choose", lambda logits, *rest: logits.argmin(-1))
    assert failing(WRAPPER, GQA) == {"greedy"}
