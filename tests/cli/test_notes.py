"""What a command says on standard error where some of what was asked for has no effect, and how sizes follow a text."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Said

TEXT = "the cat sees a dog"
LINES = "the cat\nthe dog sees a cat"


@pytest.mark.parametrize(
    ("more", "note"),
    [
        (("--rope-theta", "10000"), "Ignored: rope_theta. The checkpoint has its own."),
        (("--d-model", "12", "--h", "3"), "Ignored: d_model, h. The checkpoint has its own."),
        (("--qk-norm", "off", "--experts", "4"), "Ignored: qk_norm, experts. The checkpoint has its own."),
        (("--preset", "gqa", "--d-ff", "8"), "Ignored: d_ff. The checkpoint has its own."),
        (("--seed", "3"), "Ignored: seed. Only random weights are drawn from it."),
        (("--link", "w=random&theta=10000"), "Ignored: rope_theta. The checkpoint has its own."),
    ],
)
def test_what_a_checkpoint_decides_by_itself_is_named(
    say: Callable[..., Said], checkpoint: Path, more: tuple[str, ...], note: str
) -> None:
    status, _, err = say("trace", "--checkpoint", checkpoint, "--text", TEXT, "--only", "probs", *more)
    assert (status, err) == (0, f"note: {note}\n")


def test_what_agrees_with_the_checkpoint_is_no_news(say: Callable[..., Said], checkpoint: Path) -> None:
    same = ("--d-model", "16", "--h", "4", "--rope-theta", "1e6", "--seed", "0", "--angle-step", "1")
    assert say("ledger", "--checkpoint", checkpoint, "--text", TEXT, *same)[2] == ""


@pytest.mark.parametrize(
    ("more", "names"),
    [(("--text", "hi"), "text"), (("--layer", "3", "--weights", "random"), "layer"), (("--link", "text=hi"), "text")],
)
def test_what_only_a_checkpoint_uses_is_named(say: Callable[..., Said], more: tuple[str, ...], names: str) -> None:
    status, _, err = say("ledger", *more)
    assert status == 0
    assert err == f"note: Ignored: {names}. Only a checkpoint reads a text and has layers; choose one as weights.\n"


def test_a_link_that_disagrees_with_its_checkpoint_opens_with_a_note(
    say: Callable[..., Said], checkpoint: Path
) -> None:
    link = "v=1&w=checkpoint:tiny&text=the%20cat&theta=10000&d=16"
    status, out, err = say("trace", "--checkpoint", checkpoint, "--link", link, "--only", "probs")
    assert status == 0 and json.loads(out)["settings"]["T"] == 2
    assert err == "note: The link's theta = '10000' was ignored. The checkpoint has its own.\n"


def test_two_kinds_of_weights_are_one_too_many(say: Callable[..., Said], checkpoint: Path) -> None:
    asked = ("ledger", "--checkpoint", checkpoint, "--text", TEXT, "--weights")
    status, out, err = say(*asked, "random")
    assert (status, out) == (2, "")
    assert "--weights: --checkpoint and --weights are given. Give one of the two." in err
    assert say(*asked, "checkpoint:tiny")[0] == 0


@pytest.mark.parametrize(
    ("text", "more", "sizes", "note"),
    [
        (LINES, {}, (2, 5, 0, [3, 0]), ""),
        (LINES, {"T": 2}, (2, 2, 0, [0, 0]), "3 of the text's 7 tokens are not read: B = 2, past + T = 2."),
        (LINES, {"T": 3}, (2, 3, 0, [1, 0]), "2 of the text's 7 tokens are not read: B = 2, past + T = 3."),
        (LINES, {"B": 2, "T": 5}, (2, 5, 0, [3, 0]), ""),
        (LINES, {"B": 1}, (1, 2, 0, []), "5 of the text's 7 tokens are not read: B = 1, past + T = 2."),
        (LINES, {"padding": "3,0"}, (2, 5, 0, [3, 0]), ""),
        (LINES, {"padding": "0,0"}, (2, 2, 0, [0, 0]), "3 of the text's 7 tokens are not read: B = 2, past + T = 2."),
        (LINES, {"padding": "1"}, (1, 3, 0, [1]), "5 of the text's 7 tokens are not read: B = 1, past + T = 3."),
        (LINES, {"past": 4}, (2, 1, 4, [3, 0]), ""),
        (TEXT, {"past": 2}, (1, 3, 2, []), ""),
        (TEXT, {"past": 2, "T": 1}, (1, 1, 2, []), "2 of the text's 5 tokens are not read: B = 1, past + T = 3."),
        (TEXT, {"B": 1, "T": 2}, (1, 2, 0, []), "3 of the text's 5 tokens are not read: B = 1, past + T = 2."),
    ],
)
def test_what_was_not_given_is_fitted_to_what_was(
    say: Callable[..., Said], checkpoint: Path, text: str, more: dict[str, Any], sizes: tuple[Any, ...], note: str
) -> None:
    options = [part for name, value in more.items() for part in (f"--{name}", str(value))]
    status, out, err = say("trace", "--checkpoint", checkpoint, "--text", text, "--only", "probs", *options)
    assert (status, err) == (0, f"note: {note}\n" if note else "")
    settings = json.loads(out)["settings"]
    found = tuple(settings[name] for name in ("B", "T", "past", "padding"))
    assert (*found[:3], found[3] if any(found[3]) else []) == (*sizes[:3], sizes[3] if any(sizes[3]) else [])


@pytest.mark.parametrize(
    ("text", "more", "says"),
    [
        (TEXT, ("--T", "9"), "--T: Line 1 of the text has 5 tokens; past + T = 9 are asked for. Choose T up to 5,"),
        (TEXT, ("--past", "5"), "--past: Line 1 of the text has 5 tokens, so past = 5 leaves none to this call."),
        (TEXT, ("--B", "2"), "--B: The text has 1 lines; B = 2 are asked for."),
        (TEXT, ("--T", "two"), "--T: T = 'two' is not a number"),
        (TEXT, ("--T", "0"), "--T: T = 0 is out of range."),
        (LINES, ("--padding", "3,0", "--B", "3"), "--padding: padding has 2 counts for B = 3 rows."),
        ("cat\n" * 9, (), "--text: The text has 9 lines; at most 8 are read. Remove some."),
        (" ", (), "--text: The text is empty."),
    ],
)
def test_what_cannot_be_fitted_is_refused(
    say: Callable[..., Said], checkpoint: Path, text: str, more: tuple[str, ...], says: str
) -> None:
    status, out, err = say("ledger", "--checkpoint", checkpoint, "--text", text, *more)
    assert (status, out) == (2, "")
    assert says in err
