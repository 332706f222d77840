"""What the stages say, against numbers calculated here."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from explorer import Edit, RunSpec, run
from explorer.limits import LIMITS
from explorer.stages import STAGES
from tests.stages.cases import SPECS


def plain(fact: str) -> str:
    return re.sub(r"<[^>]+>", "", fact)


def said(number: int, spec: RunSpec, **at: int) -> str:
    return " ".join(plain(f) for f in STAGES[number - 1].facts(run(spec), **at))


def test_eight_stages_in_order() -> None:
    assert [stage.number for stage in STAGES] == list(range(1, 9))
    assert len({stage.key for stage in STAGES}) == 8
    for stage in STAGES:
        assert stage.title and stage.mixes and stage.notice
        assert stage.equation.startswith("<math") and "alttext" in stage.equation


TOY = [
    (1, "X = (1, −1). Its squares average 1, so the row's root mean square is 1."),
    (2, "asks with q = (1, −1), is compared by its k = (1, −1), and has v = (1, −1)"),
    (3, "counter-clockwise by 90°. So the pair (1, −1) becomes (1, 1), and its length 1.414 stays"),
    (4, "add up to 2, and divided by √2 = 1.414 that is a score of 1.414"),
    (4, "Of this head's 4 query–key pairs the mask holds 1 at −∞"),
    (1, "the rows of all 2 tokens have the same root mean square, 1:"),
    (5, "P = (0.5, 0.5) over the keys. The 2 keys it may see share equally, 0.5 each; the row adds up to 1."),
    (5, "O = 0.5·(1, 1) + 0.5·(1, −1) = (1, 0)"),
    (6, "attention update Oattn = (1, 0), a vector of length 1"),
    (7, "Token 1: (1, −1) + (1, 0) = (2, −1)."),
    (8, "(2, −1) + (0.3, 0.1) = (2.3, −0.9), which leaves the block"),
]


@pytest.mark.parametrize(("number", "text"), TOY)
def test_toy(number: int, text: str) -> None:
    assert text in said(number, RunSpec())


def test_first_token_of_the_toy() -> None:
    assert "P = (1, 0)" in said(5, RunSpec(), t=0)
    assert "1 of its 2 keys has a share of exactly 0, since the mask hides it." in said(5, RunSpec(), t=0)
    assert "(1, 1) + (1, 1) = (2, 2)" in said(7, RunSpec(), t=0)
    assert "(2, 2) + (0.1, −0.2) = (2.1, 1.8)" in said(8, RunSpec(), t=0)


def test_edits_change_the_sentences() -> None:
    text = said(1, RunSpec(edits=[Edit("resid_pre", (0, 1, 1), 2.0)]))
    assert "X = (1, 2). Its squares average 2.5, so the row's root mean square is 1.581" in text


@pytest.mark.parametrize(
    ("number", "name", "text"),
    [
        (1, "many edits", "was set by an edit or a what-if"),
        (3, "many edits", "is not that turn"),
        (3, "no rope", "is not that turn"),
        (4, "many edits", "with a score of 40, set by an edit or a what-if; the features by themselves would give"),
        (4, "no mask", "opened 6 of this head's 16 query–key pairs"),
        (4, "all hidden", "Every key is hidden from query 2"),
        (5, "all hidden", "takes nothing: O = (0, 0, 0, 0)"),
        (5, "shares by hand", "P = (0.9, 0.5) adds up to 1.4. Softmax no longer holds for this row; the scores would"),
        (5, "many edits", "The shares would blend the values into"),
        (6, "many edits", "an edit or a what-if made the update (7, "),
        (7, "many edits", "would be (8, "),
        (7, "no residuals", "an edit or a what-if made it (1, 0)"),
        (8, "many edits", "but an edit or a what-if made the result 5"),
        (8, "many edits", "but an edit or a what-if made (6, "),
    ],
)
def test_what_was_edited_is_said(number: int, name: str, text: str) -> None:
    assert text in said(number, SPECS[name])


@pytest.mark.parametrize("name", ["half precision", "toy", "flash", "yarn", "cache and padding", "experts"])
def test_nothing_is_called_an_edit_without_one(name: str) -> None:
    for number in range(1, 9):
        assert "edit or a what-if" not in said(number, SPECS[name])


def test_score_of_the_best_key() -> None:
    trace = run(SPECS["cache and padding"])
    q, k = trace["q_rot"][1, 3, -1].astype(float), trace["present_k"][1, 1].astype(float)
    scores = k @ q / 2
    best = int(scores.argmax())
    text = said(4, SPECS["cache and padding"], b=1, h=3)
    assert (
        f"query 6 meets key {best}: the products of their 4 features add up to {2 * scores[best]:.4g}".replace("-", "−")
        in text
    )
    assert "this query is number 3 of this call. The first 3 keys come from the cache" in text


def test_mask_counts_with_a_cache_and_padding() -> None:
    text = said(4, SPECS["cache and padding"], b=0)
    future = sum(max(0, 7 - (3 + i) - 1) for i in range(4))
    assert f"Of this head's 28 query–key pairs the mask holds {future + 8} at −∞: {future} because" in text
    assert "8 because it is padding" in text
    assert "padding" not in said(4, SPECS["cache and padding"], b=1)


def test_grouped_heads_are_said() -> None:
    text = said(2, SPECS["gqa"], h=3)
    assert "heads × features = 4 × 4, K and V into 2 × 4" in text
    assert "query head 3 reads key/value head 1" in text


def test_experts_are_said() -> None:
    trace = run(SPECS["experts"])
    e = trace["expert_index"][0, -1]
    p = trace["router_probs"][0, -1][e]
    text = said(8, SPECS["experts"])
    assert f"picks among 4 experts: {e[0]}, {e[1]}, with probability {100 * p[0]:.3g}%, {100 * p[1]:.3g}%" in text


def test_a_router_overruled_is_said() -> None:
    picked = int(run(SPECS["one expert"])["expert_index"][0, -1, 0])
    other = (picked + 1) % 3
    for change in ({"switches": (f"expert:{other}",)}, {"edits": (Edit("expert_index", (0, 2, 0), other),)}):
        text = said(8, replace(SPECS["one expert"], **change))
        assert f"would pick {picked} among 3 experts, but an edit or a what-if sends the token to {other}," in text
    assert f"picks among 3 experts: {picked}," in said(8, replace(SPECS["one expert"], switches=(f"expert:{picked}",)))


def test_a_head_norm_taken_away_is_not_said_to_act() -> None:
    assert "MiniMind then gives each head's vectors a norm of their own" in said(2, SPECS["gqa"])
    for change in ({"switches": ("no_qk_norm",)}, {"edits": (Edit("k_norm", (0, 0, 5, 0), 9.0),)}):
        text = said(2, replace(SPECS["gqa"], **change))
        assert "norm of each head's vectors was replaced by an edit or a what-if" in text and "then gives" not in text
    assert "norm" not in said(2, SPECS["toy"])


def test_places_beyond_the_end_mean_the_last() -> None:
    assert said(2, SPECS["gqa"], h=99) == said(2, SPECS["gqa"], h=3)
    assert said(2, SPECS["gqa"], b=9, t=-5) == said(2, SPECS["gqa"], t=0)


def test_directions() -> None:
    assert "takes away part" in said(7, SPECS["against"])
    assert "strengthens a direction" in said(7, SPECS["along"])
    assert "right angle" in said(7, SPECS["across"])
    assert "no angle can be given" in said(7, SPECS["zero input"])


def test_a_row_with_one_key_and_a_row_of_several() -> None:
    assert "Key 0 is the only one it may see and gets 1;" in said(5, RunSpec(), t=0)
    assert "No key gets more than key" in said(5, SPECS["capstone"])
    assert "tokens' rows ranges from" in said(1, SPECS["capstone"])


def test_panels_show_what_the_run_has() -> None:
    toy, cached, experts = (run(SPECS[n]) for n in ("toy", "cache and padding", "experts"))
    assert STAGES[0].panels(toy) == {
        "input": ("resid_pre",),
        "weights": ("input_layernorm.weight",),
        "output": ("attn_norm",),
    }
    assert STAGES[1].panels(toy)["weights"] == tuple(f"self_attn.{x}_proj.weight" for x in "qkv")
    assert STAGES[2].panels(toy)["output"] == ("q_rot", "k_rot")
    assert STAGES[2].panels(cached)["output"] == ("q_rot", "k_rot", "present_k", "present_v")
    assert STAGES[3].panels(cached)["input"] == ("q_rot", "present_k"), "what is in the one is not shown beside it"
    assert STAGES[4].panels(cached)["input"] == ("masked_scores", "present_v")
    assert STAGES[4].panels(toy)["input"] == ("masked_scores", "v")
    assert "mlp.experts.3.down_proj.weight" in STAGES[7].panels(experts)["weights"]
    assert STAGES[7].panels(toy)["output"] == ("ffn_norm", "gate", "up", "hidden", "ffn_out", "resid_post")
    for trace in (toy, cached, experts):
        for stage in STAGES:
            shown = [name for names in stage.panels(trace).values() for name in names]
            assert len(shown) == len(set(shown)), "a quantity may be shown once only"


def test_the_weights_of_every_expert_are_shown_however_many_a_server_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "experts", 20)
    many = run(RunSpec(T=1, d_model=2, weights="random", experts=20))
    assert STAGES[7].panels(many)["weights"][-60:] == tuple(
        f"mlp.experts.{e}.{part}_proj.weight" for e in range(20) for part in ("gate", "up", "down")
    )


def test_every_quantity_of_a_stage_is_shown_there() -> None:
    from explorer.quantities import QUANTITIES, WEIGHTS

    for stage in STAGES:
        here = {q.name for q in QUANTITIES.values() if q.stage == stage.number}
        assert here <= set(stage.outputs), here - set(stage.outputs)
        assert {w.name for w in WEIGHTS.values() if w.stage == stage.number} <= set(stage.weights)


def test_prose_numbers_are_finite_words_even_after_an_overflow() -> None:
    trace = run(SPECS["overflow"])
    assert np.isposinf(trace["resid_mid"][0, 0, 0])
    assert np.isnan(trace["ffn_norm"][0, 0, 0])
    assert "+ (3e38, " in said(7, SPECS["overflow"], t=0)
    assert "= (∞, " in said(7, SPECS["overflow"], t=0)
    assert "NaN" in said(8, SPECS["overflow"], t=0)


def test_what_rounding_leaves_of_0_is_explained_where_it_is_shown() -> None:
    assert "cos(π/2), reads 6.123e−17 here: π/2 can only be stored rounded" in said(3, RunSpec())
    assert "reads" not in said(3, RunSpec(T=1)), "position 0 has an exact sine of 0"
    for spec in (RunSpec(angle_step=1.0), RunSpec(T=8, d_model=8, h=2, weights="random")):
        assert "stored rounded" not in said(3, spec)
    assert "6.123e−17" in " ".join(STAGES[2].facts(run(RunSpec()), lang="zh"))


def test_the_largest_hidden_feature_is_named_in_a_sentence() -> None:
    for spec in (SPECS["capstone"], SPECS["gqa"], replace(SPECS["capstone"], seed=1)):
        hidden = run(spec)["hidden"][0, -1].astype(float)
        j = int(np.abs(hidden).argmax())
        shown = f"{hidden[j]:.4g}".replace("-", "−")
        assert re.search(
            rf"The largest in magnitude, number {j}, is SiLU\([^)]*\) = \S+ times \S+: {shown}\.", said(8, spec)
        )
    assert re.search(r"The largest in magnitude, number \d, is SiLU\([^)]*\) = [\d.−]+ times ", said(8, RunSpec()))


@pytest.mark.parametrize("name", ["toy", "capstone", "experts"])
def test_the_size_of_rows_after_the_norm_is_measured(name: str) -> None:
    spec = SPECS["one size"] if name == "toy" else replace(SPECS[name], edits=())
    before, after = (np.sqrt((run(spec)[x][0].astype(float) ** 2).mean(-1)) for x in ("resid_pre", "attn_norm"))
    text = said(1, spec)
    assert f"ranges from {before.min():.4g} to {before.max():.4g}" in text and "common size" not in text
    if name == "toy":
        assert f"afterwards it is {after.min():.4g} in every row" in text
    else:
        assert f"afterwards only from {after.min():.4g} to {after.max():.4g}: the projections meet" in text


def test_rows_that_an_edit_sets_apart_after_the_norm_are_not_called_of_one_size() -> None:
    after = np.sqrt((run(SPECS["norm by hand"])["attn_norm"][0].astype(float) ** 2).mean(-1))
    text = said(1, SPECS["norm by hand"])
    assert f"afterwards from {after.min():.4g} to {after.max():.4g}." in text and "one size" not in text


def test_what_an_edit_shuts_is_told_from_what_the_mask_hides() -> None:
    two = replace(RunSpec(T=3), edits=[Edit("masked_scores", (0, 0, i, 0), float("-inf")) for i in (1, 2)])
    for spec, cells, hidden, shut in ((SPECS["hidden by hand"], 4, 1, 1), (two, 9, 3, 2)):
        assert (np.isneginf(run(spec)["masked_scores"]).sum()) == hidden + shut
        text = said(4, spec)
        assert f"Of this head's {cells} query–key pairs the mask holds {hidden} at −∞" in text
        assert f"In {shut} of these pairs, which the mask leaves open, an edit or a what-if put −∞." in text
        assert f"其中有 {shut} 个掩码并没有遮住，是编辑或假设" in " ".join(STAGES[3].facts(run(spec), lang="zh"))
    assert "put −∞" not in said(4, SPECS["all hidden"]) + said(4, SPECS["many edits"])


def test_a_query_that_takes_nothing_has_no_sum() -> None:
    padded = RunSpec(T=3, past=3, padding=(6,))
    assert "takes nothing: O = (0, 0)" in said(5, padded)
    assert "takes nothing of any value: O = (0, 0)" in said(5, SPECS["no shares"])
    for spec in (padded, SPECS["no shares"]):
        for lang in ("en", "zh"):
            assert "= 0 =" not in plain(" ".join(STAGES[4].facts(run(spec), lang=lang)))
    edited = said(5, replace(padded, edits=[Edit("heads", (0, 0, 2, 0), 4.0)]))
    assert "takes nothing: O = (0, 0). " in edited and "an edit or a what-if made O = (4, 0)" in edited
