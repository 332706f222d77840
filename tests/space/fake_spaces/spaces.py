"""Stands in for the package of a ZeroGPU Space, so that tests need neither it nor a GPU.

Like the real one it wants to be imported before torch, makes torch say that CUDA is there, and lets `GPU` mark the
functions that may use it. What it adds: it pickles arguments and results, and notes every touch of CUDA outside of
those.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

after_torch = "torch" in sys.modules

import torch  # noqa: E402

marked: list[tuple[str, int]] = []
calls: list[dict[str, Any]] = []
touches: list[str] = []
_inside = 0


def GPU(duration: int = 60) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def mark(function: Callable[..., Any]) -> Callable[..., Any]:
        marked.append((f"{function.__module__}.{function.__qualname__}", duration))

        @wraps(function)
        def lent(*given: Any, **named: Any) -> Any:
            global _inside
            given, named = pickle.loads(pickle.dumps((given, named)))  # noqa: S301
            _inside += 1
            try:
                result = function(*given, **named)
            finally:
                _inside -= 1
            sent = pickle.dumps(result)
            calls.append({"result": result, "bytes": len(sent)})
            return pickle.loads(sent)  # noqa: S301

        return lent

    return mark


def _touch(what: str) -> Callable[..., Any]:
    def touched(*_: Any, **__: Any) -> Any:
        if not _inside:
            frame = sys._getframe(1)
            touches.append(f"{what} from {frame.f_code.co_filename}:{frame.f_lineno}")
        raise RuntimeError(f"{what} outside of a GPU function")

    return touched


torch.cuda.is_available = lambda: True
torch.cuda.device_count = lambda: 1
for _name in ("_lazy_init", "init", "current_device", "synchronize", "get_device_name", "set_device", "mem_get_info"):
    setattr(torch.cuda, _name, _touch(f"torch.cuda.{_name}"))
