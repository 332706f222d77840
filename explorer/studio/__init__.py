"""The Studio: exercises for whoever has read the course, marked against what the real block computes.

Purpose: EXERCISES. An exercise is one module here, its texts in `en/` and `zh/`, and one line in `catalogue.py`.
Must not know: the page. Nothing about a learner is kept here.
"""

from explorer.studio.catalogue import EXERCISES
from explorer.studio.exercise import Exercise, Marked

__all__ = ["EXERCISES", "Exercise", "Marked"]
