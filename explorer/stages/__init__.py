"""The eight stages of the block: what each computes, in an equation, in sentences with current numbers, in figures.

Purpose: STAGES and Stage. A stage is one module here, its prose in `en/` (and other languages beside it), and one
line in `catalogue.py`.
Must not know: the page.
"""

from explorer.stages.base import Stage
from explorer.stages.catalogue import STAGES

__all__ = ["STAGES", "Stage"]
