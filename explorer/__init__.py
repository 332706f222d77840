"""MiniMind Block Explorer: run a real MiniMind decoder block, look at every intermediate, change any of it.

from explorer import Edit, RunSpec, run

trace = run(RunSpec(edits=[Edit("resid_pre", (0, 0, 1), 2.0)]))
trace["probs"]          # numpy, [B, H, Tq, Tk]
trace.ledger()          # every shape, declared and observed

Importing this package costs no torch; the first use of `run` or `Trace` does.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from explorer.spec import PRESETS, Edit, RunSpec, SpecError

if TYPE_CHECKING:
    from explorer.capture import Trace
    from explorer.run import run

__all__ = ["PRESETS", "Edit", "RunSpec", "SpecError", "Trace", "run"]


class _Package(ModuleType):
    """Fetches what needs torch when it is asked for. `explorer.run` is the function, whatever was imported before."""

    @property
    def Trace(self) -> Any:
        return import_module("explorer.capture").Trace

    @property
    def run(self) -> Any:
        return import_module("explorer.run").run

    @run.setter
    def run(self, submodule: ModuleType) -> None:
        """Importing the submodule `explorer.run` would put it in the function's place."""


sys.modules[__name__].__class__ = _Package
