"""Runs of many kinds that every row's check must get through."""

from __future__ import annotations

from explorer import PRESETS, Edit, RunSpec

RANDOM = {"weights": "random"}
SPECS: dict[str, RunSpec] = {
    "toy": RunSpec(),
    "capstone": PRESETS["capstone"],
    "gqa": PRESETS["gqa"],
    "one head for all": RunSpec(T=4, d_model=16, h=4, h_kv=1, **RANDOM),
    "experts": RunSpec(B=2, T=6, d_model=16, h=4, h_kv=2, experts=4, experts_per_token=2, **RANDOM),
    "shares off": RunSpec(T=5, d_model=16, h=4, experts=3, experts_per_token=2, norm_topk=False, **RANDOM),
    "one expert": RunSpec(T=3, d_model=8, h=2, experts=1, **RANDOM),
    "cache and padding": RunSpec(B=2, T=4, d_model=16, h=4, h_kv=2, past=3, padding=(2, 0), **RANDOM),
    "all hidden": RunSpec(T=3, d_model=8, h=2, padding=(3,), **RANDOM),
    "one token": RunSpec(T=1),
    "bfloat16": RunSpec(T=5, d_model=32, h=4, h_kv=2, dtype="bfloat16", **RANDOM),
    "float16": RunSpec(T=5, d_model=32, h=4, h_kv=2, dtype="float16", padding=(2,), **RANDOM),
    "bfloat16 experts": RunSpec(T=40, d_model=64, h=4, h_kv=2, past=9, experts=4, dtype="bfloat16", **RANDOM),
    "flash and yarn": RunSpec(T=70, d_model=32, h=4, h_kv=2, yarn=True, attention="flash", **RANDOM),
    "fast turns": RunSpec(T=100, d_model=32, h=2, angle_step=1000, **RANDOM),
    "edits": RunSpec(
        edits=[Edit("probs", (0, 0, 1, 0), 0.9), Edit("self_attn.q_proj.weight", (0, 1), 0.5)], switches=("no_mask",)
    ),
}
