"""Weights that do not fit the configuration are refused by name, and weights that are not finite are noted."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from explorer.checkpoints import check_report, load, open_checkpoint
from tests.checkpoints.making import hugging_face_model
from tests.checkpoints.refusing import change_weights, refused

pytestmark = pytest.mark.usefixtures("nothing_is_built")


def test_the_fixture_itself_is_good(folder: Path) -> None:
    assert open_checkpoint(folder).report.ok
    assert "Every weight is there and fits." in check_report(folder)


# ---------------------------------------------------------------------------------------- weights that do not fit


def test_missing_and_unexpected_weights_are_named(folder: Path) -> None:
    change_weights(
        folder,
        model__norm__weight=None,
        **{f"model__layers__{n}__self_attn__k_norm__weight": None for n in range(3)},
        **{f"model__layers__{n}__self_attn__q_proj__bias": torch.zeros(24) for n in range(3)},
    )
    problem = refused(folder, "It cannot be loaded")
    assert problem.report is not None
    assert len(problem.report.missing) == 4
    assert len(problem.report.unexpected) == 3
    text = str(problem)
    assert "4 weights are missing from the file:" in text
    assert "  model.layers.*.self_attn.k_norm.weight  (3 of them)" in text
    assert "3 weights are in the file but not in the model:" in text
    assert "  model.layers.*.self_attn.q_proj.bias  (3 of them)" in text


def test_a_wrong_shape_is_named_with_both_shapes(folder: Path) -> None:
    change_weights(folder, model__layers__1__self_attn__o_proj__weight=torch.zeros(24, 16))
    problem = refused(folder, "1 weight is of the wrong shape")
    assert "model.layers.1.self_attn.o_proj.weight: stored 24×16, the configuration gives 16×24" in str(problem)


def test_fused_experts_of_another_orientation(tmp_path: Path) -> None:
    model = hugging_face_model("qwen3_moe")
    model.save_pretrained(tmp_path)
    weights = {name: value.contiguous() for name, value in model.state_dict().items()}
    for layer in range(3):
        name = f"model.layers.{layer}.mlp.experts.gate_up_proj"
        weights[name] = weights[name].transpose(1, 2).contiguous()
    save_file(weights, tmp_path / "model.safetensors")
    problem = refused(tmp_path, "3 weights are of the wrong shape")
    assert "stored 4×16×20, the configuration gives 4×20×16" in str(problem)
    assert problem.report is not None
    assert not problem.report.missing


def test_numbers_that_are_not_floats(folder: Path) -> None:
    change_weights(folder, model__layers__0__mlp__up_proj__weight=torch.zeros(24, 16, dtype=torch.int8))
    refused(folder, "model.layers.0.mlp.up_proj.weight: stored as I8; allowed are F64, F32, F16, BF16")


def test_a_tied_head_that_differs(folder: Path) -> None:
    change_weights(folder, lm_head__weight=torch.randn(40, 16))
    refused(folder, r"ties the head to the embedding, but lm_head.weight and model.embed_tokens.weight differ; write")
    assert open_checkpoint(folder, config={"tie_word_embeddings": False}).report.ok


def test_the_same_weight_in_two_shards(folder: Path) -> None:
    shutil.copy(folder / "model.safetensors", folder / "other.safetensors")
    index = {"weight_map": {"a": "model.safetensors", "b": "other.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    refused(folder, "is in model.safetensors and again in other.safetensors")


@pytest.mark.parametrize(
    ("index", "says"),
    [
        ({}, "has no weight_map"),
        ({"weight_map": {"a": 1}}, "has no weight_map"),
        ({"weight_map": {"a": "../model.safetensors"}}, "not a .safetensors file of the same folder"),
        ({"weight_map": {"a": "/etc/passwd"}}, "not a .safetensors file of the same folder"),
        ({"weight_map": {"a": "x-2.safetensors"}}, "1 of 1 weight files are not in"),
    ],
)
def test_an_index_that_points_elsewhere(folder: Path, index: dict[str, Any], says: str) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    refused(folder, says)


def test_several_weight_files_and_no_index(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "a.safetensors")
    shutil.copy(folder / "a.safetensors", folder / "b.safetensors")
    refused(folder, r"several weight files without an index \(a.safetensors, b.safetensors\); name the one to load")
    assert open_checkpoint(folder / "b.safetensors").report.ok


def test_no_weights_no_folder_no_weight_file(folder: Path, tmp_path: Path) -> None:
    refused(folder / "config.json", "config.json is not a weight file; allowed are .safetensors, .pth, .pt, .bin")
    (folder / "model.safetensors").unlink()
    refused(folder, "holds no weights")
    refused(tmp_path / "nowhere", "does not exist; give a folder")
    refused("a\0b", "cannot be opened|does not exist")
    refused("x" * 5000, "cannot be opened|does not exist")


def test_a_file_that_is_no_language_model(tmp_path: Path) -> None:
    save_file({"conv.weight": torch.zeros(3, 3)}, tmp_path / "model.safetensors")
    refused(tmp_path, "no token embedding among 1 names such as conv.weight")
    save_file({}, tmp_path / "model.safetensors")
    refused(tmp_path, "no token embedding")


# ----------------------------------------------------------------------------------------------------- it warns


def test_numbers_that_are_not_finite_are_noted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    change_weights(folder, model__layers__1__input_layernorm__weight=torch.full((16,), torch.nan))
    assert "1 weight holds NaN or infinity" in load(folder, layer=1).report.text()
    assert "NaN" not in load(folder, layer=0).report.text()
    assert "model.layers.1.input_layernorm.weight" in load(folder).report.text()
