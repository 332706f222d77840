"""Exercise 7: the last axis at every step of the course's model, and one decoding step with a cache.

The course's model runs at its small size, where no two axes are equally long, and its shapes are read off.
Must not know: the page.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from functools import cache
from typing import Any

import torch
from torch import nn

from explorer.course.transformer_model import TransformerConfig, TransformerModel
from explorer.run import run
from explorer.spec import RunSpec
from explorer.studio import typed
from explorer.studio.exercise import Marked, Task, summed_up
from explorer.studio.shapes import hint
from explorer.studio.texts import Texts, symbol_of

BATCH, TOKENS = 2, 5
LETTERS = ("T", "Dh", "D", "F", "V")
STEPS = ("input_ids", "token_embedding", "cos", "layer", "final_norm", "lm_head")
DECODE = ("Tq", "Tk", "scores", "present_k")


@cache
def last_axes() -> dict[str, str]:
    """Step -> the letter of its last axis, from a run of the course's model."""
    config = TransformerConfig()
    model = TransformerModel(config).eval()
    length: dict[str, int] = {"input_ids": TOKENS}

    def seen(step: str) -> Any:
        def hook(module: nn.Module, given: tuple[Any, ...], value: torch.Tensor) -> None:
            length[step] = value.shape[-1]
            if step == "layer":
                length["cos"] = given[1][0].shape[-1]

        return hook

    for step, module in (
        ("token_embedding", model.token_embedding), ("layer", model.layers[0]), ("final_norm", model.final_norm),
        ("lm_head", model.lm_head),
    ):  # fmt: skip
        module.register_forward_hook(seen(step))
    with torch.no_grad():
        model(torch.zeros(BATCH, TOKENS, dtype=torch.long))
    sizes = {
        "T": TOKENS, "Dh": config.head_dim, "D": config.hidden_size, "F": config.ffn_width, "V": config.vocab_size,
    }  # fmt: skip
    letters = {n: letter for letter, n in sizes.items()}
    return {step: letters[length[step]] for step in STEPS}


@cache
def code() -> str:
    """The body of the model's forward, without the comments that tell its shapes."""
    function: Any = ast.parse(textwrap.dedent(inspect.getsource(TransformerModel.forward))).body[0]
    lines = [node for node in function.body[1:] if not isinstance(node, ast.If)]  # without docstring and check
    body = ast.unparse(ast.Module(lines, []))
    return f"def forward(self, input_ids):\n{textwrap.indent(body, '    ')}".replace(": Tensor", "")


def decoding() -> RunSpec:
    """One new token after four cached ones."""
    return RunSpec(T=1, past=4, d_model=12, h=3, weights="random")


def task(seed: int, texts: Texts) -> Task:
    spec = decoding()
    return {
        "code": code(),
        "steps": [texts.say(f"step.{step}") for step in STEPS],
        "letters": [texts.say(f"letter.{letter}") for letter in LETTERS],
        "decode": texts.say("decode", past=spec.past, T=spec.T, d_model=spec.d_model, h=spec.h),
        "fields": [
            texts.say(f"field.{name}", **({"symbol": symbol_of(name)} if len(name) > 2 else {})) for name in DECODE
        ],
        "example": texts.say("example"),
    }  # fmt: skip


def mark(answer: Any, seed: int, texts: Texts) -> Marked:
    """answer: {"axes": which letter at each step, "decode": what was typed}."""
    marks: list[bool | None] = []
    hints = []
    for step, part in zip(STEPS, typed.parts(answer, len(STEPS), "axes"), strict=True):
        given = typed.choice(part, len(LETTERS))
        right = None if given is None else LETTERS[given] == last_axes()[step]
        marks.append(right)
        hints.append("" if right is not False else texts.say(f"hint.{step}"))
    for name, text in zip(DECODE, typed.parts(answer, len(DECODE), "decode"), strict=True):
        right, told = _decoded(name, text, texts)
        marks.append(right)
        hints.append(told)
    return Marked(tuple(marks), tuple(hints), summed_up(marks, texts), all(marks))


def _decoded(name: str, text: Any, texts: Texts) -> tuple[bool | None, str]:
    trace = run(decoding())
    if typed.blank(text):
        return None, ""
    if name in ("Tq", "Tk"):
        right = typed.whole(text, 0, typed.LARGEST) == trace["scores"].shape[-2 if name == "Tq" else -1]
        return right, "" if right else texts.say(f"hint.{name}")
    given, shape = typed.shape(text), trace[name].shape
    right = given == shape
    return right, "" if right else hint(given, shape, trace.axes(name), trace.sizes, texts)
