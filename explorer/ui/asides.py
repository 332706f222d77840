"""What the page asks for besides its picture: the what-if table, the two trials, the course's file, a link, a GPU,
questions, the bridge to MiniMind, the Studio.

Purpose: {"want": ["effects", …]} -> one part an entry, computed only then.
Must not know: gradio, the browser.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from explorer.ui import gpu, share, trials, whatif
from explorer.ui.bridge import bridge
from explorer.ui.quiz import quiz
from explorer.ui.request import Asked
from explorer.ui.studio import studio

Payload = dict[str, Any]
Part = Callable[[Asked, Mapping[str, Any], Mapping[str, Any]], Any]


def _effects(asked: Asked, request: Mapping[str, Any], texts: Mapping[str, Any]) -> Payload:
    return whatif.table(asked.spec, texts)


def _softmax(asked: Asked, request: Mapping[str, Any], texts: Mapping[str, Any]) -> Payload:
    return trials.softmax(request.get("softmax"), texts["lang"])


def _norms(asked: Asked, request: Mapping[str, Any], texts: Mapping[str, Any]) -> Payload:
    return trials.norms(asked.spec, asked.view.row, request.get("norms"), texts)


def _course(asked: Asked, request: Mapping[str, Any], texts: Mapping[str, Any]) -> Payload:
    return course_file()


def _share(asked: Asked, request: Mapping[str, Any], texts: Mapping[str, Any]) -> Payload:
    return share.shared(asked.spec, asked.view, request.get("share"), texts)


def _gpu(asked: Asked, request: Mapping[str, Any], texts: Mapping[str, Any]) -> Payload:
    return gpu.compare(asked.spec)


def _quiz(asked: Asked, request: Mapping[str, Any], texts: Mapping[str, Any]) -> Payload:
    return quiz(asked, request.get("quiz"), texts["lang"])


def _bridge(asked: Asked, request: Mapping[str, Any], texts: Mapping[str, Any]) -> Payload:
    return bridge(asked, request.get("bridge"), texts["lang"])


def _studio(asked: Asked, request: Mapping[str, Any], texts: Mapping[str, Any]) -> Payload:
    return studio(request.get("studio"), texts["lang"])


PARTS: dict[str, Part] = {
    "effects": _effects, "softmax": _softmax, "norms": _norms, "course": _course, "share": _share,
    "gpu": _gpu, "quiz": _quiz, "studio": _studio, "bridge": _bridge,
}  # fmt: skip


def wanted(request: Mapping[str, Any]) -> list[str]:
    """The names of parts that a request asks for; [] when it asks for the picture."""
    names = request.get("want")
    return [name for name in PARTS if name in names] if isinstance(names, list) else []


def parts(names: list[str], asked: Asked, request: Mapping[str, Any], texts: Mapping[str, Any]) -> Payload:
    """Each part by its name. Raises SpecError."""
    return {name: PARTS[name](asked, request, texts) for name in names}


@cache
def course_file() -> Payload:
    """The course's readable model, one file that runs alone."""
    path = Path(str(import_module("explorer.course.transformer_model").__file__))
    return {"name": path.name, "text": path.read_text(encoding="utf-8")}
