"""Checkpoints as the explorer's weights and input: a named checkpoint, one block of it, and a text's hidden states.

Purpose: offer a checkpoint under a name; give its blocks and what a block receives when the model reads a text; fit a
run's sizes to the text.
Must not know: figures, the page.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from explorer.asked import read_spec
from explorer.checkpoints import Checkpoint, CheckpointError, open_checkpoint
from explorer.limits import LIMITS
from explorer.link import View
from explorer.messages import say
from explorer.model.block import MiniMindBlock
from explorer.model.config import MiniMindConfig
from explorer.model.rope import RotaryEmbedding
from explorer.offers import OFFERS, SHIPPED, SHIPPED_NAME, Offer, has_shipped, message_for_unknown
from explorer.spec import RunSpec, SpecError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

log = logging.getLogger(__name__)


def offer(name: str, source: str | Path) -> Offer:
    """Make a checkpoint choosable as weights = "checkpoint:NAME". Headers are checked now, numbers read when needed.

    source: a folder, a file, or "hub:owner/name@commit", as for open_checkpoint.
    Raises CheckpointError, and then offers nothing.
    """
    config = open_checkpoint(source).config
    fields = {
        "d_model": config.hidden_size,
        "h": config.num_attention_heads,
        "h_kv": config.num_key_value_heads,
        "d_h": config.head_dim,
        "d_ff": config.moe_intermediate_size if config.use_moe else config.intermediate_size,
        "qk_norm": config.qk_norm,
        "norm_eps": config.rms_norm_eps,
        "rope_theta": config.rope_theta,
        "yarn": config.yarn is not None,
        "experts": config.num_experts if config.use_moe else 0,
        "experts_per_token": config.num_experts_per_tok if config.use_moe else 1,
        "norm_topk": config.norm_topk_prob,
    }
    OFFERS[name] = Offer(name, str(source), config.num_hidden_layers, fields)
    _open.cache_clear()
    return OFFERS[name]


def config_of(spec: RunSpec) -> MiniMindConfig:
    """The checkpoint's configuration with the spec's angle step."""
    return replace(_checkpoint(spec).config, angle_step=spec.step)


def block_of(spec: RunSpec, place: torch.device) -> MiniMindBlock:
    """Block `layer` of the spec's checkpoint, in its dtype. Raises SpecError."""
    try:
        block = _checkpoint(spec).block(spec.layer, getattr(torch, spec.dtype))
    except CheckpointError as error:
        raise _unreadable(_offer(spec).source, error) from error
    return block.to(place).requires_grad_(False)


def stream_of(spec: RunSpec) -> Tensor:
    """What block `layer` receives when the checkpoint reads the text: [B, P + T, D]. Raises SpecError."""
    rows = tuple(tuple(ids) for ids in _padded(spec))
    return _stream(_offer(spec).source, spec.layer, rows, spec.padding, spec.dtype)


def tokens_of(spec: RunSpec) -> tuple[tuple[str, ...], ...]:
    """The text of each token, cached ones first, "" where a row is padded: [B][P + T]."""
    tokenizer = _tokenizer(_offer(spec).source)
    pads = spec.padding or (0,) * spec.B
    return tuple(
        tuple("" if n < pad else tokenizer.decode([i], skip_special_tokens=False) for n, i in enumerate(row))
        for row, pad in zip(_padded(spec), pads, strict=True)
    )


def reader_of(name: str) -> tuple[Checkpoint, Tokenizer]:
    """An offered checkpoint, opened, and its tokenizer. Raises SpecError."""
    if name not in OFFERS:
        raise SpecError({"weights": message_for_unknown(name)})
    source = OFFERS[name].source
    return _open(source), _tokenizer(source)


def read(**asked: Any) -> tuple[RunSpec, View, list[str]]:
    """asked.read_spec with the sizes that a text asks for, and a sentence where some of the text is not read."""
    spec, view, notes = read_spec(**asked, fit=fit_to_text)
    if spec.checkpoint and spec.text.strip():
        lengths = _lengths(_offer(spec).source, spec.text)
        pads = spec.padding or (0,) * spec.B
        length = spec.past + spec.T
        left = sum(lengths) - sum(min(n, length - pad) for n, pad in zip(lengths, pads, strict=False))
        if left:
            note = say(
                "{left} of the text's {total} tokens are not read: B = {B}, past + T = {length}.",
                left=left, total=sum(lengths), B=spec.B, length=length,
            )  # fmt: skip
            notes.append(note)
    return spec, view, notes


