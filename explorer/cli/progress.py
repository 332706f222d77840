"""A progress bar on standard error, where somebody is there to see it.

Must not know: what is being done.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def progress(items: Iterable[Item], what: str) -> Iterator[Item]:
    """The items as they come; a bar called `what` counts them on a terminal."""
    from tqdm import tqdm

    yield from tqdm(items, desc=what, file=sys.stderr, leave=False, disable=not sys.stderr.isatty())
