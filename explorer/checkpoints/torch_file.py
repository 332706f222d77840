"""A state dict that torch.save wrote (.pth, .pt, .bin), read without running anything that the file contains.

Such a file is a zip archive with a pickle inside. Only tensors and plain data are accepted (weights_only), and the
numbers stay on disk until they are asked for. Must not know what the weights mean.
"""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from explorer.checkpoints.limits import Limits
from explorer.checkpoints.report import CheckpointError, human_bytes
from explorer.checkpoints.stored import FLOATS, Stored

_NAMES = {dtype: name for name, dtype in FLOATS.items()}
_WRAPPERS = ("model", "state_dict", "model_state_dict")  # where training scripts put the weights beside other things


class TorchFile:
    """The weights of one file written by torch.save."""

    def __init__(self, path: Path, limits: Limits) -> None:
        _check_archive(path, limits)
        self.files: tuple[str, ...] = (path.name,)
        self._tensors = _state_dict(path, _unpickle(path))
        if len(self._tensors) > limits.names:
            raise CheckpointError(
                f"{path.name} names {len(self._tensors):,} weights; at most {limits.names:,} are read"
            )
        self.stored = {name: _describe(tensor) for name, tensor in self._tensors.items()}

    def read(self, name: str) -> Tensor:
        return self._tensors[name].detach().clone(memory_format=torch.contiguous_format)

    def equal(self, one: str, other: str) -> bool:
        first, second = self._tensors[one], self._tensors[other]
        if self.stored[one] != self.stored[other]:
            return False
        if first.data_ptr() == second.data_ptr() and first.stride() == second.stride():
            return True
        return torch.equal(first, second)


def _check_archive(path: Path, limits: Limits) -> None:
    """Look at the archive's table of contents: whole, not compressed, and a pickle of sensible size."""
    try:
        if not zipfile.is_zipfile(path):
            raise CheckpointError(
                f"{path.name} is not a complete file of torch.save (a zip archive): it is cut short, or a bare pickle, "
                "which could run code and is never opened; save the state dict again with torch.save"
            )
        with zipfile.ZipFile(path) as archive:
            records = archive.infolist()
    except (OSError, zipfile.BadZipFile, ValueError) as problem:
        raise CheckpointError(f"{path.name} cannot be read: {problem}; download or save it again") from problem
    if any(record.compress_type != zipfile.ZIP_STORED for record in records):
        raise CheckpointError(f"{path.name} is a compressed archive, which torch.save never writes; save it again")
    pickles = [record.file_size for record in records if record.filename.endswith(".pkl")]
    if sum(pickles) > limits.header_bytes:
        raise CheckpointError(
            f"{path.name} describes its contents in {human_bytes(sum(pickles))}; "
            f"at most {human_bytes(limits.header_bytes)} are read"
        )


def _unpickle(path: Path) -> object:
    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except pickle.UnpicklingError as problem:
        reason = str(problem).split("Please file")[0].split("Check the documentation")[0]
        wanted = next((line.strip() for line in reason.splitlines() if "GLOBAL" in line or "global" in line), "")
        raise CheckpointError(
            f"{path.name} holds more than tensors and plain data, and was not opened, because loading it could run "
            f"code. {wanted} Save model.state_dict() alone with torch.save, or use .safetensors".replace("  ", " ")
        ) from problem
    except Exception as problem:  # a damaged or hostile file can make the unpickler raise anything
        first = (str(problem).strip().splitlines() or [type(problem).__name__])[0]
        raise CheckpointError(f"{path.name} is damaged ({first[:200]}); download or save it again") from problem


def _state_dict(path: Path, found: object) -> dict[str, Tensor]:
    """The mapping from names to tensors, whether it is the whole file or one entry of it."""
    if isinstance(found, Mapping):
        for key in _WRAPPERS:
            if isinstance(found.get(key), Mapping):
                found = found[key]
                break
    if not isinstance(found, Mapping) or not found:
        raise CheckpointError(
            f"{path.name} holds a {type(found).__name__}, not a state dict (names and tensors); "
            "save model.state_dict() with torch.save"
        )
    strange = [name for name, value in found.items() if not isinstance(name, str) or not isinstance(value, Tensor)]
    if strange:
        raise CheckpointError(
            f"{path.name}: the entry {strange[0]!r} is not a named tensor; save model.state_dict() with torch.save"
        )
    for name, tensor in found.items():
        if (
            tensor.layout is torch.strided
            and tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes()
        ):
            raise CheckpointError(f'{path.name}: "{name}" claims more numbers than the file holds; it is damaged')
    return dict(found)


def _describe(tensor: Tensor) -> Stored:
    plain = tensor.layout is torch.strided and not tensor.is_quantized
    dtype = _NAMES.get(tensor.dtype, str(tensor.dtype).removeprefix("torch.")) if plain else str(tensor.layout)
    return Stored(tuple(tensor.shape), dtype, tensor.numel() * tensor.element_size() if plain else 0)
