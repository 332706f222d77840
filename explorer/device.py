"""Where tensors live: CPU, CUDA or MPS, and the one place that knows about ZeroGPU.

Purpose: import first, before torch touches a GPU. On a ZeroGPU Space torch reports CUDA as available everywhere, but a
model moved there outside a `spaces.GPU` function computes with zero weights and no error; so there the answer is CPU.
Must not know: models, the page.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import Any, TypeVar

ZERO_GPU = os.environ.get("SPACES_ZERO_GPU", "").lower() in ("1", "true")

if ZERO_GPU:  # has to patch torch before anything else imports it
    import spaces  # type: ignore[import-not-found]

import torch  # noqa: E402

from explorer.messages import either, say  # noqa: E402

Function = TypeVar("Function", bound=Callable[..., Any])


KEPT_BYTES = 128 * 2**20
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3  # glibc's malloc.h


def keep_freed_memory() -> bool:
    """Let glibc keep up to KEPT_BYTES of freed memory for the next run; False where there is no glibc.

    A trace that is dropped frees about as much as the next run takes. Handing that to the system and getting it back
    page by page costs some 2% of a run at d_model 768 and T = 64.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return False
    wanted = ((_TRIM_THRESHOLD, KEPT_BYTES), (_TOP_PAD, KEPT_BYTES // 2), (_MMAP_THRESHOLD, KEPT_BYTES // 4))
    return all(mallopt(option, size) for option, size in wanted)


keep_freed_memory()


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


def gpu_here() -> bool:
    """Whether a function marked by `on_gpu` finds a GPU."""
    return ZERO_GPU or torch.cuda.is_available()


def on_gpu(seconds: int) -> Callable[[Function], Function]:
    """Marks a module's function as one that computes on a GPU, for at most so long; a decorator.

    On ZeroGPU it runs in a process that is lent one, so what it takes and gives must survive pickling.
    """

    def mark(function: Function) -> Function:
        marked: Function = spaces.GPU(duration=seconds)(function) if ZERO_GPU else function
        return marked

    return mark


def choose(wanted: str) -> torch.device:
    """ "auto" is the accelerator where there is one, else the CPU. Raises DeviceError for one that is not there."""
    here = available()
    if wanted == "auto":
        return torch.device(here[-1])
    if wanted not in here:
        allowed = either("auto", *here)
        raise DeviceError(
            say("device = {wanted!r} is not available here. Choose {allowed}.", wanted=wanted, allowed=allowed)
        )
    return torch.device(wanted)
