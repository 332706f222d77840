"""Old links keep opening, and what a link cannot have is named, with the rest of it kept."""

from __future__ import annotations

import pytest

from explorer.link import View, decode
from explorer.messages import in_language
from explorer.spec import PRESETS, Edit, RunSpec

# Links as they were given out. They are promises: add to them, never change them.
GIVEN_OUT: dict[str, tuple[RunSpec, View]] = {
    "v=1&stage=1": (RunSpec(), View()),
    "?v=1&B=2&T=5&d=12&h=3&w=random&stage=4": (PRESETS["capstone"], View(stage=4)),
    "v=1&T=6&d=16&h=4&hkv=2&w=random&stage=1": (PRESETS["gqa"], View()),
    "v=1&T=64&d=768&h=8&hkv=4&dh=96&dff=2432&w=random&stage=1": (PRESETS["minimind3"], View()),
    "v=1&B=2&T=5&d=12&h=3&w=random&e=probs@0.0.1.0~0.5&stage=5": (
        RunSpec(B=2, T=5, d_model=12, h=3, weights="random", edits=(Edit("probs", (0, 0, 1, 0), 0.5),)),
        View(stage=5),
    ),
    "v=1&e=resid_pre@0.0.1~2!-probs@0.0.1.*~0.25!masked_scores@0.0.0.1~-inf&stage=4&cell=probs@0.0.1.0&show=both": (
        RunSpec(
            edits=(
                Edit("resid_pre", (0, 0, 1), 2.0),
                Edit("probs", (0, 0, 1, None), 0.25, on=False),
                Edit("masked_scores", (0, 0, 0, 1), float("-inf")),
            )
        ),
        View(stage=4, cell=("probs", (0, 0, 1, 0)), compare="both"),
    ),
    "v=1&e=resid_pre@~z1x2x2_eNpjYACBH_YMEHCAAQVwOAAALIcCQA&stage=1": (
        RunSpec(edits=(Edit("resid_pre", (), (((1.5, -2.0), (0.0, 3.0)),)),)),
        View(),
    ),
    "v=1&B=2&T=3&d=8&h=2&hkv=1&dh=4&dff=6&w=random&seed=7&past=2&pad=1,0&step=0.5&theta=10000&yarn=1&qk=0&eps=1e-05"
    "&E=3&k=2&topk=0&att=explicit&dtype=float16&dev=cpu&s=no_rope!only_head:1!temperature:0.5&stage=8&row=1&head=1"
    "&lang=zh&present=1": (
        RunSpec(
            B=2, T=3, d_model=8, h=2, h_kv=1, d_h=4, d_ff=6, weights="random", seed=7, past=2, padding=(1, 0),
            angle_step=0.5, rope_theta=10000.0, yarn=True, qk_norm=False, norm_eps=1e-5, experts=3,
            experts_per_token=2, norm_topk=False, attention="explicit", dtype="float16", device="cpu",
            switches=("no_rope", "only_head:1", "temperature:0.5"),
        ),
        View(stage=8, row=1, head=1, lang="zh", present=True),
    ),
    "v=1&T=3&d=8&h=2&w=random&E=3&s=no_rope&stage=8&head=1&token=2&expert=1&off=no_mask!only_head:1": (
        RunSpec(T=3, d_model=8, h=2, weights="random", experts=3, switches=("no_rope",)),
        View(stage=8, head=1, token=2, expert=1, idle=("no_mask", "only_head:1")),
    ),
    "v=1&text=%E4%B8%96%E7%95%8C%20%26%20more%3D&stage=1": (RunSpec(text="世界 & more="), View()),
    "v=1&e=self_attn.q_proj.weight@0.1~.5&s=no_mask&stage=2": (
        RunSpec(edits=(Edit("self_attn.q_proj.weight", (0, 1), 0.5),), switches=("no_mask",)),
        View(stage=2),
    ),
}  # fmt: skip


@pytest.mark.parametrize("query", GIVEN_OUT)
def test_links_given_out_keep_opening(query: str) -> None:
    assert decode(query) == (*GIVEN_OUT[query], [])


