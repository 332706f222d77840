"""The commands and their arguments.

Purpose: one parser whose every page of help a person can use.
Must not know: torch; what a command does.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from typing import NoReturn

from explorer.cli.options import add_run_options
from explorer.link import LANGUAGES
from explorer.offers import has_shipped
from explorer.quantities import QUANTITIES, WEIGHTS

PROGRAM = "python -m explorer"
COMMANDS: dict[str, tuple[str, str]] = {
    "trace": (
        "Run a block and write down every quantity: JSON, or .npz for numpy.",
        """
        {p} trace
        {p} trace --only probs resid_post --edit "resid_pre[0,0,1]=2"
        {p} trace --preset capstone --out capstone.npz
        {p} trace --link "http://127.0.0.1:7860/?v=1&T=3&stage=4"
        """,
    ),
    "ledger": (
        "Print the shape ledger: every quantity with its shape, bytes and operations.",
        """
        {p} ledger --preset capstone
        {p} ledger --weights random --B 2 --T 5 --d-model 12 --h 3 --json
        """,
    ),
    "figure": (
        "Draw one figure into a file: .html that opens anywhere, or .json for plotly.",
        """
        {p} figure attention --preset capstone --head 1 --out attention.html
        {p} figure rope --weights random --d-model 16 --h 2 --T 8 --out rope.json
        """,
    ),
    "generate": (
        "Continue a text with a checkpoint; the text appears as it is written.",
        """
        {p} generate --checkpoint ./minimind-3 --prompt "Once upon a time"
        {p} generate --checkpoint ./minimind-3 --prompt "Once upon a time" --temperature 0
        """,
    ),
    "check": (
        "Say what a checkpoint holds, whether it can be loaded, and one of its blocks' ledger.",
        """
        {p} check --checkpoint ./minimind-3
        {p} check --checkpoint pretrain_768.pth --layer 7 --T 16
        """,
    ),
    "bridge": (
        "Check MiniMind against the course's block in six steps, on the block that is described.",
        """
        {p} bridge --preset gqa
        {p} bridge --preset capstone --dtype bfloat16 --row 3 4
        {p} bridge --checkpoint ./minimind-3 --text "Once upon a time"
        """,
    ),
    "export": (
        "Write the whole walk through the block as one HTML page that needs no network.",
        """
        {p} export walk.html
        {p} export edited.html --preset gqa --switch no_mask --edit "probs[0,0,1,0]=0.9"
        """,
    ),
}


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message} (see {self.prog} --help)", file=sys.stderr)
        raise SystemExit(2)


def build_parser() -> Parser:
    """All commands."""
    parser = Parser(
        prog=PROGRAM,
        description="Open a real Transformer block: run it, edit it, print, draw or export what it computes.",
        epilog=f"Each command explains itself with examples: {PROGRAM} trace --help",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, title="commands")
    for name, (text, examples) in COMMANDS.items():
        if name == "generate" and has_shipped():  # then its simplest use comes first
            examples = f'{{p}} generate --prompt "Once upon a time"\n{textwrap.dedent(examples).lstrip()}'
        shown = textwrap.dedent(examples).strip().format(p=PROGRAM)
        epilog = f"examples:\n{textwrap.indent(shown, '  ')}" + (f"\n\n{_names()}" if name == "trace" else "")
        command = commands.add_parser(
            name, help=text, description=text, epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
        )  # fmt: skip
        ADD[name](command)
    return parser


def _names() -> str:
    """What --only and --edit can name."""
    experts = [f"mlp.experts.N.{part}_proj.weight" for part in ("gate", "up", "down")]
    lists = {"quantities, each where it exists": QUANTITIES, "weights": (*WEIGHTS, *experts)}
    wrapped = {title: textwrap.fill(" ".join(names), 96, break_on_hyphens=False) for title, names in lists.items()}
    return "\n\n".join(f"{title}:\n{textwrap.indent(text, '  ')}" for title, text in wrapped.items())


def _trace(command: argparse.ArgumentParser) -> None:
    command.add_argument("--out", metavar="FILE", help="write here, .json or .npz (default: JSON to standard output)")
    command.add_argument(
        "--only", nargs="+", metavar="NAME", default=[], help="these quantities and weights alone, named as below"
    )
    add_run_options(command)


def _ledger(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="as JSON instead of a table")
    add_run_options(command)


def _figure(command: argparse.ArgumentParser) -> None:
    command.add_argument("name", help="which figure, for example attention; a wrong name lists all")
    command.add_argument(
        "--out", metavar="FILE", required=True, help=".html, .json, or with the package kaleido .png, .svg, .pdf"
    )
    command.add_argument("--row", type=int, metavar="N", help="the batch row it shows (default: the link's, else 0)")
    command.add_argument("--head", type=int, metavar="N", help="the query head it shows (default: the link's, else 0)")
    _add_language(command)
    command.add_argument("--theme", choices=("light", "dark"), default="light", help="colours (default: light)")
    add_run_options(command)


def _generate(command: argparse.ArgumentParser) -> None:
    without = "the one of this copy" if has_shipped() else "none, this copy has no checkpoint of its own"
    command.add_argument(
        "--checkpoint", metavar="PATH", help=f"folder, file or hub:owner/name@commit (default: {without})"
    )
    command.add_argument("--prompt", required=True, metavar="TEXT", help="the text to continue; - reads standard input")
    command.add_argument("--new-tokens", type=int, default=64, metavar="N", help="at most so many (default: 64)")
    command.add_argument("--temperature", type=float, default=0.85, metavar="X", help="0 takes the likeliest token")
    command.add_argument("--top-k", type=int, default=50, metavar="N", help="draw among the N likeliest, 0 for all")
    command.add_argument(
        "--top-p", type=float, default=0.85, metavar="X", help="draw among the likeliest up to share X"
    )
    command.add_argument("--repetition-penalty", type=float, default=1.0, metavar="X", help="above 1 repeats less")
    command.add_argument("--seed", type=int, default=0, metavar="N", help="same seed, same text (default: 0)")
    command.add_argument("--device", default="auto", metavar="NAME", help="auto, cpu, cuda, or mps")
    command.add_argument("--json", action="store_true", help="one JSON object at the end instead of text as it comes")


def _check(command: argparse.ArgumentParser) -> None:
    command.add_argument("--checkpoint", required=True, metavar="PATH", help="folder, file or hub:owner/name@commit")
    command.add_argument(
        "--layer", type=int, default=0, metavar="N", help="the block whose ledger is shown (default: 0)"
    )
    command.add_argument("--T", type=int, default=8, metavar="N", help="tokens of that ledger (default: 8)")
    command.add_argument("--allow-hub", action="store_true", help="let a hub: source be fetched")


def _bridge(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--row", type=int, nargs="+", choices=range(1, 7), default=[], metavar="N",
        help="these rows alone: 1 config, 2 attention, 3 decode, 4 runtime, 5 feed-forward, 6 model wrapper",
    )  # fmt: skip
    _add_language(command)
    add_run_options(command, only_weights=True)


def _export(command: argparse.ArgumentParser) -> None:
    command.add_argument("file", metavar="FILE.html", help="where to write the page")
    command.add_argument("--row", type=int, metavar="N", help="the batch row it shows (default: the link's, else 0)")
    command.add_argument("--head", type=int, metavar="N", help="the query head it shows (default: the link's, else 0)")
    _add_language(command)
    add_run_options(command)


def _add_language(command: argparse.ArgumentParser) -> None:
    command.add_argument("--lang", choices=LANGUAGES, help="its language (default: the link's, else English)")


ADD = {
    "trace": _trace, "ledger": _ledger, "figure": _figure, "generate": _generate, "check": _check, "bridge": _bridge,
    "export": _export,
}  # fmt: skip
