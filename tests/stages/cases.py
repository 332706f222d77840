"""Runs of many kinds, which every text and figure of the stages must get through."""

from __future__ import annotations

import torch

from explorer import PRESETS, Edit, RunSpec
from explorer.capture import Trace, record
from explorer.model.block import MiniMindBlock
from explorer.model.config import MiniMindConfig

ANGLES = (2.5, 0.5)  # radians a position that RoPE's tables turn the pairs of `recorded`
RANDOM = {"weights": "random"}
SPECS: dict[str, RunSpec] = {
    "toy": RunSpec(),
    "capstone": PRESETS["capstone"],
    "gqa": PRESETS["gqa"],
    "one token": RunSpec(T=1),
    "zero input": RunSpec(edits=[Edit("resid_pre", (None, None, None), 0.0)]),
    "against": RunSpec(edits=[Edit("attn_out", (0, 1, 0), -1.0), Edit("ffn_out", (0, 1, 0), -1.0)]),
    "across": RunSpec(edits=[Edit("attn_out", (0, 1, 1), 1.0)]),
    "along": RunSpec(edits=[Edit("attn_out", (0, 1, 0), 3.0), Edit("ffn_out", (0, 1, None), 1.0)]),
    "cache and padding": RunSpec(B=2, T=4, d_model=16, h=4, h_kv=2, past=3, padding=(2, 0), **RANDOM),
    "all hidden": RunSpec(T=3, d_model=8, h=2, padding=(3,), **RANDOM),
    "experts": RunSpec(B=2, T=6, d_model=16, h=4, h_kv=2, experts=4, experts_per_token=2, **RANDOM),
    "one expert": RunSpec(T=3, d_model=8, h=2, experts=3, **RANDOM),
    "flash": RunSpec(T=9, d_model=8, h=2, attention="flash", **RANDOM),
    "one padded": RunSpec(T=3, d_model=8, h=2, padding=(1,), **RANDOM),
    "shares by hand": RunSpec(edits=[Edit("probs", (0, 0, 1, 0), 0.9)]),
    "half precision": RunSpec(T=5, d_model=32, h=2, dtype="bfloat16", **RANDOM),
    "yarn": RunSpec(T=5, d_model=32, h=2, yarn=True, **RANDOM),
    "no mask": RunSpec(T=4, d_model=8, h=2, switches=("no_mask",), **RANDOM),
    "no rope": RunSpec(T=4, d_model=8, h=2, switches=("no_rope",), **RANDOM),
    "no head norm": RunSpec(T=3, d_model=8, h=2, switches=("no_qk_norm",), **RANDOM),
    "another expert": RunSpec(T=3, d_model=8, h=2, experts=3, edits=[Edit("expert_index", (0, 2, 0), 1)], **RANDOM),
    "no residuals": RunSpec(switches=("no_first_residual", "no_second_residual")),
    "many edits": RunSpec(
        edits=[
            Edit("attn_norm", (0, 1, 0), 3.0),
            Edit("q_rot", (0, 0, 1, 0), 2.0),
            Edit("scores", (0, 0, 1, 0), 40.0),
            Edit("heads", (0, 0, 1, 0), 2.0),
            Edit("attn_out", (0, 1, 0), 7.0),
            Edit("resid_mid", (0, 1, 1), 3.0),
            Edit("hidden", (0, 1, 0), 5.0),
            Edit("resid_post", (0, 1, 0), 6.0),
        ]
    ),
    "overflow": RunSpec(edits=[Edit("resid_pre", (0, 0, 0), 3e38), Edit("attn_out", (0, 0, 0), 3e38)]),
    "turning backwards": RunSpec(angle_step=-2.0),
    "one speed": RunSpec(T=3, d_model=8, h=2, rope_theta=1.0, **RANDOM),
    "later pairs faster": RunSpec(T=3, d_model=8, h=2, rope_theta=0.5, **RANDOM),
    "one size": RunSpec(edits=[Edit("resid_pre", (0, 1, 0), 3.0)]),
    "norm by hand": RunSpec(T=3, d_model=8, h=2, edits=[Edit("attn_norm", (0, 1, 0), 9.0)], **RANDOM),
    "no shares": RunSpec(edits=[Edit("probs", (0, 0, 1, None), 0.0)]),
    "hidden by hand": RunSpec(edits=[Edit("masked_scores", (0, 0, 1, 0), float("-inf"))]),
}


def recorded(factor: float = 1.0) -> Trace:
    """Three tokens of a block that no RunSpec describes, whose RoPE tables also multiply by `factor`."""
    block = MiniMindBlock(MiniMindConfig(hidden_size=8, num_attention_heads=2, num_key_value_heads=2), 0).eval()
    angles = torch.arange(3.0)[:, None] * torch.tensor(ANGLES)
    cos, sin = (factor * torch.cat((part, part), 1) for part in (angles.cos(), angles.sin()))
    with torch.no_grad():
        return record(block, torch.randn(1, 3, 8, generator=torch.Generator().manual_seed(1)), (cos, sin))
