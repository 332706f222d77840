"""Every public layout gives the numbers that its own implementation gives: transformers' for Qwen3 and Llama."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from explorer.checkpoints import load, open_checkpoint
from explorer.checkpoints.shapes import model_shapes
from explorer.model.config import MiniMindConfig
from tests.checkpoints.making import (
    SIZES,
    assert_close,
    hugging_face_model,
    random_weights,
    randomise,
    some_ids,
    write_folder,
)

GOLDEN = Path(__file__).parent.parent / "golden"


def compare(model: Any, source: Path, **options: Any) -> Any:
    """Load `source` and hold its logits against the model's own."""
    loaded = load(source, **options)
    ids = some_ids()
    with torch.no_grad():
        assert_close(loaded.model(ids).logits, model(ids).logits)
    assert loaded.report.ok
    assert not loaded.model.training
    return loaded


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("kind", ["qwen3", "llama"])
def test_dense_layouts_agree_with_transformers(kind: str, tied: bool, tmp_path: Path) -> None:
    model = hugging_face_model(kind, tie_word_embeddings=tied, rms_norm_eps=1e-3)
    model.save_pretrained(tmp_path)
    loaded = compare(model, tmp_path)
    assert loaded.config.qk_norm == (kind == "qwen3")
    assert loaded.config.rope_theta == 10_000.0
    assert loaded.config.rms_norm_eps == 1e-3
    assert (loaded.model.lm_head.weight is loaded.model.model.embed_tokens.weight) == tied
    assert loaded.report.parameters == sum(weight.numel() for weight in loaded.model.parameters())


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize(("k", "renormalised"), [(1, True), (1, False), (2, True), (3, False)])
def test_mixtures_of_experts_agree_with_transformers(k: int, renormalised: bool, fused: bool, tmp_path: Path) -> None:
    model = hugging_face_model("qwen3_moe", num_experts_per_tok=k, norm_topk_prob=renormalised)
    model.save_pretrained(tmp_path)
    if fused:  # as the model holds its experts in memory, and as some tools write them
        save_file(
            {name: value.contiguous() for name, value in model.state_dict().items()}, tmp_path / "model.safetensors"
        )
    names = set(load_file(tmp_path / "model.safetensors"))
    assert ("model.layers.0.mlp.experts.gate_up_proj" in names) == fused
    loaded = compare(model, tmp_path)
    assert loaded.config.use_moe
    assert loaded.report.layout == ("Qwen3-MoE, fused experts" if fused else "Qwen3-MoE")


@pytest.mark.parametrize("theta", [1e4, 1e6])
def test_yarn_agrees_with_transformers(theta: float, tmp_path: Path) -> None:
    scaling = {"rope_type": "yarn", "rope_theta": theta, "factor": 4.0, "original_max_position_embeddings": 16}
    model = hugging_face_model("qwen3", rope_parameters=scaling, head_dim=8)
    model.save_pretrained(tmp_path)
    loaded = compare(model, tmp_path)
    assert loaded.config.yarn is not None
    assert loaded.config.yarn.attention_factor == pytest.approx(0.1 * torch.log(torch.tensor(4.0)).item() + 1)


def test_the_configuration_of_transformers_4_is_read(tmp_path: Path) -> None:
    model = hugging_face_model("qwen3", rope_parameters={"rope_type": "default", "rope_theta": 5e5})
    model.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    del config["rope_parameters"]
    (tmp_path / "config.json").write_text(json.dumps({**config, "rope_theta": 5e5, "rope_scaling": None}))
    assert compare(model, tmp_path).config.rope_theta == 5e5


