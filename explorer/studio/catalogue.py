"""The exercises in the order in which they are done.

Purpose: EXERCISES, the one list of them.
Must not know: the page.
"""

from __future__ import annotations

from explorer.studio import aloud, mixing, offset, order, reading_code, shapes, toy_by_hand, where
from explorer.studio.exercise import Exercise

EXERCISES: tuple[Exercise, ...] = (
    Exercise("where", where.task, where.mark),
    Exercise("order", order.task, order.mark),
    Exercise("shapes", shapes.task, shapes.mark),
    Exercise("toy_by_hand", toy_by_hand.task, toy_by_hand.mark),
    Exercise("offset", offset.task, offset.mark),
    Exercise("mixing", mixing.task, mixing.mark),
    Exercise("aloud", aloud.task, aloud.mark),
    Exercise("reading_code", reading_code.task, reading_code.mark),
)
