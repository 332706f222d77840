"""Choosing where tensors live, and ZeroGPU, where CUDA claims to be there and computes with zeros."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from explorer import device

ROOT = Path(__file__).resolve().parents[2]


def test_auto_takes_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert device.available() == ("cpu",) and device.choose("auto") == torch.device("cpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert device.available() == ("cpu", "cuda") and device.choose("auto") == torch.device("cuda")
    assert device.choose("cpu") == torch.device("cpu")


def test_a_device_that_is_not_there_is_named_with_those_that_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(device.DeviceError, match=r"device = 'cuda' is not available here\. Choose auto or cpu\."):
        device.choose("cuda")


def test_zero_gpu_means_cpu_although_cuda_claims_to_be_there(tmp_path: Path) -> None:
    """In a process of its own: the setting is read when the module is imported, before torch."""
    (tmp_path / "spaces.py").write_text("import sys\nassert 'torch' not in sys.modules\n", encoding="utf-8")
    code = (
        "import explorer.device as d, sys; assert 'spaces' in sys.modules; import torch; "
        "torch.cuda.is_available = lambda: True; print(d.available(), d.choose('auto'))"
    )
    environment = os.environ | {"SPACES_ZERO_GPU": "true", "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["('cpu',)", "cpu"]


def test_freed_memory_is_kept_where_glibc_is(monkeypatch: pytest.MonkeyPatch) -> None:
    import ctypes
    import platform

    assert device.keep_freed_memory() == (platform.libc_ver()[0] == "glibc")
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    assert device.keep_freed_memory() is False