def test_sharded_folders_and_half_precision(tmp_path: Path) -> None:
    model = hugging_face_model("qwen3")
    half = copy.deepcopy(model).to(torch.bfloat16)
    half.save_pretrained(tmp_path, max_shard_size="5KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 2
    with torch.no_grad():  # the same rounded weights, but tables that were never rounded
        for weight, rounded in zip(model.parameters(), half.parameters(), strict=True):
            weight.copy_(rounded)
    loaded = compare(model, tmp_path)
    assert {weight.dtype for weight in loaded.model.parameters()} == {torch.float32}
    assert loaded.report.dtypes == ("BF16",)
    kept = load(tmp_path, dtype=torch.bfloat16).model
    assert {weight.dtype for weight in kept.parameters()} == {torch.bfloat16}


def test_a_base_model_without_the_leading_model(tmp_path: Path) -> None:
    model = hugging_face_model("qwen3", tie_word_embeddings=True)
    model.model.save_pretrained(tmp_path)
    assert "embed_tokens.weight" in load_file(tmp_path / "model.safetensors")
    compare(model, tmp_path)


# ------------------------------------------------------------------------------------------------ MiniMind's own


@pytest.mark.parametrize("case", ["lm_dense", "lm_moe"])
def test_the_public_implementations_numbers(case: str, tmp_path: Path) -> None:
    """The golden files hold weights and logits of the public MiniMind."""
    with safe_open(GOLDEN / f"{case}.safetensors", "pt") as file:
        config = json.loads(file.metadata()["config"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    weights = {name.removeprefix("weights."): value for name, value in tensors.items() if name.startswith("weights.")}
    mask = tensors.get("attention_mask")
    for source in (write_folder(tmp_path, config, weights), tmp_path / "model.pth"):
        torch.save(weights, tmp_path / "model.pth")
        loaded = load(source)
        with torch.no_grad():
            assert_close(loaded.model(tensors["input_ids"], mask).logits, tensors["expected.logits"])


@pytest.mark.parametrize("moe", [False, True])
def test_a_saved_model_comes_back_bit_for_bit(moe: bool, tmp_path: Path) -> None:
    from explorer.model.causal_lm import MiniMindForCausalLM

    config = MiniMindConfig(**SIZES, use_moe=moe, num_experts_per_tok=2, rope_theta=3e5, tie_word_embeddings=not moe)
    model = randomise(MiniMindForCausalLM(config))
    model.save_pretrained(tmp_path)
    loaded = load(tmp_path)
    assert loaded.config == config
    with torch.no_grad():
        assert torch.equal(loaded.model(some_ids()).logits, model(some_ids()).logits)
    loaded.model.save_pretrained(tmp_path / "again")
    assert load(tmp_path / "again").config == config


def pth_weights(config: MiniMindConfig) -> dict[str, Tensor]:
    """A state dict as MiniMind's training scripts save it: half precision, the tied head written out too."""
    weights = {name: value.half() for name, value in random_weights(model_shapes(config)).items()}
    return {**weights, "lm_head.weight": weights["model.embed_tokens.weight"]}


@pytest.mark.parametrize("moe", [False, True])
def test_a_pth_alone_is_read_by_its_shapes(moe: bool, tmp_path: Path) -> None:
    config = MiniMindConfig(**SIZES, use_moe=moe, rope_theta=1e6, moe_intermediate_size=10)
    weights = pth_weights(config)
    torch.save(weights, tmp_path / "full_sft.pth")
    checkpoint = open_checkpoint(tmp_path / "full_sft.pth", config={"max_position_embeddings": 64})
    for name in ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim"):
        assert getattr(checkpoint.config, name) == SIZES[name], name
    assert checkpoint.config.tie_word_embeddings
    assert checkpoint.config.use_moe == moe
    assert checkpoint.config.moe_intermediate_size == 10 or not moe
    assert "assumed rms_norm_eps=1e-06, rope_theta=1e+06" in checkpoint.report.text()
    name = "layers.1.self_attn.k_proj.weight"
    assert torch.equal(checkpoint.model().model.get_parameter(name), weights[f"model.{name}"].float())


def test_minimind2_has_no_norms_on_q_and_k(tmp_path: Path) -> None:
    sizes = {**SIZES, "head_dim": 4}
    config = MiniMindConfig(**sizes, qk_norm=False, rms_norm_eps=1e-5, rope_theta=1e6)
    torch.save(pth_weights(config), tmp_path / "a.pth")
    checkpoint = open_checkpoint(tmp_path / "a.pth", config={"num_attention_heads": 4, "max_position_embeddings": 64})
    assert checkpoint.config == config
    assert "qk_norm is off" in checkpoint.report.text()
    # the same with MiniMind2's config.json, which names fields that MiniMind-3 no longer has
    old = {name: value for name, value in sizes.items() if name not in ("head_dim", "intermediate_size")} | {
        "model_type": "minimind", "rms_norm_eps": 1e-5, "rope_theta": 1e6, "use_moe": False, "aux_loss_alpha": 0.1,
        "n_routed_experts": 4, "n_shared_experts": 1, "scoring_func": "softmax", "seq_aux": True, "flash_attn": True,
        "num_experts_per_tok": 2, "norm_topk_prob": True, "torch_dtype": "float16", "hidden_act": "silu",
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(old))
    assert open_checkpoint(tmp_path).config == config


@pytest.mark.parametrize("wrap", ["model", "state_dict", "module.", "_orig_mod."])
def test_what_training_scripts_wrap_around_the_weights(wrap: str, tmp_path: Path) -> None:
    weights = pth_weights(MiniMindConfig(**SIZES))
    if wrap.endswith("."):
        torch.save({f"{wrap}{name}": value for name, value in weights.items()}, tmp_path / "a.pth")
    else:
        torch.save({wrap: weights, "epoch": 3, "optimizer": {"lr": 0.1}}, tmp_path / "a.pth")
    assert open_checkpoint(tmp_path / "a.pth").report.ok


def early_forward(weights: dict[str, Tensor], ids: Tensor, heads: int, theta: float) -> Tensor:
    """Early MiniMind by its own formulas, with complex RoPE on neighbouring features. Logits [B,T,V]."""

    def norm(x: Tensor, name: str) -> Tensor:
        return x * (x.pow(2).mean(-1, keepdim=True) + 1e-5).rsqrt() * weights[name]

    x = weights["tok_embeddings.weight"][ids]
    batch, tokens, width = x.shape
    head = width // heads
    speeds = theta ** (-torch.arange(0, head, 2).double() / head)
    turns = torch.polar(torch.ones(tokens, head // 2).double(), torch.outer(torch.arange(tokens).double(), speeds))

    def turned(y: Tensor) -> Tensor:  # [B,T,H,Dh]
        pairs = torch.view_as_complex(y.double().reshape(*y.shape[:-1], head // 2, 2).contiguous())
        return torch.view_as_real(pairs * turns[:, None]).flatten(-2).float()

    future = torch.full((tokens, tokens), -torch.inf).triu(1)
    for layer in range(sum(name.endswith("attention.wq.weight") for name in weights)):
        path = f"layers.{layer}."
        z = norm(x, f"{path}attention_norm.weight")
        q, k, v = (
            (z @ weights[f"{path}attention.w{part}.weight"].T).reshape(batch, tokens, -1, head) for part in "qkv"
        )
        q, k = turned(q), turned(k)
        k, v = (y.repeat_interleave(heads // y.shape[2], dim=2) for y in (k, v))
        scores = torch.einsum("bihd,bjhd->bhij", q, k) / head**0.5 + future
        blended = torch.einsum("bhij,bjhd->bihd", scores.softmax(-1), v).flatten(2)
        x = x + blended @ weights[f"{path}attention.wo.weight"].T
        z = norm(x, f"{path}ffn_norm.weight")
        gate, up = (z @ weights[f"{path}feed_forward.{part}.weight"].T for part in ("w1", "w3"))
        x = x + (torch.nn.functional.silu(gate) * up) @ weights[f"{path}feed_forward.w2.weight"].T
    return norm(x, "norm.weight") @ weights["output.weight"].T


def test_early_minimind_pairs_neighbours(tmp_path: Path) -> None:
    width, vocab, hidden = 16, 40, 24
    shapes: dict[str, tuple[int, ...]] = {"tok_embeddings.weight": (vocab, width), "norm.weight": (width,)}
    for layer in range(2):
        parts = {
            "attention.wq": (16, width), "attention.wk": (8, width), "attention.wv": (8, width),
            "attention.wo": (width, 16), "attention_norm": (width,), "ffn_norm": (width,),
            "feed_forward.w1": (hidden, width), "feed_forward.w2": (width, hidden), "feed_forward.w3": (hidden, width),
        }  # fmt: skip
        shapes |= {f"layers.{layer}.{part}.weight": shape for part, shape in parts.items()}
    weights = random_weights(shapes)
    weights["output.weight"] = weights["tok_embeddings.weight"]
    expected = early_forward(weights, some_ids(), heads=4, theta=1e4)
    tables = {"pos_cis": torch.zeros(9, 2), "layers.0.attention.mask": torch.zeros(1, 1, 9, 9)}
    torch.save({**weights, **tables}, tmp_path / "pretrain.pth")

    loaded = load(tmp_path / "pretrain.pth", config={"num_attention_heads": 4, "rope_theta": 1e4})
    with torch.no_grad():
        assert_close(loaded.model(some_ids()).logits, expected)
    assert loaded.report.layout == "early MiniMind"
    assert "2 stored tables or masks were left out" in loaded.report.text()

    old = {"model_type": "minimind", "dim": width, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "hidden_dim": None,
           "norm_eps": 1e-5, "max_seq_len": 512, "rope_theta": 1e4, "use_moe": False, "vocab_size": vocab,
           "multiple_of": 64, "n_shared_experts": True}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(old))
    with torch.no_grad():
        assert_close(load(tmp_path).model(some_ids()).logits, expected)
