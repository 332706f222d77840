"""Continue a text token by token: feed what the cache lacks, filter the logits, draw, stop.

Works on any model that maps token numbers to an output with `logits` and `past_key_values`; knows nothing of what is
inside, and nothing of text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

_NEARLY_ZERO = 1e-5  # temperatures below leave float32 no room: the best token has all the probability


class LanguageModel(Protocol):
    """input_ids [B,T] -> an object with `logits` [B,kept,V] and, with use_cache, `past_key_values`."""

    def __call__(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: Any = None,
        *,
        use_cache: bool = False,
        logits_to_keep: int = 0,
    ) -> Any: ...


class Streamer(Protocol):
    """Receives the prompt [B,T], then each step's tokens [B], then one end; Hugging Face's streamers fit."""

    def put(self, value: Tensor) -> None: ...

    def end(self) -> None: ...


@torch.no_grad()
def generate(
    model: LanguageModel,
    input_ids: Tensor,
    attention_mask: Tensor | None = None,
    *,
    max_new_tokens: int = 128,
    temperature: float = 0.85,
    top_k: int = 50,
    top_p: float = 0.85,
    repetition_penalty: float = 1.0,
    eos_token_id: int | Sequence[int] | None = None,
    pad_token_id: int | None = None,
    past_key_values: Any = None,
    use_cache: bool = True,
    generator: torch.Generator | None = None,
    seed: int | None = None,
    streamer: Streamer | None = None,
    max_positions: int | None = None,
) -> Tensor:
    """The prompt and its continuation, [B, T + new], new ≤ max_new_tokens.

    input_ids [B,T], shorter rows padded on the left; attention_mask [B,T], 1 real and 0 padding.
    temperature: divides the logits; 0 takes the most likely token. top_k: draw among the k best (0, or more than the
    vocabulary: all). top_p: draw among the fewest best tokens that together have this probability (1: all; the most
    likely one always stays). repetition_penalty: makes tokens that the row already has less likely where above 1.
    eos_token_id: a row ends with any of these; a row that has ended is filled with pad_token_id (else the stop token)
    until all have. past_key_values: a cache of the prompt's first tokens. seed or generator: same draw, same text.
    The defaults are MiniMind's.

    Raises ValueError for options out of range, for a prompt that cannot be continued, and where prompt and
    continuation would not fit into max_positions.
    """
    _check_options(max_new_tokens, temperature, top_k, top_p, repetition_penalty)
    _check_prompt(input_ids, attention_mask, max_new_tokens, max_positions)
    if seed is not None:
        generator = torch.Generator(input_ids.device).manual_seed(seed)
    stops = _stop_tokens(eos_token_id, input_ids.device)
    padding = pad_token_id if pad_token_id is not None else (int(stops[0]) if len(stops) else 0)
    ended = torch.zeros(input_ids.shape[0], dtype=torch.bool, device=input_ids.device)
    ids, mask = input_ids, attention_mask
    try:
        if streamer:
            streamer.put(ids.cpu())
        for _ in range(max_new_tokens):
            cached = past_key_values[0][0].shape[2] if past_key_values else 0
            output = model(ids[:, cached:], mask, past_key_values, use_cache=use_cache, logits_to_keep=1)
            past_key_values = output.past_key_values if use_cache else None
            logits = penalise_repetition(output.logits[:, -1].float(), ids, mask, repetition_penalty)
            new = choose(logits, temperature, top_k, top_p, generator).masked_fill(ended, padding)
            ids = torch.cat((ids, new[:, None]), dim=1)
            mask = None if mask is None else torch.cat((mask, mask.new_ones(len(mask), 1)), dim=1)
            ended = ended | torch.isin(new, stops)
            if streamer:
                streamer.put(new.cpu())
            if ended.all():
                break
    finally:
        if streamer:
            streamer.end()  # whoever waits for the text must not wait for ever
    return ids


def choose(
    logits: Tensor, temperature: float, top_k: int, top_p: float, generator: torch.Generator | None = None
) -> Tensor:
    """The next token of each row: logits [B,V] -> int64 [B]."""
    if temperature < _NEARLY_ZERO:
        return logits.argmax(-1)
    scaled = (logits - logits.amax(-1, keepdim=True)) / temperature
    likely = keep_top_p(keep_top_k(scaled, top_k), top_p)
    return torch.multinomial(likely.softmax(-1), 1, generator=generator)[:, 0]


def keep_top_k(logits: Tensor, k: int) -> Tensor:
    """−∞ for all but the k largest of each row [B,V], and those equal to the k-th. k = 0 keeps all."""
    if k == 0 or k >= logits.shape[-1]:
        return logits
    smallest_kept = logits.topk(k, dim=-1).values[:, -1:]
    return logits.masked_fill(logits < smallest_kept, -torch.inf)


def keep_top_p(logits: Tensor, p: float) -> Tensor:
    """−∞ for all but the most likely tokens of each row [B,V] that together reach probability p.

    Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration", section 3.1 (nucleus sampling). A token stays
    if those before it have less than p together; the first one has nothing before it and always stays.
    """
    if p >= 1:
        return logits
    ordered, place = logits.sort(dim=-1, descending=True, stable=True)
    probs = ordered.softmax(-1)
    dropped = probs.cumsum(-1) - probs >= p
    dropped[:, 0] = False
    return logits.masked_fill(torch.zeros_like(dropped).scatter(-1, place, dropped), -torch.inf)


def penalise_repetition(logits: Tensor, ids: Tensor, mask: Tensor | None, penalty: float) -> Tensor:
    """Logits [B,V] of the tokens that a row of ids [B,T] has, padding left out, moved down by a factor.

    Keskar et al. 2019, "CTRL", section 4.1: positive logits are divided by the penalty, negative ones multiplied.
    """
    if penalty == 1:
        return logits
    real = torch.ones_like(ids) if mask is None else mask.to(ids.dtype)
    counts = torch.zeros(logits.shape, dtype=ids.dtype, device=ids.device).scatter_add(-1, ids, real)
    lowered = torch.where(logits > 0, logits / penalty, logits * penalty)
    return torch.where(counts > 0, lowered, logits)


def _stop_tokens(eos_token_id: int | Sequence[int] | None, device: torch.device) -> Tensor:
    if eos_token_id is None:
        eos_token_id = []
    elif isinstance(eos_token_id, int):
        eos_token_id = [eos_token_id]
    return torch.tensor(list(eos_token_id), dtype=torch.int64, device=device)


def _check_options(
    max_new_tokens: int, temperature: float, top_k: int, top_p: float, repetition_penalty: float
) -> None:
    allowed = {
        "max_new_tokens": (max_new_tokens, max_new_tokens >= 0, "0 or more"),
        "temperature": (temperature, 0 <= temperature < torch.inf, "0 (greedy) or more"),
        "top_k": (top_k, top_k >= 0, "0 (all tokens) or more"),
        "top_p": (top_p, 0 <= top_p <= 1, "0 to 1 (all tokens)"),
        "repetition_penalty": (repetition_penalty, 0 < repetition_penalty < torch.inf, "above 0; 1 changes nothing"),
    }
    for name, (value, valid, text) in allowed.items():
        if not valid:
            raise ValueError(f"{name}={value}: give {text}")


def _check_prompt(ids: Tensor, mask: Tensor | None, new: int, limit: int | None) -> None:
    if ids.dim() != 2 or 0 in ids.shape:
        raise ValueError(f"input_ids has shape {tuple(ids.shape)}; give [B, T] with at least one token in each row")
    if mask is not None and mask.shape != ids.shape:
        raise ValueError(f"attention_mask has shape {tuple(mask.shape)}, input_ids {tuple(ids.shape)}; make them equal")
    if mask is not None and not mask[:, -1].all():
        raise ValueError("a row ends in padding, so there is no last token to continue from; pad on the left")
    if limit is not None and ids.shape[1] + new > limit:
        raise ValueError(
            f"{ids.shape[1]} prompt tokens and {new} new ones are more than this model's {limit} positions; "
            f"ask for at most {max(limit - ids.shape[1], 0)} new tokens or shorten the prompt"
        )
