"""What a link is made of: its version, its keys, and the view that it holds beside the run.

Must not know: how a link is written or read.
"""

from __future__ import annotations

from dataclasses import dataclass

VERSION = "1"
# What Gradio and Spaces read from an address; never ours, never complained about.
RESERVED = ("view", "__theme", "deep_link", "__sign", "logs", "ui", "page", "write_token")
KEYS = {
    "B": "B", "T": "T", "d_model": "d", "h": "h", "h_kv": "hkv", "d_h": "dh", "d_ff": "dff", "weights": "w",
    "seed": "seed", "layer": "layer", "text": "text", "past": "past", "padding": "pad", "angle_step": "step",
    "rope_theta": "theta", "yarn": "yarn", "qk_norm": "qk", "norm_eps": "eps", "experts": "E",
    "experts_per_token": "k", "norm_topk": "topk", "attention": "att", "dtype": "dtype", "device": "dev",
    "edits": "e", "switches": "s",
}  # fmt: skip
FIELDS = {key: field for field, key in KEYS.items()}
COMPARE = ("value", "change", "both")
LANGUAGES = ("en", "zh")
MOST_CELLS = 2**16  # cells of all whole-tensor edits of one link together


@dataclass(frozen=True)
class View:
    """What of a run is looked at.

    stage: 1–8; cell: the selected cell as (quantity or weight, index), or None; compare: what cells show;
    row, head, token, expert: which of each is shown where not all fit; lang: "" for the browser's
    present: classroom mode; idle: what-ifs that stay in the list of changes while they are out of force
    """

    stage: int = 1
    cell: tuple[str, tuple[int, ...]] | None = None
    compare: str = "value"
    row: int = 0
    head: int = 0
    lang: str = ""
    present: bool = False
    token: int = 0
    expert: int = 0
    idle: tuple[str, ...] = ()


class LinkTooLong(ValueError):
    """The state does not fit into a link."""
