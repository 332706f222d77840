"""Which files of a folder, or beside a file, make up one checkpoint.

Decides by names, reads only config.json and the index of sharded weights. Must not know what weights mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from explorer.checkpoints.limits import Limits
from explorer.checkpoints.report import CheckpointError, human_bytes
from explorer.checkpoints.stored import SafetensorsFiles, Weights, parse_json
from explorer.checkpoints.torch_file import TorchFile

INDEX = "model.safetensors.index.json"
TORCH = (".pth", ".pt", ".bin")


@dataclass(frozen=True)
class Found:
    """The configuration, None where there is no config.json, and the weights of a checkpoint."""

    folder: Path
    config: Mapping[str, Any] | None
    weights: Weights


def find(path: Path, limits: Limits) -> Found:
    """Open the checkpoint at a folder or a weight file. Raises CheckpointError if it is not one, or more than one."""
    if path.is_file():
        return Found(path.parent, _read_json(path.parent / "config.json", limits), _open([path], limits))
    if not path.is_dir():
        raise CheckpointError(
            f"{path} does not exist; give a folder with a config.json, or a .safetensors or .pth file"
        )
    config = _read_json(path / "config.json", limits)
    return Found(path, config, _open(_weight_files(path, limits), limits))


def _open(paths: list[Path], limits: Limits) -> Weights:
    suffixes = {path.suffix for path in paths}
    if suffixes == {".safetensors"}:
        return SafetensorsFiles(paths, limits)
    if len(paths) == 1 and suffixes <= set(TORCH):
        return TorchFile(paths[0], limits)
    raise CheckpointError(f"{paths[0].name} is not a weight file; allowed are .safetensors, {', '.join(TORCH)}")


def _weight_files(folder: Path, limits: Limits) -> list[Path]:
    """The index's files; otherwise the one .safetensors file; otherwise the one file of torch.save."""
    index = _read_json(folder / INDEX, limits)
    if index is not None:
        return _indexed(folder, index)
    usual = folder / "model.safetensors"
    if usual.is_file():
        return [usual]
    for suffixes in ((".safetensors",), TORCH):
        found = sorted(file for file in folder.iterdir() if file.suffix in suffixes and file.is_file())
        found = [file for file in found if file.name not in ("training_args.bin", "optimizer.pt", "scheduler.pt")]
        if len(found) == 1:
            return found
        if found:
            names = ", ".join(file.name for file in found[:5])
            raise CheckpointError(
                f"{folder} holds several weight files without an index ({names}); name the one to load"
            )
    raise CheckpointError(f"{folder} holds no weights; expected {INDEX}, model.safetensors or one .pth file")


def _indexed(folder: Path, index: Mapping[str, Any]) -> list[Path]:
    """The shards that an index names. Each must be a plain file name of this folder."""
    places = index.get("weight_map")
    names = (
        set(places.values()) if isinstance(places, dict) and all(isinstance(n, str) for n in places.values()) else ()
    )
    if not names:
        raise CheckpointError(f"{INDEX} has no weight_map from weights to files; the file is damaged")
    for name in names:
        if Path(name).name != name or not name.endswith(".safetensors"):
            raise CheckpointError(f'{INDEX} names "{name[:200]}", which is not a .safetensors file of the same folder')
    absent = sorted(name for name in names if not (folder / name).is_file())
    if absent:
        raise CheckpointError(
            f"{len(absent)} of {len(names)} weight files are not in {folder}: {', '.join(absent[:5])}"
        )
    return [folder / name for name in sorted(names)]


def _read_json(path: Path, limits: Limits) -> Mapping[str, Any] | None:
    if not path.is_file():
        return None
    try:
        size = path.stat().st_size
        if size > limits.config_bytes:
            raise CheckpointError(
                f"{path.name} is {human_bytes(size)} large; at most {human_bytes(limits.config_bytes)} are read"
            )
        return parse_json(path.read_bytes(), path.name)
    except OSError as problem:
        raise CheckpointError(f"{path.name} cannot be read: {problem.strerror}") from problem
