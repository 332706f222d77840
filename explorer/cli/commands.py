"""What each command does with its arguments.

Purpose: arguments -> text on standard output or a file; notes and progress go to standard error.
Must not know: how arguments are spelled, gradio.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from explorer.cli.options import offer, read_run

if TYPE_CHECKING:
    from explorer.capture import Trace
    from explorer.capture.ledger import Ledger
    from explorer.spec import RunSpec


class CommandError(Exception):
    """Something that was asked for cannot be done; the message is for the person who asked."""


def trace(arguments: argparse.Namespace) -> int:
    from explorer import answers

    spec = _spec(arguments)
    out = Path(arguments.out) if arguments.out else None
    if out is not None and out.suffix not in (".json", ".npz"):
        raise CommandError(f"--out {out}: the name must end in .json or .npz.")
    if out is None or out.suffix == ".json":
        _write(json.dumps(answers.trace(spec, arguments.only), ensure_ascii=False, allow_nan=False), out)
        return 0
    _write_npz(out, answers.traced(spec), arguments.only)
    return 0


def _write_npz(out: Path, done: Trace, only: list[str]) -> None:
    """Every quantity, or the quantities and weights asked for, under its name, and the settings as JSON text."""
    import numpy as np

    from explorer import answers
    from explorer.asked import as_settings

    arrays = {name: answers.values(done, name) for name in answers.chosen(done, only)}
    settings = json.dumps(as_settings(done.spec) if done.spec else {}, ensure_ascii=False)
    with _opened(out) as file:
        np.savez_compressed(file, allow_pickle=False, **arrays, settings=np.array(settings))


def ledger(arguments: argparse.Namespace) -> int:
    from explorer import answers

    spec = _spec(arguments)
    if arguments.json:
        _write(json.dumps(answers.ledger(spec), ensure_ascii=False, indent=1))
    else:
        _write(str(answers.traced(spec).ledger()))
    return 0


def figure(arguments: argparse.Namespace) -> int:
    from explorer import answers
    from explorer.draw.figure import to_plotly

    spec = _spec(arguments)
    out = Path(arguments.out)
    drawn = answers.figure(spec, arguments.name, arguments.row, arguments.head, arguments.lang)
    picture: Any = to_plotly(drawn, arguments.theme)
    if out.suffix == ".html":
        _write(picture.to_html(include_plotlyjs=True, full_html=True), out)
    elif out.suffix == ".json":
        _write(picture.to_json(), out)
    elif out.suffix in (".png", ".svg", ".pdf"):
        _write_picture(picture, out)
    else:
        raise CommandError(f"--out {out}: the name must end in .html, .json, .png, .svg or .pdf.")
    return 0


def _write_picture(picture: Any, out: Path) -> None:
    from importlib.util import find_spec

    if find_spec("kaleido") is None:
        raise CommandError(f"--out {out}: pictures need one more package: pip install kaleido. Or write .html.")
    with _opened(out) as file:
        file.write(picture.to_image(format=out.suffix[1:], scale=2))


def generate(arguments: argparse.Namespace) -> int:
    from explorer import generation
    from explorer.cli.progress import progress
    from explorer.offers import OFFERS, SHIPPED_NAME

    name = offer(arguments.checkpoint) if arguments.checkpoint else SHIPPED_NAME
    if name not in OFFERS:
        raise CommandError("This copy has no checkpoint of its own. Give one with --checkpoint PATH.")
    prompt = sys.stdin.read() if arguments.prompt == "-" else arguments.prompt
    sampling = generation.Sampling(
        arguments.new_tokens, arguments.temperature, arguments.top_k, arguments.top_p, arguments.repetition_penalty,
        arguments.seed,
    )  # fmt: skip
    shown, last = "", generation.Written("", 0)
    written = generation.write(name, prompt, sampling, arguments.device)
    for last in progress(written, "tokens") if arguments.json else written:
        if not arguments.json:  # the end may still change while a letter of several bytes is on its way
            sure = last.text if last.done else last.text.rstrip("\ufffd")
            if sure.startswith(shown):
                print(sure[len(shown) :], end="", flush=True)
                shown = sure
    if arguments.json:
        answer = {"prompt": prompt, "text": last.text, "tokens": last.tokens, "stopped": last.stopped}
        _write(json.dumps(answer, ensure_ascii=False))
    else:
        print()
    return 0


def check(arguments: argparse.Namespace) -> int:
    from explorer.checkpoints import CheckpointError, check_report, open_checkpoint

    allow = arguments.allow_hub or None
    try:
        _write(check_report(arguments.checkpoint, allow_hub=allow))
        checkpoint = open_checkpoint(arguments.checkpoint, allow_hub=allow)
        rows = _block_rows(checkpoint, arguments.layer, arguments.T)
    except CheckpointError as error:
        print(error, file=sys.stderr)
        return 1
    _write(f"\nBlock {arguments.layer} on {arguments.T} tokens:\n\n{rows}")
    return 0


def _block_rows(checkpoint: Any, layer: int, tokens: int) -> Ledger:
    """The ledger of one block when the model reads token numbers 0, 1, 2, …; no tokenizer is needed."""
    import torch

    from explorer.capture import record
    from explorer.limits import LIMITS
    from explorer.model.rope import RotaryEmbedding

    positions = checkpoint.config.max_position_embeddings
    most, why = (positions, "this checkpoint has no more positions") if positions < LIMITS.T else (LIMITS.T, "")
    if not 1 <= tokens <= most:
        raise CommandError(f"--T {tokens}: a ledger takes 1 to {most} tokens{f'; {why}' if why else ''}.")
    ids = torch.arange(tokens)[None] % checkpoint.config.vocab_size
    block = checkpoint.block(layer)
    hidden = checkpoint.hidden_states(ids, layer)
    return record(block, hidden, RotaryEmbedding(checkpoint.config)(0, tokens, ids.device)).ledger()


def bridge(arguments: argparse.Namespace) -> int:
    """One verdict a row, with the numbers that it rests on; 1 if one of them fails."""
    from explorer.bridge import ROWS
    from explorer.quantities import QUANTITIES

    spec = _spec(arguments)
    by_link = len(spec.edits) - len(arguments.edit)
    targets = [edit.target for edit in spec.edits]
    if wrong := [target for target in targets[by_link:] if target in QUANTITIES]:
        raise CommandError(
            f"--edit: the checks run without edits of quantities such as {wrong[0]}. Edit weights alone."
        )
    if spec.switches or any(target in QUANTITIES for target in targets[:by_link]):
        print("note: The checks run without the link's what-ifs and edits of quantities.", file=sys.stderr)
    held = True
    for row in ROWS:
        if arguments.row and row.number not in arguments.row:
            continue
        found = row.check(spec)
        held = held and found.holds
        _write(f"{_mark(found.holds)} {row.number} {_plain(row.text(arguments.lang).title)}")
        for point, text in zip(found.points, row.sentences(found, arguments.lang), strict=True):
            _write(f"    {_mark(point.holds)} {_plain(text)}")
    return 0 if held else 1


def _mark(holds: bool) -> str:
    return "holds " if holds else "FAILS "


def _plain(html: str) -> str:
    """A sentence without its marks: X<sub>next</sub> is X_next."""
    from html import unescape

    from explorer.draw.numbers import spoken

    return unescape(re.sub(r"<[^>]+>", "", spoken(html)))


def export(arguments: argparse.Namespace) -> int:
    from explorer.cli.progress import progress
    from explorer.export import page

    spec = _spec(arguments)
    out = Path(arguments.file)
    if out.suffix not in (".html", ".htm"):
        raise CommandError(f"{out}: the page is written to a file whose name ends in .html.")
    for name, count, what in (("row", spec.B, "batch row"), ("head", spec.h, "head")):
        if not 0 <= (asked := getattr(arguments, name)) < count:
            raise CommandError(f"This run has no {what} {asked}. Choose one from 0 to {count - 1}.")
    _write(page(spec, arguments.row, arguments.head, arguments.lang, progress, arguments.view), out)
    return 0


def _spec(arguments: argparse.Namespace) -> RunSpec:
    """The run; a language, batch row or head that was not asked for becomes the link's."""
    spec, view, notes = read_run(arguments)
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    if getattr(arguments, "lang", "") is None:
        arguments.lang = view.lang or "en"
    for name in ("row", "head"):
        if getattr(arguments, name, 0) is None:
            setattr(arguments, name, getattr(view, name))
    arguments.view = view
    return spec


def _write(text: str, out: Path | None = None) -> None:
    """To standard output, or to a file, said on standard error."""
    if out is None:
        print(text)
        return
    with _opened(out) as file:
        file.write(text.encode("utf-8"))


def _opened(out: Path) -> Any:
    try:
        file = out.open("wb")
    except OSError as error:
        raise CommandError(f"{out} cannot be written: {error.strerror}.") from None
    print(f"writing {out}", file=sys.stderr)
    return file


COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "trace": trace, "ledger": ledger, "figure": figure, "generate": generate, "check": check, "bridge": bridge,
    "export": export,
}  # fmt: skip