@pytest.mark.parametrize(
    ("query", "kept", "named"),
    [
        ("T=abc&seed=4", RunSpec(seed=4), ["T = 'abc'", "whole number"]),
        ("w=random&d=12&h=5&T=4", RunSpec(weights="random", d_model=12, T=4), ["h = '5'", "does not divide"]),
        ("w=random&d=3&T=4", RunSpec(weights="random", T=4), ["d = '3'", "even"]),
        ("w=random&T=999999&B=2", RunSpec(weights="random", B=2), ["T = '999999'", "from 1 to"]),
        ("T=3&e=probs@0.0.9.0~1!resid_pre@0.2.0~5", RunSpec(T=3, edits=(Edit("resid_pre", (0, 2, 0), 5.0),)),
         ["probs[0, 0, 9, 0] = 1", "outside"]),
        ("e=scroes@0.0.0.0~1", RunSpec(), ["scroes", "Did you mean 'scores'"]),
        ("e=resid_pre@0.0.1~two!resid_pre@0.0.0~3", RunSpec(edits=(Edit("resid_pre", (0, 0, 0), 3.0),)),
         ["resid_pre@0.0.1~two", "could not be read"]),
        ("s=no_mask!only_head:4!upside_down", RunSpec(switches=("no_mask",)), ["only_head:4", "upside_down"]),
        ("w=checkpoint:gone&seed=3", RunSpec(seed=3), ["w = 'checkpoint:gone'", "no checkpoint"]),
        ("colour=red&T=3", RunSpec(T=3), ["'colour' is unknown"]),
        ("v=7&T=3", RunSpec(T=3), ["version '7'", "version 1"]),
        ("off=only_head:1&T=3", RunSpec(T=3), ["off = 'only_head:1'", "does not fit"]),
        ("off=<b>&expert=0&token=2", RunSpec(), ["off = '<b>'", "expert = '0'", "token = '2'"]),
        ("pad=1,2&T=3", RunSpec(T=3), ["pad = '1,2'", "one count a row"]),
    ],
)  # fmt: skip
def test_what_was_ignored_is_named_and_the_rest_kept(query: str, kept: RunSpec, named: list[str]) -> None:
    spec, _, notes = decode(query)
    assert spec == kept
    assert notes
    for part in named:
        assert part in " ".join(notes), notes


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("stage=9", "stage = '9'"), ("stage=", "stage = ''"), ("row=1", "row = '1'"), ("head=3", "head = '3'"),
        ("show=all", "show = 'all'"), ("lang=tlh", "lang = 'tlh'"), ("present=yes", "present = 'yes'"),
        ("cell=probs@0.0.2.0", "cell = 'probs@0.0.2.0'"), ("cell=router_probs@0.0.0", "cell = 'router_probs@0.0.0'"),
        ("cell=past_k@0.0.0.0", "cell = 'past_k@0.0.0.0'"), ("cell=mlp.gate.weight@0.0", "mlp.gate.weight"),
        ("cell=q@0.0.0", "cell = 'q@0.0.0'"), ("cell=q", "cell = 'q'"),
    ],
)  # fmt: skip
def test_a_view_that_does_not_fit_is_named(query: str, named: str) -> None:
    spec, view, notes = decode("T=2&" + query)
    assert (spec, view) == (RunSpec(), View())
    assert len(notes) == 1
    assert named in notes[0]
    assert "does not fit here" in notes[0]


@pytest.mark.parametrize(
    ("query", "low", "high"),
    [("stage=99", 1, 8), ("stage=x", 1, 8), ("row=2", 0, 1), ("head=4", 0, 3), ("token=-1", 0, 4), ("present=2", 0, 1)],
)
def test_what_is_out_of_range_is_told_the_range(query: str, low: int, high: int) -> None:
    _, _, notes = decode("B=2&T=5&d=8&h=4&w=random&" + query)
    assert len(notes) == 1 and f"does not fit here: it goes from {low} to {high}. It was ignored." in notes[0]
    assert f"它应在 {low} 到 {high} 之间" in in_language(notes[0], "zh")


def test_an_unknown_quantity_is_answered_with_what_is_near() -> None:
    _, _, notes = decode("v=1&e=prob@0.0.1.0~0.5&stage=5")
    assert "Did you mean 'probs'" in notes[0] and "The shape ledger lists every quantity" in notes[0]
    assert len(notes[0]) < 260 and "resid_post" not in notes[0]


def test_cells_that_only_some_runs_have() -> None:
    moe = "w=random&d=4&h=2&E=3&cell="
    assert decode(moe + "router_probs@0.1.2")[1].cell == ("router_probs", (0, 1, 2))
    assert decode(moe + "mlp.gate.weight@2.3")[1].cell == ("mlp.gate.weight", (2, 3))
    assert decode(moe + "mlp.experts.2.up_proj.weight@0.0")[1].cell == ("mlp.experts.2.up_proj.weight", (0, 0))
    assert decode(moe + "mlp.experts.3.up_proj.weight@0.0")[1].cell is None
    assert decode(moe + "gate@0.0.0")[1].cell is None
    assert decode("past=1&cell=past_k@0.0.0.1")[1].cell == ("past_k", (0, 0, 0, 1))
