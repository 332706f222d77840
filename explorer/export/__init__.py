"""The whole walk through the block as one HTML page that needs no network and no server.

Purpose: RunSpec -> page. What is on it is read from the same stages, figures and ledger as everything else.
Must not know: gradio, the command line.
"""

from explorer.export.page import page

__all__ = ["page"]
