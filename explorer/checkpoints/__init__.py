"""Checkpoints: from a folder, a file or a pinned Hub id to a model, one block, or a clear reason why not.

    load(source)            a whole MiniMindForCausalLM, its configuration and a report
    load(source, layer=3)   one MiniMindBlock, without the rest of the model
    open_checkpoint(source) checks everything, reads no numbers until asked
    check_report(source)    the same comparison as text

MiniMind's own layout is read, and those in which it was published: Qwen3, Qwen3-MoE, Llama, early MiniMind. Read
load.py first. Imported on its own this package costs torch, not transformers.
"""

from __future__ import annotations

from explorer.checkpoints.checkpoint import Checkpoint
from explorer.checkpoints.hub import HubSource, hub_allowed
from explorer.checkpoints.limits import Limits
from explorer.checkpoints.load import Loaded, check_report, load, open_checkpoint, summary
from explorer.checkpoints.report import CheckpointError, Misshaped, Report

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "HubSource",
    "Limits",
    "Loaded",
    "Misshaped",
    "Report",
    "check_report",
    "hub_allowed",
    "load",
    "open_checkpoint",
    "summary",
]
