"""The report and the summary as the command line prints them."""

from __future__ import annotations

import json
from pathlib import Path

from explorer.checkpoints import Misshaped, Report, check_report, summary
from explorer.checkpoints.report import grouped, human_bytes, human_count
from explorer.checkpoints.shapes import model_shapes
from explorer.model.config import MiniMindConfig
from tests.checkpoints.making import SIZES, random_weights, write_folder


def test_a_good_checkpoint_in_words(tmp_path: Path) -> None:
    config = MiniMindConfig(**SIZES)
    write_folder(tmp_path, {**config.to_dict(), "model_type": "minimind"}, random_weights(model_shapes(config)))
    assert check_report(tmp_path).splitlines() == [
        f"Checkpoint   {tmp_path}",
        "Layout       MiniMind",
        "Files        model.safetensors (30.1 KiB, F32)",
        "Parameters   7,700",
        "Every weight is there and fits.",
        "Stream       D=16, L=3 blocks, V=40",
        "Attention    H=4, Hkv=2, Dh=6",
        "Feed-forward F=24",
        "Positions    up to 64, rope_theta=1e+06",
        "Norms        eps=1e-06, qk_norm on, head tied to the embedding",
        "One block    2,348 parameters",
    ]


def test_summary_of_experts_and_yarn() -> None:
    text = summary(
        MiniMindConfig(use_moe=True, inference_rope_scaling=True, norm_topk_prob=False, tie_word_embeddings=False)
    )
    assert "F=2432, E=4 experts, k=1 a token, weights as they are" in text
    assert "rope_theta=1e+06, YaRN ×16" in text
    assert "head of its own" in text


def test_a_bad_report_lists_each_kind_and_counts_the_rest() -> None:
    report = Report(
        source="x", layout="MiniMind", files=("a",), dtypes=("F32",),
        missing=tuple(f"model.thing{n}.weight" for n in range(20)),
        unexpected=("one",),
        misshaped=(Misshaped("w", (), (2, 3)),),
        notes=("something was assumed.",),
    )  # fmt: skip
    text = report.text()
    assert not report.ok
    assert "Note: something was assumed." in text
    assert "20 weights are missing from the file:" in text
    assert "  and 8 more" in text
    assert "1 weight is in the file but not in the model:\n  one" in text
    assert "w: stored a single number, the configuration gives 2×3" in text
    assert text.endswith("It cannot be loaded.")


def test_names_of_many_layers_become_one_line() -> None:
    names = [f"model.layers.{n}.mlp.experts.{e}.up_proj.weight" for n in range(2) for e in range(3)]
    assert grouped(names) == ["model.layers.*.mlp.experts.*.up_proj.weight  (6 of them)"]
    assert grouped(["model.layers.7.x"]) == ["model.layers.7.x"]


def test_numbers_in_words() -> None:
    assert [human_bytes(n) for n in (0, 1023, 1536, 4 * 1024**3, 10**400)][:4] == [
        "0 bytes", "1023 bytes", "1.5 KiB", "4.0 GiB",
    ]  # fmt: skip
    assert human_bytes(10**400).endswith("TiB")
    assert human_count(63_912_192) == "63,912,192"
    assert human_count(10**5000) == "over a million billion"


def test_a_checkpoint_of_the_public_configuration(tmp_path: Path) -> None:
    """A config.json as the public MiniMind-3 saves it, YaRN field empty."""
    config = {
        "architectures": ["MiniMindForCausalLM"], "auto_map": {"AutoConfig": "model_minimind.MiniMindConfig"},
        "model_type": "minimind", "bos_token_id": 1, "dropout": 0.0, "eos_token_id": 2, "flash_attn": True,
        "hidden_act": "silu", "inference_rope_scaling": False, "rope_scaling": None, "rope_theta": 1e6,
        "rms_norm_eps": 1e-6, "use_moe": False, "num_experts": 4, "num_experts_per_tok": 1, "norm_topk_prob": True,
        "moe_intermediate_size": 24, "router_aux_loss_coef": 5e-4, "tie_word_embeddings": True,
        "torch_dtype": "float16", "transformers_version": "4.57.1", "use_cache": True, **SIZES,
    }  # fmt: skip
    weights = random_weights(model_shapes(MiniMindConfig(**SIZES)))
    write_folder(tmp_path, config, weights)
    assert "Note" not in check_report(tmp_path)
    scaling = {"beta_fast": 32, "beta_slow": 1, "factor": 16, "original_max_position_embeddings": 32,
               "attention_factor": 1.0, "type": "yarn"}  # fmt: skip
    (tmp_path / "config.json").write_text(
        json.dumps({**config, "inference_rope_scaling": True, "rope_scaling": scaling})
    )
    assert "YaRN ×16" in check_report(tmp_path)
