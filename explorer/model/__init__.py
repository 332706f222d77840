"""MiniMind, the model itself, with a tap at every intermediate.

Start reading at block.py. The names below need torch alone; causal_lm and generate need transformers too, which takes
seconds to import, so import those two where they are used. This package knows nothing of the rest of the explorer.
"""

from __future__ import annotations

from explorer.model.attention import Attention
from explorer.model.block import MiniMindBlock
from explorer.model.config import ConfigError, MiniMindConfig, RopeScaling
from explorer.model.feed_forward import FeedForward, MOEFeedForward
from explorer.model.norm import RMSNorm
from explorer.model.rope import RotaryEmbedding, rope_tables

__all__ = [
    "Attention",
    "ConfigError",
    "FeedForward",
    "MOEFeedForward",
    "MiniMindBlock",
    "MiniMindConfig",
    "RMSNorm",
    "RopeScaling",
    "RotaryEmbedding",
    "rope_tables",
]
