"""Row 6, Model wrapper: embedding, blocks, final norm and tied head as a Hugging Face model.

Purpose: its check, on a small model whose blocks are this run's. Its sentences stand in `wrapper.md`.
Must not know: other rows, the page. It imports transformers, and only when it runs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from explorer import allowance
from explorer.bridge.case import Case, apart, bound, model_config, plain, times, tolerance
from explorer.bridge.row import Found, Point, Row
from explorer.model.config import MiniMindConfig
from explorer.spec import RunSpec
from explorer.stages.source import Lines

PASSES = 8
LAYERS, VOCABULARY = 2, 64
MOST_ROWS, MOST_TOKENS = 2, 32
MOST_PARAMETERS = 10_000_000  # of one block; beyond, the same heads on a narrower stream
NARROW, NARROW_HEAD, NARROW_HIDDEN = 256, 32, 512
IGNORED = -100


@dataclass(frozen=True)
class Small:
    """A language model of the run's shape and a text for it. own: its blocks have the run's weights."""

    model: Any
    config: MiniMindConfig
    ids: Tensor
    own: bool
    dtype: str

    def __call__(self, ids: Tensor, **more: Any) -> Any:
        allowance.check()
        with torch.no_grad():
            return self.model(ids, **more)

    @property
    def tolerance(self) -> float:
        return LAYERS * tolerance(self.dtype, self.ids.shape[1], self.config.angle_step)


def check(spec: RunSpec) -> Found:
    """Logits [B,T,V], one tied parameter, the loss of shifted labels, cached logits equal to whole ones, generation."""
    bound(spec, PASSES)
    small = _small(Case.of(spec, PASSES))
    whole = small(small.ids)
    return Found((
        _logits(small, whole.logits), _tied(small, spec), _loss(small, whole.logits, spec),
        _cached(small, whole.logits), _greedy(small, whole.logits),
    ))  # fmt: skip


def _small(case: Case) -> Small:
    from explorer.model.causal_lm import MiniMindForCausalLM

    allowance.check()
    config = replace(
        case.config, num_hidden_layers=LAYERS, vocab_size=VOCABULARY, tie_word_embeddings=True, dropout=0.0,
        bos_token_id=1, eos_token_id=2, pad_token_id=0,
    )  # fmt: skip
    own = sum(value.numel() for value in case.state.values()) <= MOST_PARAMETERS
    if not own:
        hidden, head = min(config.hidden_size, NARROW), min(config.head_dim, NARROW_HEAD)
        config = replace(config, hidden_size=hidden, head_dim=head, intermediate_size=NARROW_HIDDEN,
                         moe_intermediate_size=NARROW_HIDDEN)  # fmt: skip
    dtype = "float32" if config.use_moe else case.dtype  # an undecided router may turn on the last bit
    model: Any = MiniMindForCausalLM(config)
    allowance.check()
    chance = torch.Generator().manual_seed(case.spec.seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.copy_(torch.randn(parameter.shape, generator=chance) / parameter.shape[1] ** 0.5)
    if own:
        for layer in model.model.layers:
            layer.load_state_dict(case.state)
    rows = min(case.spec.B, MOST_ROWS)
    tokens = min(max(2, case.spec.T), MOST_TOKENS, config.max_position_embeddings - 1)  # one more is generated
    ids = torch.from_numpy(np.random.default_rng([case.spec.seed, 3]).integers(3, VOCABULARY, (rows, tokens)))
    place = case.stream.device
    return Small(model.to(place, getattr(torch, dtype)).eval(), config, ids.to(place), own, dtype)


def _logits(small: Small, logits: Tensor) -> Point:
    wanted = (*small.ids.shape, VOCABULARY)
    values = {
        "shape": times(logits.shape), "wanted": times(wanted), "layers": LAYERS, "width": small.config.hidden_size,
        "dtype": small.dtype,
    }  # fmt: skip
    return Point("logits" if small.own else "logits_narrow", tuple(logits.shape) == wanted, values, not small.own)


def _tied(small: Small, spec: RunSpec) -> Point:
    """One parameter object under two names, counted once."""
    head, embedding = small.model.lm_head.weight, small.model.model.embed_tokens.weight
    counted = sum(parameter.numel() for parameter in small.model.parameters())
    expected = small.config.parameter_count()
    values = {"counted": counted, "expected": expected, "shape": times(embedding.shape)}
    holds = head is embedding and counted == expected
    apart_in_file = not model_config(plain(spec)).tie_word_embeddings
    key = "tied" if head is embedding else "untied"
    return Point(f"{key}_near" if apart_in_file else key, holds, values, apart_in_file)


def _loss(small: Small, logits: Tensor, spec: RunSpec) -> Point:
    """The model's loss against the mean of −log softmax at the next token, in float64; one label does not count."""
    labels = small.ids.clone()
    if labels.numel() > 2:
        labels[0, -1] = IGNORED
    loss = float(small(small.ids, labels=labels).loss)
    scores, targets = logits.cpu().double().numpy()[:, :-1], labels.cpu().numpy()[:, 1:]
    top = scores.max(-1, keepdims=True)
    logs = scores - top - np.log(np.exp(scores - top).sum(-1, keepdims=True))
    counts = targets != IGNORED
    picked = np.take_along_axis(logs, np.where(counts, targets, 0)[..., None], -1)[..., 0]
    wanted = float(-picked[counts].mean())
    gap = abs(loss - wanted) / max(abs(wanted), 1e-30)
    values = {"loss": loss, "wanted": wanted, "gap": gap, "tolerance": small.tolerance, "labels": int(counts.sum())}
    return Point("loss_alone" if spec.T == 1 else "loss", gap <= small.tolerance, values, spec.T == 1)


def _cached(small: Small, logits: Tensor) -> Point:
    before = small(small.ids[:, :-1], use_cache=True).past_key_values
    one = small(small.ids[:, -1:], past_key_values=before, use_cache=True)
    gap = apart(one.logits, logits[:, -1:])
    caches = {tuple(x.shape) for pair in one.past_key_values for x in pair}
    values = {
        "gap": gap, "tolerance": small.tolerance, "dtype": small.dtype, "layers": len(one.past_key_values),
        "cache": ", ".join(sorted(map(times, caches))),
    }  # fmt: skip
    return Point("cached", gap <= small.tolerance, values)


def _greedy(small: Small, logits: Tensor) -> Point:
    """generate at temperature 0 continues with the likeliest token of the last logits."""
    made = small.model.generate(small.ids, max_new_tokens=1, temperature=0.0, eos_token_id=None)
    allowance.check()
    last = logits[:, -1].cpu().double()
    chosen = last.gather(-1, made[:, -1:].cpu())[:, 0]
    short = float((last.amax(-1) - chosen).max()) / max(float(last.abs().max()), 1e-30)
    values = {"token": ", ".join(map(str, made[:, -1].tolist())), "short": short, "tolerance": small.tolerance}
    return Point(
        "greedy", tuple(made.shape) == (len(made), small.ids.shape[1] + 1) and short <= small.tolerance, values
    )


ROW = Row(
    number=6,
    key="wrapper",
    check=check,
    lines=(
        Lines("model.causal_lm", "MiniMindModel.forward", "x = self.dropout", "x = self.norm"),
        Lines("model.causal_lm", "MiniMindForCausalLM.__init__"),
        Lines("model.causal_lm", "MiniMindForCausalLM.forward", "states =", "loss, logits = next_token_loss"),
        Lines("model.causal_lm", "next_token_loss", "targets ="),
    ),
    slow=True,
)
