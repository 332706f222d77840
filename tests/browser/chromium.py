"""Headless Chromium for tests and benchmark: which one, with which switches. Knows nothing of the page."""

from __future__ import annotations

import os
import shutil

from playwright.sync_api import Browser, Playwright

# No display, no sandbox (CI runs as root), and nothing that looks for a host of its own.
SWITCHES = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def executable() -> str | None:
    """EXPLORER_CHROMIUM, else a Chromium on the PATH, else None: the one that playwright installed."""
    chosen = os.environ.get("EXPLORER_CHROMIUM")
    return chosen or next((path for path in map(shutil.which, NAMES) if path), None)


def launch(playwright: Playwright) -> Browser:
    """A headless Chromium with an empty profile."""
    return playwright.chromium.launch(executable_path=executable(), headless=True, args=list(SWITCHES))
