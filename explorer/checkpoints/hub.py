"""Fetch a published checkpoint from the Hugging Face Hub, where this machine's owner allows it.

Off unless the environment says EXPLORER_ALLOW_HUB=1 or the caller says so. Then only what was asked for by owner, name
and full commit is fetched, without any credentials, and only config, tokenizer and .safetensors files, whose sizes are
checked before the first byte of a weight moves. No code of a repository is ever fetched or run. Must not know models.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

from explorer.checkpoints.limits import Limits
from explorer.checkpoints.report import CheckpointError

SWITCH = "EXPLORER_ALLOW_HUB"
PREFIX = "hub:"
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.)){0,95}"
_SOURCE = re.compile(rf"({_NAME}/{_NAME})@([0-9a-f]{{40}})")
_SMALL = (
    *("config.json", "model.safetensors.index.json", "generation_config.json"),
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.json", "merges.txt"),
)
_WEIGHTS = re.compile(r"[A-Za-z0-9_.-]{1,120}\.safetensors")
_USUAL = re.compile(r"model(-\d+-of-\d+)?\.safetensors")
_SMALL_BYTES = 32 * 1024**2  # a tokenizer.json of a large vocabulary takes about 11 MB


class HubApi(Protocol):
    """The two calls of huggingface_hub.HfApi that are used."""

    def model_info(self, repo_id: str, **options: Any) -> Any: ...

    def hf_hub_download(self, repo_id: str, filename: str, **options: Any) -> Any: ...


@dataclass(frozen=True)
class HubSource:
    """A published model, pinned: owner/name and the 40 hexadecimal digits of a commit."""

    repo_id: str
    revision: str

    @classmethod
    def parse(cls, text: str) -> HubSource:
        """Read "hub:owner/name@commit". Raises CheckpointError for anything else, a local path included."""
        found = _SOURCE.fullmatch(text.removeprefix(PREFIX))
        if found is None:
            raise CheckpointError(
                f'"{text[:200]}" is not a pinned Hub model; write hub:owner/name@commit, with the full 40-digit commit '
                "that the model's page lists under Files, History"
            )
        return cls(found[1], found[2])

    def __str__(self) -> str:
        return f"{PREFIX}{self.repo_id}@{self.revision}"


def hub_allowed() -> bool:
    """Whether the environment lets visitors' Hub ids through."""
    return os.environ.get(SWITCH) == "1"


def fetch(source: HubSource, limits: Limits, *, allow: bool | None = None, api: HubApi | None = None) -> Path:
    """Download the files of a pinned model into the local Hub cache; returns their folder.

    allow: True or False decides, None leaves it to the environment. api: stands in for huggingface_hub.HfApi in tests.
    Raises CheckpointError where it is not allowed, not found, too large or not what was asked for.
    """
    if not (hub_allowed() if allow is None else allow):
        raise CheckpointError(
            f"loading from the Hub is switched off here; set {SWITCH}=1 to allow it, "
            "or download the model and give its folder"
        )
    client = _client() if api is None else api
    wanted = _choose(_list_files(client, source), source, limits)
    folder = _download(client, source, "config.json", wanted.pop("config.json")).parent
    for name, size in wanted.items():
        _download(client, source, name, size)
    return folder


def _client() -> HubApi:
    try:
        from huggingface_hub import HfApi
    except ImportError as problem:
        raise CheckpointError("huggingface_hub is not installed; pip install huggingface_hub") from problem
    return cast(HubApi, HfApi(token=False))


def _list_files(client: HubApi, source: HubSource) -> dict[str, int]:
    """Name and size of every file of the commit."""
    try:
        info = client.model_info(source.repo_id, revision=source.revision, files_metadata=True, token=False, timeout=20)
    except Exception as problem:  # network, authorisation and absence come as many classes
        raise CheckpointError(f"the Hub did not give {source}: {_first_line(problem)}") from problem
    if info.sha != source.revision:
        raise CheckpointError(f"the Hub answered with commit {info.sha} instead of {source.revision}; try again")
    return {file.rfilename: -1 if file.size is None else int(file.size) for file in info.siblings or ()}


def _choose(files: dict[str, int], source: HubSource, limits: Limits) -> dict[str, int]:
    """The files to fetch, small ones first, after checking that they are there and within the limits."""
    small = {name: files[name] for name in _SMALL if name in files}
    weights = {name: size for name, size in sorted(files.items()) if _WEIGHTS.fullmatch(name)}
    usual = {name: size for name, size in weights.items() if _USUAL.fullmatch(name)}
    weights = usual or weights  # some repositories hold the same weights a second time under another name
    if "config.json" not in small or not weights:
        raise CheckpointError(f"{source} has no config.json with .safetensors weights beside it; choose another model")
    unsized = [name for name, size in {**small, **weights}.items() if size < 0]
    large = [name for name, size in small.items() if size > _SMALL_BYTES]
    if unsized or large:
        raise CheckpointError(f"{source}: {(unsized + large)[0]} has no known size, or one far beyond its kind")
    limits.check_bytes(f"the weights of {source} take", sum(weights.values()))
    return small | weights


def _download(client: HubApi, source: HubSource, name: str, size: int) -> Path:
    try:
        path = Path(client.hf_hub_download(source.repo_id, name, revision=source.revision, token=False))
        arrived = path.stat().st_size
    except Exception as problem:
        raise CheckpointError(f"{name} of {source} could not be downloaded: {_first_line(problem)}") from problem
    if arrived != size:
        raise CheckpointError(f"{name} of {source} came as {arrived:,} bytes instead of {size:,}; download it again")
    return path


def _first_line(problem: Exception) -> str:
    return (str(problem).strip().splitlines() or [type(problem).__name__])[0][:200]
