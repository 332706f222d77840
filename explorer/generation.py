"""Continuing a text with an offered checkpoint, token by token.

Purpose: text in, text out as it grows, for the command line and the HTTP API; a caller who leaves stops the work, and
so does the end of the request's allowance.
Must not know: gradio, argparse, figures.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from explorer import device, sources
from explorer.allowance import Allowance, current
from explorer.checkpoints import CheckpointError
from explorer.limits import LIMITS
from explorer.model.generate import generate
from explorer.offers import OFFERS
from explorer.spec import CHECKPOINT_PREFIX, SpecError
from explorer.typed import shown

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_one_at_a_time = threading.Lock()  # a model is as large as everything else together, and the processor is one


@dataclass(frozen=True)
class Sampling:
    """How the next token is chosen; the defaults are MiniMind's. temperature 0 takes the most likely token.

    Raises SpecError naming every wrong field.
    """

    new_tokens: int = 64
    temperature: float = 0.85
    top_k: int = 50
    top_p: float = 0.85
    repetition_penalty: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        whole = {"new_tokens": (1, LIMITS.new_tokens), "top_k": (0, 10**6), "seed": (0, 2**32 - 1)}
        real = {"temperature": (0.0, 100.0), "top_p": (0.0, 1.0), "repetition_penalty": (0.01, 100.0)}
        errors = {}
        for name, (low, high) in {**whole, **real}.items():
            value = getattr(self, name)
            kind = (int,) if name in whole else (int, float)
            if isinstance(value, bool) or not isinstance(value, kind):
                what = "a whole number" if name in whole else "a number"
                errors[name] = f"{name} = {shown(value)} is not {what}. Give {what} from {low:g} to {high:g}."
            elif not low <= value <= high:  # NaN neither
                errors[name] = f"{name} = {shown(value)} is out of range. It goes from {low:g} to {high:g} here."
        if errors:
            raise SpecError(errors)


@dataclass(frozen=True)
class Written:
    """What there is so far. text: the continuation without the prompt; tokens: its length; done: whether it ended;
    stopped: whether the model itself ended it."""

    text: str
    tokens: int
    done: bool = False
    stopped: bool = False


class _Left(Exception):
    """Nobody reads what is written."""


class _Stream:
    """Hands each new token over to the reader; a Streamer of explorer.model.generate."""

    def __init__(self, allowance: Allowance | None) -> None:
        self.tokens: SimpleQueue[int | BaseException | None] = SimpleQueue()
        self.left = threading.Event()
        self._allowance = allowance
        self._is_prompt = True

    def check(self) -> None:
        """Raises where nobody will read the next token."""
        if self.left.is_set():
            raise _Left
        if self._allowance:
            self._allowance.check()

    def wait(self) -> None:
        """While another text is written: time does not count, but leaving does."""
        if self._allowance:
            self._allowance.restart()
        self.check()

    def put(self, value: Tensor) -> None:
        self.check()
        if not self._is_prompt:
            self.tokens.put(int(value[0]))
        self._is_prompt = False

    def end(self) -> None:
        """The writing thread itself says when it is over."""


def offered(name: str) -> str:
    """The checkpoint of that name, "checkpoint:" before it or not; the first one for "". Raises SpecError."""
    known = name if name in OFFERS else name.removeprefix(CHECKPOINT_PREFIX) if name else next(iter(OFFERS), "")
    if known in OFFERS:
        return known
    if not OFFERS:
        raise SpecError({"checkpoint": "No checkpoint is offered here, so no text can be continued."})
    message = f"There is no checkpoint {shown(known)} here. Choose one of {', '.join(OFFERS)}."
    raise SpecError({"checkpoint": message})


def write(name: str, prompt: str, sampling: Sampling | None = None, where: str = "auto") -> Iterator[Written]:
    """The continuation of `prompt` by a checkpoint, named as for `offered`, as it grows; the last one is done.

    Closing the iterator stops the model at its next token. Raises SpecError for an unknown checkpoint, an empty or too
    long prompt, or a device that is not here; the iterator raises Stopped where the allowance in force ends.
    """
    sampling = sampling or Sampling()
    if len(prompt) > LIMITS.text:
        raise SpecError({"prompt": f"The prompt has {len(prompt)} characters; at most {LIMITS.text} are read."})
    try:
        place = device.choose(where)
    except device.DeviceError as error:
        raise SpecError({"device": str(error)}) from None
    name = offered(name)
    try:
        checkpoint, tokenizer = sources.reader_of(name)
    except SpecError as error:
        raise SpecError({"checkpoint": error.errors["weights"]}) from None
    ids = tokenizer.encode(prompt).ids
    while ids and ids[-1] in _stops(name):  # some tokenizers end every text
        ids.pop()
    positions = checkpoint.config.max_position_embeddings
    if 0 < len(ids) < positions < len(ids) + sampling.new_tokens:
        message = (
            f"new_tokens = {sampling.new_tokens} does not fit: this model has {positions} positions, and the prompt "
            f"takes {len(ids)}. Ask for at most {positions - len(ids)}."
        )
        raise SpecError({"new_tokens": message})
    room = positions - sampling.new_tokens
    if not 0 < len(ids) <= room:
        said = f"has {len(ids)} tokens; {max(0, room)} fit. Shorten it." if ids else "is empty. Type at least one word."
        raise SpecError({"prompt": f"The prompt {said}"})
    return _written(name, tokenizer, ids, sampling, place)


def _written(
    name: str, tokenizer: Tokenizer, ids: list[int], sampling: Sampling, place: torch.device
) -> Iterator[Written]:
    stream = _Stream(current())
    writer = threading.Thread(target=_run, args=(stream, name, ids, sampling, place), daemon=True, name="writer")
    writer.start()
    new: list[int] = []
    try:
        while (token := stream.tokens.get()) is not None:
            if isinstance(token, BaseException):
                raise token
            new.append(token)
            _take_all(stream, new)
            yield Written(_text(tokenizer, new, _stops(name)), len(new))
        ended = bool(new) and new[-1] in _stops(name)
        yield Written(_text(tokenizer, new, _stops(name)), len(new), done=True, stopped=ended)
    finally:
        stream.left.set()
        writer.join()


def _take_all(stream: _Stream, new: list[int]) -> None:
    """Also those tokens that came while the last text was on its way."""
    while True:
        try:
            token = stream.tokens.get_nowait()
        except Empty:
            return
        if not isinstance(token, int):
            stream.tokens.put(token)
            return
        new.append(token)


def _run(stream: _Stream, name: str, ids: list[int], sampling: Sampling, place: torch.device) -> None:
    """In a thread of its own: put tokens, then None, or the error in its place."""
    try:
        while not _one_at_a_time.acquire(timeout=0.1):
            stream.wait()
        try:
            generate(
                _model(name, OFFERS[name].source, str(place)), torch.tensor([ids], device=place),
                max_new_tokens=sampling.new_tokens, temperature=sampling.temperature, top_k=sampling.top_k,
                top_p=sampling.top_p, repetition_penalty=sampling.repetition_penalty,
                eos_token_id=list(_stops(name)), seed=sampling.seed, streamer=stream,
            )  # fmt: skip
        finally:
            _one_at_a_time.release()
        stream.tokens.put(None)
    except _Left:
        pass
    except CheckpointError as error:
        stream.tokens.put(SpecError({"checkpoint": str(error)}))
    except Exception as error:
        stream.tokens.put(error)


@lru_cache(maxsize=1)
def _model(name: str, source: str, place: str) -> Any:
    """The whole language model. The first call imports transformers, which takes seconds."""
    model: nn.Module = sources.reader_of(name)[0].model()
    return model.to(torch.device(place)).requires_grad_(False)


def _stops(name: str) -> tuple[int, ...]:
    stop = sources.reader_of(name)[0].config.eos_token_id
    return tuple(stop) if isinstance(stop, (list, tuple)) else () if stop is None else (stop,)


def _text(tokenizer: Tokenizer, new: list[int], stops: tuple[int, ...]) -> str:
    return str(tokenizer.decode([token for token in new if token not in stops]))
