"""Runs of many kinds, which every text and figure of the stages must get through."""

from __future__ import annotations

from explorer import PRESETS, Edit, RunSpec

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
    "hidden by hand": RunSpec(edits=[Edit("masked_scores", (0, 0, 1, 0), float("-inf"))]),
}
