"""Damaged weight files, and files with something else in them, are refused; code in them is never run."""

from __future__ import annotations

import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from explorer.checkpoints import CheckpointError, open_checkpoint
from explorer.checkpoints.shapes import model_shapes
from tests.checkpoints.making import random_weights, read_parts, write_parts
from tests.checkpoints.refusing import CONFIG, refused

pytestmark = pytest.mark.usefixtures("nothing_is_built")


# ----------------------------------------------------------------------------------------------- damaged weights


@pytest.mark.parametrize("keep", [0, 5, 100, 5000, -1])
def test_a_truncated_file(folder: Path, keep: int) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    refused(folder, r"model.safetensors is (not a complete|cut short)")


def test_a_file_with_something_appended(folder: Path) -> None:
    with (folder / "model.safetensors").open("ab") as file:
        file.write(b"more")
    refused(folder, "model.safetensors is longer than its header says")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"shape": [10**12, 16]}, "numbers of F32, but 2560 bytes are set aside"),
        ({"shape": [-40, 16]}, "is not a weight"),
        ({"shape": "40"}, "is not a weight"),
        ({"dtype": 7}, "is not a weight"),
        ({"data_offsets": [0]}, "is not a weight"),
        ({"data_offsets": [2560, 0]}, "bytes are set aside"),
        ({"data_offsets": [4, 2564]}, "starts at byte"),
    ],
)
def test_a_header_that_contradicts_itself(folder: Path, change: dict[str, Any], says: str) -> None:
    path = folder / "model.safetensors"
    header, data = read_parts(path)
    header["model.embed_tokens.weight"] |= change
    write_parts(path, header, data)
    refused(folder, says)


def test_a_header_that_is_no_header(folder: Path) -> None:
    path = folder / "model.safetensors"
    for text, says in (
        (b"not json", "header of model.safetensors is not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"[1]", "not a JSON object"),
        (b'{"a": {}, "a": {}}', "a name is given twice"),
    ):
        write_parts(path, text, b"")
        refused(folder, says)
    path.write_bytes((2**63).to_bytes(8, "little") + b"{}")
    refused(folder, "shorter than its own header")
    path.write_bytes((30_000_000).to_bytes(8, "little") + b" " * 30_000_000)
    refused(folder, "has a header of 28.6 MiB; at most 8.0 MiB are read")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=st.integers(0, 4000), byte=st.integers(0, 255), cut=st.none() | st.integers(0, 40_000))
def test_any_flipped_byte_or_cut_is_refused_or_harmless(folder: Path, where: int, byte: int, cut: int | None) -> None:
    path = folder / "model.safetensors"
    good = path.read_bytes()
    bad = bytearray(good)
    bad[where] = byte
    try:
        path.write_bytes(bytes(bad)[:cut])
        open_checkpoint(folder)
    except CheckpointError as problem:
        assert str(problem)
    finally:
        path.write_bytes(good)


# --------------------------------------------------------------------------------------------- files of torch.save


class Code:
    """Unpickling one of these would create the file named."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, (str(self.path),))


@pytest.mark.parametrize("bare", [True, False])
def test_a_pickle_with_code_in_it_is_never_run(tmp_path: Path, bare: bool) -> None:
    evidence, path = tmp_path / "ran", tmp_path / "model.pth"
    content = {"model.norm.weight": torch.zeros(2), "x": Code(evidence)}
    if bare:
        path.write_bytes(pickle.dumps(content))
    else:
        torch.save(content, path)
    says = "a bare pickle, which could run code" if bare else "was not opened, because loading it could run code"
    refused(path, says)
    assert not evidence.exists()


@pytest.mark.parametrize("keep", [10, 1000, -10])
def test_a_truncated_pth(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "a.pth"
    torch.save(random_weights(model_shapes(CONFIG)), path)
    path.write_bytes(path.read_bytes()[:keep])
    refused(path, "not a complete file of torch.save")


def test_a_damaged_pth(tmp_path: Path) -> None:
    path = tmp_path / "a.pth"
    torch.save(random_weights(model_shapes(CONFIG)), path)
    data = bytearray(path.read_bytes())
    start = data.find(b"data.pkl") + 100
    data[start : start + 200] = b"\x00" * 200
    path.write_bytes(data)
    refused(path, r"a.pth (is damaged|holds more|cannot be read)")


def test_a_compressed_archive(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.pth", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/data.pkl", b"0" * 10**6)
    refused(tmp_path / "a.pth", "compressed archive")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ([1, 2], "holds a list, not a state dict"),
        ({}, "not a state dict"),
        (torch.zeros(3), "holds a Tensor, not a state dict"),
        ({"a": 1}, "the entry 'a' is not a named tensor"),
        ({3: torch.zeros(2)}, "the entry 3 is not a named tensor"),
        ({"a": torch.zeros(1).expand(10**9)}, '"a" claims more numbers than the file holds'),
        ({"a": torch.zeros(3, 3).to_sparse()}, "no token embedding"),
    ],
)
def test_a_pth_with_something_else_in_it(tmp_path: Path, content: object, says: str) -> None:
    torch.save(content, tmp_path / "a.pth")
    refused(tmp_path / "a.pth", says)