def fit_to_text(name: str, text: str, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The RunSpec fields that let the text be read: one batch row a line, shorter rows padded on the left.

    given: those of B, T, past and padding that are chosen already; as much is read as they allow. Returns the others of
    B, T and padding, none where what is given cannot be. Raises SpecError for a text without a token, and for one that
    is longer than a run may be.
    """
    chosen = dict(given or {})
    if name not in OFFERS or len(text) > LIMITS.text or not _possible(chosen):
        return {}
    lengths = _lengths(OFFERS[name].source, text)
    if not any(lengths):
        raise _empty()
    pads: Sequence[int] | None = chosen.get("padding")
    rows = chosen.get("B", len(pads) if pads else len(lengths))
    if rows > LIMITS.B:
        message = say("The text has {lines} lines; at most {most} are read. Remove some.", lines=rows, most=LIMITS.B)
        raise SpecError({"text": message})
    read, past = (lengths + [0] * rows)[:rows], chosen.get("past", 0)
    ends = [n + pad for n, pad in zip(read, pads or (0,) * rows, strict=False)]
    fits = max(ends) if pads is None else min(ends)
    tokens = chosen.get("T", max(1, fits - past))
    if tokens > LIMITS.T:
        message = say("A line has {tokens} tokens; at most {most} are read. Shorten it.", tokens=tokens, most=LIMITS.T)
        raise SpecError({"text": message})
    padding = tuple(max(0, min(fits, past + tokens) - n) for n in read)
    fields = {"B": rows, "T": tokens, "padding": padding if any(padding) else ()}
    return {field: value for field, value in fields.items() if field not in chosen}


def _possible(chosen: Mapping[str, Any]) -> bool:
    bounds = {"B": (1, LIMITS.B), "T": (1, LIMITS.T), "past": (0, LIMITS.T)}
    whole = all(low <= chosen.get(name, low) <= high for name, (low, high) in bounds.items())
    pads = chosen.get("padding", ())
    return whole and len(pads) <= LIMITS.B and all(0 <= pad <= 2 * LIMITS.T for pad in pads)


def _offer(spec: RunSpec) -> Offer:
    return OFFERS[spec.checkpoint or ""]


def _checkpoint(spec: RunSpec) -> Checkpoint:
    return _open(_offer(spec).source)


@lru_cache(maxsize=4)
def _open(source: str) -> Checkpoint:
    try:
        return open_checkpoint(source)
    except CheckpointError as error:
        raise _unreadable(source, error) from error


def _unreadable(source: str, error: Exception) -> SpecError:
    """What a visitor is told; why a file of the server's cannot be read any more is for its owner, in the log."""
    log.warning("%s cannot be read: %s", source, error)
    message = say("This checkpoint cannot be read here any more. Choose other weights; the server's log says why.")
    return SpecError({"weights": message})


@lru_cache(maxsize=4)
def _tokenizer(source: str) -> Tokenizer:
    from tokenizers import Tokenizer

    path = _open(source).folder / "tokenizer.json"
    if not path.is_file():
        message = say("This checkpoint has no tokenizer.json, so it cannot read a text. Add the file.")
        raise SpecError({"weights": message})
    return Tokenizer.from_file(str(path))


def _rows(source: str, text: str) -> list[list[int]]:
    """Token numbers of each line that is not blank."""
    lines = [line for line in text.split("\n") if line.strip()]
    return [encoding.ids for encoding in _tokenizer(source).encode_batch(lines)]


def _lengths(source: str, text: str) -> list[int]:
    return [len(row) for row in _rows(source, text)]


def _padded(spec: RunSpec) -> list[list[int]]:
    """Token numbers of each batch row, P + T long, padded on the left as the spec says. Raises SpecError."""
    rows = _rows(_offer(spec).source, spec.text)
    if not rows:
        raise _empty()
    if len(rows) < spec.B:
        message = say(
            "The text has {lines} lines; B = {B} are asked for. Type one line a row.", lines=len(rows), B=spec.B
        )
        raise SpecError({"B": message})
    length, padded = spec.past + spec.T, []
    for n, (ids, pad) in enumerate(zip(rows, spec.padding or (0,) * spec.B, strict=False)):
        if len(ids) < length - pad:
            raise _too_short(spec, n + 1, len(ids), len(ids) + pad - spec.past)
        padded.append([0] * pad + ids[: length - pad])
    return padded


def _empty() -> SpecError:
    return SpecError({"text": say("The text is empty. Type at least one word for the checkpoint to read.")})


def _too_short(spec: RunSpec, line: int, tokens: int, room: int) -> SpecError:
    """A line with fewer tokens than are asked for; room: how many of them the cache leaves to this call."""
    if room < 1:
        message = say(
            "Line {n} of the text has {tokens} tokens, so past = {past} leaves none to this call. "
            "Choose past up to {most}, or lengthen the text.",
            n=line, tokens=tokens, past=spec.past, most=max(0, spec.past + room - 1),
        )  # fmt: skip
        return SpecError({"past": message})
    message = say(
        "Line {n} of the text has {tokens} tokens; past + T = {length} are asked for. "
        "Choose T up to {most}, or lengthen the text.",
        n=line, tokens=tokens, length=spec.past + spec.T, most=room,
    )  # fmt: skip
    return SpecError({"T": message})


@lru_cache(maxsize=4)  # some 32 MiB each at the largest sizes
def _stream(source: str, layer: int, rows: tuple[tuple[int, ...], ...], padding: tuple[int, ...], dtype: str) -> Tensor:
    ids = torch.tensor(rows)
    mask = None
    if any(padding):
        mask = (torch.arange(ids.shape[1])[None] >= torch.tensor(padding)[:, None]).long()
    _check_text(ids, _open(source).config)
    try:
        return _open(source).hidden_states(ids, layer, mask, getattr(torch, dtype))
    except CheckpointError as error:
        raise _unreadable(source, error) from error


def _check_text(ids: Tensor, config: MiniMindConfig) -> None:
    """Whether the model has a position and an embedding for every token [B, P + T]. Raises SpecError."""
    positions, words, largest = config.max_position_embeddings, config.vocab_size, int(ids.max())
    if ids.shape[1] > positions:
        message = say(
            "The text has {tokens} tokens a line; this checkpoint has {most} positions. Choose a smaller T or past.",
            tokens=ids.shape[1], most=positions,
        )  # fmt: skip
        raise SpecError({"T": message})
    if largest >= words:
        message = say(
            "The tokenizer makes token {largest} of the text; this checkpoint has embeddings 0 to {last}. "
            "Its tokenizer.json belongs to another model: choose other weights, or put its own file there.",
            largest=largest, last=words - 1,
        )  # fmt: skip
        raise SpecError({"weights": message})


def rope_of(spec: RunSpec) -> RotaryEmbedding:
    """The checkpoint's RoPE tables."""
    return RotaryEmbedding(config_of(spec))


if has_shipped():
    offer(SHIPPED_NAME, SHIPPED)
