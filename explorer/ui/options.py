"""The options of a server: `python app.py --limits T=256 --checkpoint DIR --log - --mcp`.

Purpose: declare them, and put them in force before the page is built.
Must not know: the page.
"""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path

from explorer.limits import LIMITS, TROUBLE, read_limits
from explorer.spec import fit_presets
from explorer.ui import access, mailbox


def add_options(parser: argparse.ArgumentParser) -> None:
    """What may be set for a server besides its address."""
    parser.add_argument(
        "--checkpoint", metavar="PATH", action="append", default=[],
        help="offer this folder or file as weights, under its own name; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--limits", metavar="LIST", default="",
        help="what one request may ask for, for example T=256,B=4 (also EXPLORER_LIMIT_T=256 in the environment)",
    )  # fmt: skip
    parser.add_argument("--log", metavar="FILE", help="write an access log without content, - for standard error")
    parser.add_argument(
        "--mailbox", metavar="DIR",
        help="where the servers of this machine hand each other calls, so that any of them can answer "
        f"(default: a folder in the system's temporary one; {mailbox.OFF}: nowhere; also {mailbox.VARIABLE})",
    )  # fmt: skip
    parser.add_argument("--mcp", action="store_true", help="also serve the API as MCP tools (needs gradio[mcp])")


def apply(asked: argparse.Namespace) -> None:
    """Put the options in force. Raises ValueError saying what is wrong with which."""
    if TROUBLE:
        raise ValueError(TROUBLE)
    try:
        LIMITS.update(read_limits(asked.limits))
        fit_presets()
    except ValueError as error:
        raise ValueError(f"--limits: {error}") from None
    if asked.mcp and find_spec("mcp") is None:
        raise ValueError("--mcp: one more package is needed: pip install 'gradio[mcp]'.")
    if asked.log:
        try:
            access.start(asked.log)
        except OSError as error:
            raise ValueError(f"--log {asked.log}: it cannot be written: {error.strerror}.") from None
    try:
        mailbox.start(asked.mailbox)
    except ValueError as error:
        raise ValueError(f"--mailbox: {error}") from None
    named: dict[str, str] = {}
    for path in asked.checkpoint:
        _offer(path, named)


def _offer(path: str, named: dict[str, str]) -> None:
    """named: those offered before, by name."""
    from explorer import sources
    from explorer.checkpoints import CheckpointError

    name = Path(path).resolve().stem
    if Path(other := named.setdefault(name, path)).resolve() != Path(path).resolve():
        raise ValueError(f"--checkpoint {path}: {name!r} is the name of {other} already. Rename one of the two.")
    try:
        sources.offer(name, path)
    except CheckpointError as error:
        raise ValueError(f"--checkpoint {path}: {error}") from None
