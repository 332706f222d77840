"""MiniMind Block Explorer: run a real MiniMind decoder block, look at every intermediate, change any of it.

from explorer import Edit, RunSpec, run

trace = run(RunSpec(edits=[Edit("resid_pre", (0, 0, 1), 2.0)]))
trace["probs"]          # numpy, [B, H, Tq, Tk]
trace.ledger()          # every shape, declared and observed
"""

from explorer.capture import Trace
from explorer.run import run  # rebinds the submodule's name to its function, which is what callers want
from explorer.spec import PRESETS, Edit, RunSpec, SpecError

__all__ = ["PRESETS", "Edit", "RunSpec", "SpecError", "Trace", "run"]
