"""Where tensors live: CPU, CUDA or MPS, and the one place that knows about ZeroGPU.

Purpose: import first, before torch touches a GPU. On a ZeroGPU Space torch reports CUDA as available everywhere, but a
model moved there outside a `spaces.GPU` function computes with zero weights and no error; so there the answer is CPU.
Must not know: models, the page.
"""

from __future__ import annotations

import os

ZERO_GPU = os.environ.get("SPACES_ZERO_GPU", "").lower() in ("1", "true")

if ZERO_GPU:  # has to patch torch before anything else imports it
    import spaces  # type: ignore[import-not-found]  # noqa: F401

import torch  # noqa: E402


class DeviceError(ValueError):
    """A device that this machine does not have."""


def available() -> tuple[str, ...]:
    """The devices that can be chosen here."""
    if ZERO_GPU:
        return ("cpu",)
    found = ["cpu"]
    if torch.cuda.is_available():
        found.append("cuda")
    if torch.backends.mps.is_available():
        found.append("mps")
    return tuple(found)


def choose(wanted: str) -> torch.device:
    """ "auto" is the accelerator where there is one, else the CPU. Raises DeviceError for one that is not there."""
    here = available()
    if wanted == "auto":
        return torch.device(here[-1])
    if wanted not in here:
        raise DeviceError(f"device = {wanted!r} is not available here. Choose auto or {' or '.join(here)}.")
    return torch.device(wanted)
