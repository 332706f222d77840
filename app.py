"""The MiniMind Block Explorer as a web app: `python app.py`, then open the address it prints.

Builds the page and launches it; nothing else. On a Hugging Face Space this file is run as it is.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
if os.environ.get("SPACES_ZERO_GPU"):
    import explorer.device  # noqa: F401  # brings `spaces`, which has to come before torch
else:  # torch and gradio each take a second to import: side by side they take less
    threading.Thread(target=__import__, args=("torch",), daemon=True).start()

from explorer.ui import options
from explorer.ui.build import build, launch_arguments


def port(text: str) -> int:
    """A port that a server can have. Raises ArgumentTypeError."""
    if not (text.isascii() and text.isdigit() and 0 < int(text[:6]) < 2**16):
        raise argparse.ArgumentTypeError(f"{text[:20]!r} is no port. Choose a number from 1 to {2**16 - 1}.")
    return int(text)


def arguments() -> argparse.Namespace:
    """The command line."""
    flags = argparse.ArgumentParser(description="Serve the MiniMind Block Explorer.")
    flags.add_argument("--host", default=None, help="address to listen on (default: 127.0.0.1)")
    flags.add_argument("--port", type=port, default=None, help="port to listen on (default: the first free from 7860)")
    flags.add_argument("--share", action="store_true", help="also open a public address through Gradio")
    flags.add_argument("--root-path", default=None, help="path below which a proxy serves the app, such as /explorer")
    options.add_options(flags)
    asked = flags.parse_args()
    try:
        options.apply(asked)
    except ValueError as error:
        flags.error(str(error))
    return asked


at = arguments() if __name__ == "__main__" else None
demo = build()

if at is not None:
    try:
        demo.launch(
            server_name=at.host, server_port=at.port, share=at.share, root_path=at.root_path, mcp_server=at.mcp,
            **launch_arguments(),
        )  # fmt: skip
    except OSError:
        where = f"{at.host or '127.0.0.1'}, port {at.port or '7860 and the next'}"
        sys.exit(
            f"app.py: nothing can listen on {where}: it is taken, or no address of this machine. "
            "Choose another --port or --host."
        )
