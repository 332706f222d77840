"""The options that describe a run, the same for every command that runs a block.

Purpose: RunSpec's fields as options, with their help, and the arguments back as a RunSpec.
Must not know: torch until a run is read.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from explorer.asked import SETTINGS
from explorer.spec import PRESETS
from explorer.switches import KINDS

if TYPE_CHECKING:
    from explorer.link import View
    from explorer.spec import RunSpec

# Group -> {field: (what stands for its value, help)}. Every field of RunSpec has its place here; a test says so.
GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "sizes": {
        "B": ("N", "batch rows"),
        "T": ("N", "tokens of this call"),
        "d_model": ("N", "width of the residual stream"),
        "h": ("N", "query heads"),
        "h_kv": ("N", "key/value heads; divides h (default: h)"),
        "d_h": ("N", "features of a head, even (default: d_model / h)"),
        "d_ff": ("N", "hidden width of the feed-forward (default: by d_model)"),
        "past": ("N", "tokens that are already in the cache"),
        "padding": ("LIST", "left-padded positions of each batch row, for example 0,2"),
    },
    "weights and input": {
        "weights": ("NAME", "toy, random, or checkpoint:NAME"),
        "seed": ("N", "what random numbers are drawn from"),
        "layer": ("N", "which block of the checkpoint"),
        "text": ("TEXT", "what the checkpoint reads, one batch row a line"),
    },
    "positions and norms": {
        "angle_step": ("X", "radians that feature pair 0 turns a position"),
        "rope_theta": ("X", "base of RoPE's frequencies"),
        "yarn": ("on|off", "MiniMind's YaRN"),
        "qk_norm": ("on|off", "norm of each head's queries and keys"),
        "norm_eps": ("X", "ε of every RMSNorm"),
    },
    "mixture of experts": {
        "experts": ("N", "number of experts, 0 for a dense feed-forward"),
        "experts_per_token": ("N", "experts that a token is sent to"),
        "norm_topk": ("on|off", "whether the chosen experts' shares are made to total 1"),
    },
    "how it runs": {
        "attention": ("PATH", "auto, explicit, or flash"),
        "dtype": ("NAME", "float32, bfloat16, or float16"),
        "device": ("NAME", "auto, cpu, cuda, or mps"),
    },
}


def add_run_options(parser: argparse.ArgumentParser, only_weights: bool = False) -> None:
    """Every option that says what to run. only_weights: nothing but weights can be changed in it."""
    start = parser.add_argument_group("where to start (default: the toy)")
    start.add_argument("--preset", choices=PRESETS, help="one of the presets")
    start.add_argument("--link", metavar="ADDRESS", default="", help="the address of a page, or what follows its ?")
    start.add_argument(
        "--checkpoint", metavar="PATH", help="a checkpoint's folder or file, or hub:owner/name@commit, as the weights"
    )
    for title, fields in GROUPS.items():
        group = parser.add_argument_group(title)
        for name, (metavar, text) in fields.items():
            group.add_argument(*_spellings(name), dest=name, metavar=metavar, help=text)
    changes = parser.add_argument_group("changes")
    if only_weights:
        edit = 'set cells of a weight by hand, for example "self_attn.q_proj.weight[0,1]=2"; may be repeated'
    else:
        edit = 'set cells by hand, for example "resid_pre[0,0,1]=2" or "probs[0,0,1,:]=0.5"; may be repeated'
    changes.add_argument("--edit", action="append", default=[], metavar="EDIT", help=edit)
    if only_weights:
        return
    changes.add_argument(
        "--switch", action="append", default=[], metavar="NAME",
        help=f"a what-if, may be repeated: {', '.join(_switch_form(name) for name in KINDS)}",
    )  # fmt: skip


def _spellings(name: str) -> tuple[str, ...]:
    """--d-model, and --d_model for those who think of the field."""
    return tuple(dict.fromkeys((f"--{name.replace('_', '-')}", f"--{name}")))


def _switch_form(name: str) -> str:
    argument = KINDS[name].argument
    return f"{name}:{argument.upper()}" if argument else name


def read_run(arguments: argparse.Namespace) -> tuple[RunSpec, View, list[str]]:
    """The spec that the arguments describe, the view of the link, and sentences about what was ignored.

    Raises SpecError, CheckpointError.
    """
    from explorer import sources  # fills the table of checkpoints
    from explorer.spec import SpecError

    typed = {name: value for name in SETTINGS if (value := getattr(arguments, name)) is not None}
    if arguments.checkpoint:
        weights = f"checkpoint:{offer(arguments.checkpoint)}"
        if typed.setdefault("weights", weights) != weights:
            raise SpecError({"weights": "--checkpoint and --weights are given. Give one of the two."})
    return sources.read(
        link_or_address=arguments.link, preset=arguments.preset or "", settings=typed,
        edits=arguments.edit, switches=getattr(arguments, "switch", ()),
    )  # fmt: skip


def offer(source: str) -> str:
    """Offer a checkpoint under a name made of its path; returns the name. Raises CheckpointError."""
    from explorer import sources

    name = source.removeprefix("hub:").partition("@")[0] if source.startswith("hub:") else Path(source).resolve().stem
    sources.offer(name, source)
    return name
