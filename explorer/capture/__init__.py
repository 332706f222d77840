"""Recording what a block computes, editing it on the way, and reading the record.

Must not know: where weights come from, figures, the page.
"""

from explorer.capture.ledger import LedgerRow, ShapeMismatch
from explorer.capture.recorder import CaptureError, record
from explorer.capture.trace import StaleValue, Trace

__all__ = ["CaptureError", "LedgerRow", "ShapeMismatch", "StaleValue", "Trace", "record"]
