"""Recording what a block computes, editing it on the way, and reading the record.

Must not know: where weights come from, figures, the page.
"""

from explorer.capture.edits import CaptureError
from explorer.capture.kept import StaleValue
from explorer.capture.ledger import LedgerRow, ShapeMismatch
from explorer.capture.names import NotRecorded
from explorer.capture.recorder import record
from explorer.capture.scores import TooLarge
from explorer.capture.taps import TapWarning
from explorer.capture.trace import Trace

__all__ = [
    "CaptureError", "LedgerRow", "NotRecorded", "ShapeMismatch", "StaleValue", "TapWarning", "TooLarge", "Trace",
    "record",
]  # fmt: skip
