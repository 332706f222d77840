"""The eight stages in the block's order.

Purpose: STAGES, the one list of them.
Must not know: the page.
"""

from __future__ import annotations

from explorer.stages import (
    add_attention,
    blend,
    combine,
    feed_forward,
    normalize,
    project,
    rotate,
    score,
)
from explorer.stages.base import Stage

STAGES: tuple[Stage, ...] = (
    normalize.STAGE,
    project.STAGE,
    rotate.STAGE,
    score.STAGE,
    blend.STAGE,
    combine.STAGE,
    add_attention.STAGE,
    feed_forward.STAGE,
)
