"""What every test shares: one thread, no network, GPU tests skipped where there is no GPU.

Knows nothing of the page; tests/browser/conftest.py does.
"""

from __future__ import annotations

import os

# Before anything imports torch, transformers or gradio.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip tests marked `gpu` where CUDA is not there; torch is imported only if one was collected."""
    on_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if not on_gpu:
        return
    import torch

    if torch.cuda.is_available():
        return
    skip = pytest.mark.skip(reason="needs a CUDA device")
    for item in on_gpu:
        item.add_marker(skip)
