"""The course's readable model: it runs alone, has the shapes it says, and shows every quantity."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import explorer.course.transformer_model as course
from explorer.course.transformer_model import TransformerConfig, TransformerModel
from tests.course.tapping import TAPS, find_taps, random_block, run_with_taps

FILE = Path(course.__file__)


# ------------------------------------------------------------------------------------------------ it runs alone


def test_the_file_alone_runs_where_the_project_cannot_be_imported(tmp_path: Path) -> None:
    copy = tmp_path / "transformer_model.py"
    shutil.copyfile(FILE, copy)
    program = (
        "import sys, runpy\n"
        "sys.modules['explorer'] = None\n"  # importing it now raises
        f"runpy.run_path({str(copy)!r}, run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-I", "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["input_ids", "[2,", "5]"]
    assert [line.split()[2] for line in lines if line.startswith("layer 0:")] == list(TAPS)
    assert ["layer", "1:", "q", "[2,", "3,", "5,", "4]"] in [line.split() for line in lines]
    assert "All four checks hold." in lines[-1]


def test_it_imports_torch_and_the_standard_library_only() -> None:
    imported = set()
    for node in ast.walk(ast.parse(FILE.read_text())):
        if isinstance(node, ast.Import):
            imported |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add(str(node.module).split(".")[0])
    assert "torch" in imported
    assert imported - {"torch"} <= set(sys.stdlib_module_names)


# ----------------------------------------------------------------------------------------------- shapes and ties


def test_shapes_of_the_capstone_case() -> None:
    config = TransformerConfig(hidden_size=12, num_heads=3)
    model = TransformerModel(config)
    assert model(torch.zeros(2, 5, dtype=torch.long)).shape == (2, 5, config.vocab_size)
    seen = run_with_taps(model.layers[0], torch.randn(2, 5, 12))
    assert tuple(seen) == TAPS
    for name in ("q", "k", "v", "q_rot", "k_rot", "heads"):
        assert seen[name].shape == (2, 3, 5, 4), name
    for name in ("scores", "masked_scores", "probs"):
        assert seen[name].shape == (2, 3, 5, 5), name
    for name in ("gate", "up", "hidden"):
        assert seen[name].shape == (2, 5, config.ffn_width), name
    for name in ("resid_pre", "attn_norm", "concat", "attn_out", "resid_mid", "ffn_norm", "ffn_out", "resid_post"):
        assert seen[name].shape == (2, 5, 12), name


def test_the_head_is_the_embedding_and_has_no_bias() -> None:
    model = TransformerModel(TransformerConfig())
    assert model.lm_head.weight is model.token_embedding.weight
    assert model.lm_head.bias is None
    assert all(not name.endswith("bias") for name, _ in model.named_parameters())


def test_gradients_reach_every_weight() -> None:
    model = TransformerModel(TransformerConfig())
    model(torch.arange(8).view(2, 4)).square().sum().backward()
    assert all(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in model.parameters())


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"num_heads": 5}, "hidden_size 12 cannot be split into 5 equal heads"),
        ({"num_heads": 4}, "hidden_size / num_heads is 3; RoPE turns pairs"),
        ({"num_layers": 0}, "num_layers is 0; it must be at least 1"),
        ({"vocab_size": -2}, "vocab_size is -2"),
    ],
)
def test_impossible_sizes_are_refused_in_words(given: dict[str, int], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        TransformerConfig(**given)  # type: ignore[arg-type]


def test_input_of_one_row_without_a_batch_axis_is_refused() -> None:
    with pytest.raises(ValueError, match=r"input_ids has shape \[4\]; it must be \[batch, tokens\]"):
        TransformerModel(TransformerConfig())(torch.arange(4))


# ---------------------------------------------------------------------------------------------------------- taps


def test_nothing_that_a_tap_shows_is_changed_afterwards() -> None:
    block = random_block(TransformerConfig())
    versions, kept, handles = {}, {}, []
    for name, tap in find_taps(block).items():

        def keep(_module: nn.Module, _inputs: object, value: Tensor, name: str = name) -> None:
            versions[name], kept[name] = value._version, (value, value.clone())

        handles.append(tap.register_forward_hook(keep))
    with torch.no_grad():
        block(torch.randn(2, 5, 12))
    for name, (value, copy) in kept.items():
        assert value._version == versions[name], name
        assert torch.equal(value, copy), name


@pytest.mark.parametrize("name", TAPS)
def test_a_hook_that_returns_a_value_changes_the_result(name: str) -> None:
    block, x = random_block(TransformerConfig()), torch.randn(2, 5, 12)
    with torch.no_grad():
        plain = block(x)
        for replacement, changes in (("same", False), ("zero", True)):
            handle = find_taps(block)[name].register_forward_hook(
                lambda _m, _i, value, r=replacement: value.clone() if r == "same" else torch.zeros_like(value)
            )
            edited = block(x)
            handle.remove()
            assert torch.equal(edited, plain) != changes, f"{name} replaced by {replacement}"
        assert torch.equal(block(x), plain)
