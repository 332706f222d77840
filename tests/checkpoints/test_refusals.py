"""What cannot be loaded says so quickly, in words that help, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from explorer.checkpoints import CheckpointError, Limits, check_report, load, open_checkpoint
from explorer.checkpoints.shapes import model_shapes
from explorer.model.block import MiniMindBlock
from explorer.model.config import MiniMindConfig
from tests.checkpoints.making import (
    SIZES,
    hugging_face_model,
    random_weights,
    read_parts,
    write_folder,
    write_parts,
)

CONFIG = MiniMindConfig(**SIZES)
QWEN = {"model_type": "qwen3", **SIZES, "rope_theta": 1e6, "tie_word_embeddings": True}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A good checkpoint, to be spoiled."""
    return write_folder(tmp_path / "model", QWEN, random_weights(model_shapes(CONFIG)))


@pytest.fixture(autouse=True)
def nothing_is_built(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A refusal comes before the first layer is made."""

    def built(*_: object, **__: object) -> None:
        raise AssertionError("a block was built from a checkpoint that does not fit")

    monkeypatch.setattr(MiniMindBlock, "__init__", built)
    return


def refused(source: Path | str, says: str, **options: Any) -> CheckpointError:
    """Both ways of loading refuse, in under a second, with these words; the files are as they were."""
    for layer in (None, 0):
        start = time.perf_counter()
        with pytest.raises(CheckpointError, match=says) as caught:
            load(source, layer=layer, **options)
        assert time.perf_counter() - start < 1
    return caught.value


def rewrite(folder: Path, **changes: Any) -> None:
    """Change entries of config.json; None takes one away."""
    path = folder / "config.json"
    config = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({name: value for name, value in config.items() if value is not None}))


def change_weights(folder: Path, **changes: torch.Tensor | None) -> None:
    """Change weights, '__' standing for '.'; None takes one away."""
    weights = load_file(folder / "model.safetensors")
    for name, value in changes.items():
        weights.pop(name.replace("__", "."), None)
        if value is not None:
            weights[name.replace("__", ".")] = value
    save_file(weights, folder / "model.safetensors")


def test_the_fixture_itself_is_good(folder: Path) -> None:
    assert open_checkpoint(folder).report.ok
    assert "Every weight is there and fits." in check_report(folder)


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
    refused(folder, r"ties the head to the embedding, but lm_head.weight and model.embed_tokens.weight differ; pass")
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


# ------------------------------------------------------------------------------------------------ configurations


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"model_type": "gpt2"}, 'of a model of type "gpt2"; allowed are minimind, qwen3, qwen3_moe, llama'),
        ({"attention_bias": True}, "attention_bias=True, which MiniMind does not compute"),
        ({"quantization_config": {"bits": 4}}, "quantization_config="),
        ({"use_sliding_window": True, "sliding_window": 8}, "always sees the whole text"),
        ({"layer_types": ["full_attention", "sliding_attention", "full_attention"]}, "always sees the whole text"),
        ({"mlp_only_layers": [1]}, r"mlp_only_layers=\[1\]"),
        ({"decoder_sparse_step": 2}, "decoder_sparse_step=2"),
        ({"hidden_act": "gelu_new"}, 'hidden_act="gelu_new" is not known'),
        ({"rope_scaling": {"rope_type": "linear", "factor": 2.0}}, 'RoPE scaling of type "linear"'),
        ({"rope_scaling": [1]}, "must be an object"),
        ({"rope_scaling": {"type": "yarn", "factor": 2.0}}, "YaRN, which needs"),
        ({"num_key_value_heads": 3}, "does not divide num_attention_heads"),
        ({"num_attention_heads": "four"}, "num_attention_heads='four'"),
        ({"rms_norm_eps": 10**400}, "configuration cannot be used"),
        ({"rope_theta": [1]}, "configuration cannot be used"),
        ({"hidden_size": 10**400}, "configuration cannot be used|could not|would take over|would take"),
        ({"head_dim": -6}, "head_dim=-6"),
    ],
)
def test_a_configuration_that_minimind_cannot_compute(folder: Path, change: dict[str, Any], says: str) -> None:
    rewrite(folder, **change)
    refused(folder, says)


def test_shared_experts_are_refused(folder: Path) -> None:
    rewrite(folder, model_type="minimind", use_moe=True, n_routed_experts=4, n_shared_experts=1)
    refused(folder, "n_shared_experts=1: MiniMind2's mixture of experts adds shared experts")


def test_a_configuration_of_a_hundred_billion_parameters(folder: Path) -> None:
    rewrite(
        folder, hidden_size=12288, num_hidden_layers=72, num_attention_heads=96, num_key_value_heads=96, head_dim=128,
        intermediate_size=32768,
    )  # fmt: skip
    start = time.perf_counter()
    with pytest.raises(CheckpointError, match=r"describes 130,\d{3},\d{3},\d{3} parameters, which would take 48\d"):
        load(folder)
    with pytest.raises(CheckpointError, match="raise the limit"):
        check_report(folder)
    with pytest.raises(CheckpointError, match="of the wrong shape"):
        open_checkpoint(folder)
    assert time.perf_counter() - start < 1


@pytest.mark.parametrize("sizes", [{"num_hidden_layers": 10**9}, {"num_experts": 10**9, "model_type": "qwen3_moe"}])
def test_a_configuration_of_countless_small_layers(folder: Path, sizes: dict[str, Any]) -> None:
    rewrite(folder, **sizes)
    refused(folder, "the limit is", limits=Limits(max_bytes=10**40))
    refused(folder, "the limit is|wrong shape")


def test_a_limit_on_bytes(folder: Path) -> None:
    with pytest.raises(CheckpointError, match=r"the configuration describes .* the limit is 1.0 KiB"):
        load(folder, limits=Limits(max_bytes=1024))
    with pytest.raises(CheckpointError, match=r"one block has 2,348 parameters, which would take 9.2 KiB"):
        load(folder, layer=0, limits=Limits(max_bytes=1024))


@pytest.mark.parametrize("text", [b"{", b"[]", b"\xff\xfe", b'{"a": NaN}', b'{"a":' * 50_000, b" " * 2_000_000])
def test_a_config_that_is_not_one(folder: Path, text: bytes) -> None:
    (folder / "config.json").write_bytes(text)
    refused(folder, "config.json is (not|1.9 MiB large)")


def test_a_told_field_that_does_not_exist(folder: Path) -> None:
    refused(folder, "config has no field 'heads'; the fields are", config={"heads": 4})


@pytest.mark.parametrize("layer", [-1, 3])
def test_a_layer_that_does_not_exist(folder: Path, layer: int) -> None:
    with pytest.raises(CheckpointError, match=f"layer {layer} was asked for; this checkpoint has layers 0 to 2"):
        load(folder, layer=layer)


def test_a_number_format_that_does_not_exist(folder: Path) -> None:
    refused(folder, "dtype torch.int8 was asked for", dtype=torch.int8)


def test_tokens_outside_the_vocabulary(folder: Path) -> None:
    checkpoint = open_checkpoint(folder)
    for ids in (torch.tensor([[40]]), torch.tensor([[-1]]), torch.tensor([3])):
        with pytest.raises(ValueError, match="each from 0 to 39"):
            checkpoint.hidden_states(ids, 0)


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


def test_what_shapes_leave_open_is_asked_for(tmp_path: Path) -> None:
    config = MiniMindConfig(**{**SIZES, "head_dim": 4}, qk_norm=False)
    torch.save(random_weights(model_shapes(config)), tmp_path / "a.pth")
    refused(tmp_path / "a.pth", r"how many heads there are; pass config=\{'num_attention_heads': 8\}")
    refused(
        tmp_path / "a.pth", "num_attention_heads=5 cannot be right: q_proj has 16", config={"num_attention_heads": 5}
    )
    early = {"tok_embeddings.weight": torch.zeros(40, 16), "layers.0.attention.wq.weight": torch.zeros(16, 16),
             "layers.0.attention.wk.weight": torch.zeros(8, 16)}  # fmt: skip
    torch.save(early, tmp_path / "b.pth")
    refused(tmp_path / "b.pth", r"pass config=\{'rope_theta': 1e6\} for MiniMind2", config={"num_attention_heads": 4})


# ----------------------------------------------------------------------------------------------------- it warns


def test_what_is_not_used_is_noted(folder: Path) -> None:
    rewrite(folder, embedding_multiplier=3, initializer_range=0.02)
    assert "config.json also says embedding_multiplier; this has no counterpart here." in check_report(folder)


def test_numbers_that_are_not_finite_are_noted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    change_weights(folder, model__layers__1__input_layernorm__weight=torch.full((16,), torch.nan))
    assert "1 weight holds NaN or infinity" in load(folder, layer=1).report.text()
    assert "NaN" not in load(folder, layer=0).report.text()
    assert "model.layers.1.input_layernorm.weight" in load(folder).report.text()
