"""What every test shares: one thread, no network, one Chromium, GPU tests skipped where there is no GPU.

Knows nothing of the page; tests/browser/conftest.py does.
"""

from __future__ import annotations

import os

# Before anything imports torch, transformers or gradio.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.chromium import launch


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The one browser of a test run: a process can start playwright's synchronous interface once."""
    with sync_playwright() as playwright:
        browser = launch(playwright)
        yield browser
        browser.close()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests come last: playwright keeps an event loop running, and others want to start one of their own.

    Tests marked `gpu` are skipped where CUDA is not there; torch is imported only if one was collected.
    """
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)
    on_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if not on_gpu:
        return
    import torch

    if torch.cuda.is_available():
        return
    skip = pytest.mark.skip(reason="needs a CUDA device")
    for item in on_gpu:
        item.add_marker(skip)
