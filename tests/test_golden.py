"""The frozen numbers of the public MiniMind implementation against ours: every tensor that a golden file lists.

MINIMIND_GOLDEN_DIR names another folder of files of the same form (tests/golden/README.md describes it).
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from torch import Tensor

from explorer.capture import record
from explorer.model import MiniMindBlock, MiniMindConfig, RotaryEmbedding

FOLDER = Path(os.environ.get("MINIMIND_GOLDEN_DIR") or Path(__file__).parent / "golden")
FILES = sorted(FOLDER.glob("*.safetensors"))
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 2e-3}
MASKED = -1e8  # an expected score at or below this belongs to a key that the query may not see
SLOT_TAPS = ("expert_index", "expert_weight")


class Golden:
    """One file: its configuration and tensors, with `weights.` and `expected.` taken apart."""

    def __init__(self, path: Path) -> None:
        with safe_open(path, "pt") as file:
            self.metadata: dict[str, str] = file.metadata()
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        self.config = MiniMindConfig.from_dict(json.loads(self.metadata["config"]))
        self.weights = {name[len("weights.") :]: x for name, x in tensors.items() if name.startswith("weights.")}
        self.expected = {name[len("expected.") :]: x for name, x in tensors.items() if name.startswith("expected.")}
        self.inputs = {name: x for name, x in tensors.items() if not name.startswith(("weights.", "expected."))}
        self.dtype = DTYPES[self.metadata.get("dtype", "float32")]


def families(prefix: str) -> list[Path]:
    return [path for path in FILES if path.name.startswith(prefix)]


def assert_close(name: str, got: Tensor, expected: Tensor, tolerance: float) -> None:
    """Same shape; −∞ where a score is masked; otherwise within the tolerance of the largest magnitude."""
    assert got.shape == expected.shape, f"{name}: shape {tuple(got.shape)}, expected {tuple(expected.shape)}"
    got, expected = got.double(), expected.double()
    if name == "masked_scores":
        masked = expected <= MASKED
        assert torch.equal(masked, got == -torch.inf), f"{name}: other cells are masked than expected"
        got, expected = got[~masked], expected[~masked]
    assert got.isfinite().all(), f"{name}: not finite"
    if expected.numel():
        error = ((got - expected).abs().max() / expected.abs().max().clamp(min=1e-30)).item()
        assert error <= tolerance, f"{name}: off by {error:.2e} of the largest magnitude, allowed {tolerance:.0e}"


def real_rows(name: str, x: Tensor, golden: Golden) -> Tensor:
    """Only what belongs to real tokens: queries along axis 1 or 2, present keys and values along their own axis."""
    mask = golden.inputs.get("attention_mask")
    if mask is None:
        return x
    keys, tokens = mask.shape[1], golden.expected["resid_pre"].shape[1]
    real = mask.bool() if name in ("present_k", "present_v") else mask.bool()[:, keys - tokens :]
    per_head = x.dim() == 4 and not name.startswith("expert_")
    return (x.transpose(1, 2) if per_head else x)[real]


def in_slot_order(index: Tensor, x: Tensor) -> Tensor:
    """A token's k experts are a set: their slots in the order of the expert numbers."""
    return x.gather(-1, index.long().argsort(-1))


def test_the_folder_holds_files_of_known_families() -> None:
    assert FILES, f"no golden files in {FOLDER}"
    strays = [path.name for path in FILES if not path.name.startswith(("block_", "lm_"))]
    assert not strays, f"files that no test reads: {strays}"


@pytest.mark.parametrize("path", families("block_"), ids=lambda path: path.stem)
def test_block(path: Path) -> None:
    golden = Golden(path)
    block = MiniMindBlock(golden.config).eval()
    block.load_state_dict(golden.weights)
    block.to(golden.dtype)
    x = golden.expected["resid_pre"].to(golden.dtype)
    past_tokens = int(golden.metadata.get("past_tokens", 0))
    past = None
    if past_tokens:
        past = (golden.inputs["past_k"].to(golden.dtype), golden.inputs["past_v"].to(golden.dtype))
    tables = RotaryEmbedding(golden.config)(past_tokens, x.shape[1])
    for name, table in zip(("rope_cos", "rope_sin"), tables, strict=True):
        if name in golden.inputs:
            assert_close(name, table, golden.inputs[name], TOLERANCE[golden.dtype])

    trace = record(block, x, tables, past, golden.inputs.get("attention_mask"))

    assert golden.expected, "the file expects nothing"
    for name, expected in golden.expected.items():
        got = trace.tensor(name)
        if name in SLOT_TAPS:
            got = in_slot_order(trace.tensor("expert_index"), got)
            expected = in_slot_order(golden.expected["expert_index"], expected)
        assert_close(name, real_rows(name, got, golden), real_rows(name, expected, golden), TOLERANCE[golden.dtype])


@pytest.mark.parametrize("path", families("lm_"), ids=lambda path: path.stem)
def test_language_model(path: Path) -> None:
    from explorer.model.causal_lm import MiniMindForCausalLM

    golden = Golden(path)
    model = MiniMindForCausalLM(golden.config).eval()
    loaded = model.load_state_dict(golden.weights, strict=False)
    assert not loaded.unexpected_keys
    assert set(loaded.missing_keys) <= ({"lm_head.weight"} if golden.config.tie_word_embeddings else set())
    model.to(golden.dtype)
    ids, mask = golden.inputs["input_ids"], golden.inputs.get("attention_mask")
    real = torch.ones_like(ids, dtype=torch.bool) if mask is None else mask.bool()

    with torch.no_grad():
        output = model(ids, attention_mask=mask, labels=golden.inputs.get("labels"), output_hidden_states=True)
        model.train()
        aux_loss = model(ids, attention_mask=mask).aux_loss
        model.eval()
    got = {
        "logits": output.logits[real],
        "final_norm": output.hidden_states[-1][real],
        "aux_loss": output.aux_loss.reshape(1),
        "train_aux_loss": aux_loss.reshape(1),
    }
    if output.loss is not None:
        got["loss"] = output.loss.reshape(1)
    if "greedy_ids" in golden.expected:
        new = golden.expected["greedy_ids"].shape[1] - ids.shape[1]
        got["greedy_ids"] = model.generate(ids, mask, max_new_tokens=new, temperature=0, eos_token_id=None)

    assert golden.expected, "the file expects nothing"
    for name, expected in golden.expected.items():
        if name == "greedy_ids":
            assert torch.equal(got[name], expected), f"greedy_ids: {got[name].tolist()}, expected {expected.tolist()}"
        else:
            expected = expected[real] if name in ("logits", "final_norm") else expected.reshape(1)
            assert_close(name, got[name], expected, TOLERANCE[golden.dtype])
