"""One layer of a checkpoint on its own, with its real input; a loaded model that no longer needs its file."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from explorer.checkpoints import load, open_checkpoint
from explorer.checkpoints.shapes import count_parameters, model_shapes
from explorer.model.config import MiniMindConfig
from tests.checkpoints.making import SIZES, assert_close, hugging_face_model, some_ids


@pytest.mark.parametrize("kind", ["qwen3", "qwen3_moe"])
def test_one_layer_with_its_real_input(kind: str, tmp_path: Path) -> None:
    model = hugging_face_model(kind)
    model.save_pretrained(tmp_path)
    checkpoint = open_checkpoint(tmp_path)
    ids = some_ids()
    with torch.no_grad():
        states = model(ids, output_hidden_states=True).hidden_states
    for layer in range(3):
        assert_close(checkpoint.hidden_states(ids, layer), states[layer])
    block = load(tmp_path, layer=1).model
    whole = load(tmp_path).model.model.layers[1]
    assert {name: value.tolist() for name, value in block.state_dict().items()} == {
        name: value.tolist() for name, value in whole.state_dict().items()
    }
    assert torch.equal(checkpoint.embedding(), model.get_input_embeddings().weight)


def test_one_layer_reads_no_other_layers_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hugging_face_model("qwen3").save_pretrained(tmp_path)
    checkpoint = open_checkpoint(tmp_path)
    read: list[str] = []
    original = checkpoint._weights.read
    monkeypatch.setattr(checkpoint._weights, "read", lambda name: read.append(name) or original(name))
    checkpoint.block(2)
    assert len(read) == 11
    assert all(name.startswith("model.layers.2.") for name in read)


def test_padding_is_respected_on_the_way_to_a_layer(tmp_path: Path) -> None:
    hugging_face_model("qwen3").save_pretrained(tmp_path)
    checkpoint = open_checkpoint(tmp_path)
    ids, mask = some_ids(), torch.ones(2, 9, dtype=torch.long)
    mask[0, :3] = 0
    changed = ids.clone()
    changed[0, :3] = 0
    one, other = (checkpoint.hidden_states(given, 3, mask) for given in (ids, changed))
    assert torch.equal(one[0, 3:], other[0, 3:])
    whole = checkpoint.model()
    with torch.no_grad():
        expected = whole(ids, mask, output_hidden_states=True).hidden_states[2]
    assert_close(checkpoint.hidden_states(ids, 2, mask)[0, 3:], expected[0, 3:], 1e-6)


def test_a_loaded_model_can_move_and_the_file_may_go(tmp_path: Path) -> None:
    """Nothing is left on the meta device, and no weight is a view of the file."""
    model = hugging_face_model("qwen3")
    model.save_pretrained(tmp_path)
    torch.save(model.state_dict(), tmp_path / "a.pth")
    for source in (tmp_path, tmp_path / "a.pth"):
        loaded = load(source).model
        with torch.no_grad():
            before = loaded(some_ids()).logits
            if source.is_file():
                source.write_bytes(b"\0" * source.stat().st_size)
            assert torch.equal(loaded(some_ids()).logits, before)
            assert loaded.double()(some_ids()).logits.dtype == torch.float64
        assert not any(tensor.is_meta for tensor in (*loaded.parameters(), *loaded.buffers()))


def test_parameters_are_counted_without_building(tmp_path: Path) -> None:
    for changes in ({}, {"use_moe": True}, {"qk_norm": False, "tie_word_embeddings": False}):
        config = MiniMindConfig(**{**SIZES, **changes})
        total = sum(torch.Size(shape).numel() for shape in model_shapes(config).values())
        assert count_parameters(config) == total
    assert count_parameters(MiniMindConfig()) == 63_912_192  # MiniMind-3
