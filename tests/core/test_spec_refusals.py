"""What RunSpec refuses and in which words: fields, too much work, and edits that do not fit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from explorer import Edit, RunSpec, SpecError, run
from explorer.limits import LIMITS, Limits, from_environment
from explorer.quantities import UnknownName


def errors_of(**given: Any) -> dict[str, str]:
    with pytest.raises(SpecError) as caught:
        RunSpec(**given)
    assert str(caught.value) == " ".join(caught.value.errors.values())
    assert isinstance(caught.value, ValueError)
    return caught.value.errors


def edit_error(edit: Edit, **given: Any) -> str:
    given = {"weights": "random", "d_model": 8, "h": 2, "T": 3, **given}
    errors = errors_of(edits=[Edit("resid_pre", (0, 0, 0), 1.0), edit], **given)
    assert set(errors) == {"edits.1"}
    return errors["edits.1"]


# ------------------------------------------------------------------------------------------------- what it refuses


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("B", {"B": 0}, "B = 0 is out of range. Choose a number from 1 to 8."),
    ("T", {"T": 5000}, "T = 5000 is out of range. Choose a number from 1 to 1024."),
    ("d_model", {"d_model": -4}, "d_model = -4 is out of range. Choose a number from 1 to 1024."),
    ("h", {"h": 33}, "h = 33 is out of range. Choose a number from 1 to 32."),
    ("B", {"B": 10**400}, "B = 1000"),
    ("T", {"T": 10**6000}, "a very long int is out of range"),
    ("B", {"B": 1.5}, "B = '1.5' has the wrong type. It takes a whole number."),
    ("B", {"B": True}, "B = 'True' has the wrong type. It takes a whole number."),
    ("B", {"B": None}, "B = 'None' has the wrong type."),
    ("h_kv", {"h_kv": "2"}, "h_kv = '2' has the wrong type. It takes a whole number."),
    ("qk_norm", {"qk_norm": 1}, "qk_norm = '1' has the wrong type. It takes a flag, True or False."),
    ("norm_eps", {"norm_eps": "x"}, "norm_eps = 'x' has the wrong type. It takes a number."),
    ("weights", {"weights": 5}, "weights = '5' has the wrong type. It takes a text."),
    ("text", {"text": 5}, "text = '5' has the wrong type."),
    ("angle_step", {"angle_step": math.nan}, "angle_step = nan is not finite. Type a finite number."),
    ("rope_theta", {"rope_theta": math.inf}, "rope_theta = inf is not finite."),
    ("h", {"d_model": 12, "h": 5}, "h = 5 does not divide d_model = 12. Use h from 1, 2, 3, 6, another d_model, or"),
    ("h", {"d_model": 7, "h": 2}, "an odd d_model has no even share. Choose an even d_model, or set d_h."),
    ("h", {"d_model": 6, "h": 2}, "d_h = 3 cannot be rotated: RoPE turns feature pairs, so d_h must be even"),
    ("h", {"d_model": 6, "h": 2}, "Change h or d_model, or set d_h."),
    ("d_h", {"d_h": 5}, "d_h = 5 cannot be rotated: RoPE turns feature pairs, so d_h must be even, from 2 to 1024"),
    ("d_h", {"d_h": 10**5000}, "a very long int cannot be rotated"),
    ("h_kv", {"d_model": 12, "h": 6, "h_kv": 4}, "h_kv = 4 does not divide h = 6. With this h it can be 1, 2, 3, 6."),
    ("h_kv", {"d_model": 12, "h": 6, "h_kv": 7}, "h_kv = 7 is out of range. Choose a number from 1 to 6."),
    ("d_ff", {"d_ff": 0}, "d_ff = 0 is out of range. Choose a number from 1 to 4096."),
    ("past", {"past": -1}, "past = -1 is out of range. Choose a number from 0 to 1024."),
    ("experts", {"experts": 17}, "experts = 17 is out of range. Choose a number from 0 to 16."),
    ("experts_per_token", {"experts": 4, "experts_per_token": 5}, "experts_per_token = 5 is out of range"),
    ("experts_per_token", {"experts_per_token": 2}, "feed-forward is dense. Choose a number of experts first, or"),
    ("experts_per_token", {"experts_per_token": 0}, "experts_per_token = 0 is for experts, and this feed-forward is"),
    ("B", {"B": np.True_}, "B = 'True' has the wrong type. It takes a whole number."),
    ("B", {"B": np.float64(2)}, "B = '2.0' has the wrong type. It takes a whole number."),
    ("B", {"B": np.arange(2)}, "B = '[0 1]' has the wrong type. It takes a whole number."),
    ("seed", {"seed": -1}, "seed = -1 is out of range. Choose a number from 0 to 4294967295."),
    ("layer", {"layer": 1000}, "layer = 1000 is out of range. Choose a number from 0 to 999."),
    ("angle_step", {"angle_step": 1e4}, "angle_step = 10000 is out of range. Choose a number from -1000 to 1000."),
    ("rope_theta", {"rope_theta": 0.0}, "rope_theta = 0 is out of range. Choose a number from 0.001 to 1e+12."),
    ("rope_theta", {"rope_theta": 1.0, "yarn": True}, "rope_theta = 1 is out of range. Choose a number from 2 to"),
    ("norm_eps", {"norm_eps": 0.0}, "norm_eps = 0 is out of range. Choose a number from 1e-12 to 1."),
    ("attention", {"attention": "fast"}, "attention = 'fast' is unknown. Choose auto, explicit, flash."),
    ("dtype", {"dtype": "int8"}, "dtype = 'int8' is unknown. Choose float32, bfloat16, float16."),
    ("device", {"device": "tpu"}, "device = 'tpu' is unknown. Choose auto, cpu, cuda, mps."),
    ("weights", {"weights": "mine"}, "weights = 'mine' is unknown. Choose toy, random or checkpoint:NAME."),
    ("weights", {"weights": "checkpoint:nowhere"}, "There is no checkpoint 'nowhere' here."),
    ("text", {"text": "a" * 4001}, "The text has 4001 characters; at most 4000 are read. Shorten it."),
    ("padding", {"padding": (1,), "B": 2}, "padding has 1 counts for B = 2 rows. Give one count a row."),
    ("padding", {"padding": (6,)}, "padding = '6' does not fit. Each count goes from 0 to past + T = 4."),
    ("padding", {"padding": (0.5,)}, "padding = '0.5' does not fit."),
    ("edits", {"edits": [("q", 1)]}, "edits takes a list of Edit, for example Edit('resid_pre', (0, 0, 1), 2.0)."),
    ("edits", {"edits": [Edit("q")] * 257}, "257 edits are in force; at most 256 are kept. Remove some."),
    ("switches", {"switches": (5,)}, "'5' is no switch. Name one, for example no_mask."),
]  # fmt: skip


@pytest.mark.parametrize(("field", "given", "message"), WRONG, ids=[f"{n}-{w[0]}" for n, w in enumerate(WRONG)])
def test_a_wrong_field_is_named_with_what_was_given_and_what_is_allowed(
    field: str, given: dict[str, Any], message: str
) -> None:
    sizes = {"weights": "random", "d_model": 8, "h": 2, "T": 4}
    errors = errors_of(**{**sizes, **given})
    assert set(errors) == {field}
    assert message in errors[field]


@pytest.mark.parametrize(
    ("field", "given"),
    [("d_model", {"d_model": 4}), ("d_model", {"d_model": 12, "h": 3}), ("d_h", {"d_h": 4}), ("d_ff", {"d_ff": 3})],
)
def test_the_toy_says_what_sizes_it_has(field: str, given: dict[str, Any]) -> None:
    errors = errors_of(**given)
    assert set(errors) == {field} and "The toy's weights need" in errors[field]
    assert "Choose weights = random for other sizes." in errors[field]
    assert "The toy has a dense feed-forward" in errors_of(experts=2)["experts"]


def test_every_wrong_field_is_named_at_once() -> None:
    assert set(errors_of(B=0, T=0, h=99)) == {"B", "T", "h"}
    assert set(errors_of(weights="random", dtype="x", seed=-1, padding=(9,))) == {"dtype", "seed", "padding"}


def test_wrong_choices_are_named_beside_wrong_sizes() -> None:
    with pytest.raises(SpecError) as caught:
        RunSpec(B=99, T=5000, experts=99, past=-1, d_ff=0, seed=-1, dtype="x", norm_eps=9)
    assert set(caught.value.errors) == {"B", "T", "experts", "past", "d_ff", "seed", "dtype", "norm_eps"}


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        ({"T": 0, "d_model": 13, "h": 5}, {"T", "h"}),
        ({"B": 0, "d_model": 13, "h": 5, "h_kv": 6, "experts_per_token": 2}, {"B", "h", "h_kv", "experts_per_token"}),
        ({"d_model": 0, "d_h": 5, "d_ff": 0}, {"d_model", "d_h", "d_ff"}),
        ({"h": 0, "experts": 99, "experts_per_token": 7}, {"h", "experts"}),
        ({"T": 0, "d_model": 12, "weights": "toy"}, {"T", "d_model"}),
        ({"T": 0, "padding": (1, 1)}, {"T", "padding"}),
        ({"B": 0, "padding": (9,)}, {"B", "padding"}),
    ],
)
def test_wrong_sizes_that_do_not_depend_on_each_other_are_named_together(
    given: dict[str, Any], fields: set[str]
) -> None:
    assert set(errors_of(**{"weights": "random", **given})) == fields


# ---------------------------------------------------------------------------------------------- bounds on the work


def test_scores_beyond_the_budget_are_refused_with_a_way_out() -> None:
    sizes: dict[str, Any] = {"B": 4, "T": 1024, "d_model": 64, "h": 8, "weights": "random"}
    message = errors_of(**sizes, attention="explicit")["T"]
    assert "Scores for B·h·T·T_k = 4·8·1024·1024 take 384 MiB; at most 128 MiB are kept here." in message
    assert message.endswith("Choose a smaller T or B, or attention = flash.")
    assert not RunSpec(**sizes).explicit and not RunSpec(**sizes, attention="flash").explicit
    for more in ({"edits": [Edit("probs", (0, 0, 0, 0), 1.0)]}, {"switches": ["no_mask"]}, {"padding": (0, 1, 0, 0)}):
        assert errors_of(**sizes, **more)["T"].endswith("Choose a smaller T or B."), "flash would not help here"


def test_work_and_parameters_are_bounded() -> None:
    message = errors_of(T=1024, d_model=1024, d_ff=4096, h=8, weights="random", B=8)["T"]
    assert "multiplications; at most 4e+10 are allowed here. Choose smaller B, T, d_model or d_ff." in message
    message = errors_of(T=1, d_model=1024, d_ff=4096, h=8, weights="random", experts=16)["d_model"]
    assert "parameters; at most 4e+07 are allowed here" in message
    fits = RunSpec(T=1, d_model=1024, h=8, d_ff=2048, weights="random", B=8)
    assert "multiplications" in errors_of(**fits.given() | {"past": 1000})["T"], "making the cache is work too"


def test_a_smaller_server_bounds_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "T", 16)
    assert errors_of(T=17)["T"] == "T = 17 is out of range. Choose a number from 1 to 16."
    monkeypatch.setattr(LIMITS, "T", 40_000)
    assert "past + T = 39000 goes beyond the last position, 32768" in errors_of(T=3000, past=36000)["T"]


def test_limits_are_set_by_name() -> None:
    limits = from_environment({"EXPLORER_LIMIT_T": "2048", "EXPLORER_LIMIT_flops": "1e12", "PATH": "/bin"})
    assert (limits.T, limits.flops, limits.B) == (2048, 1e12, Limits().B)
    assert isinstance(limits.T, int)
    with pytest.raises(ValueError, match=r"There is no limit 'Q'\. Limits: B, T, d_model"):
        from_environment({"EXPLORER_LIMIT_Q": "1"})
    for text in ("many", "0", "-1", "nan", "inf", ""):
        with pytest.raises(ValueError, match=r"Limit T = .* is no number from \d+ on\. Use for example T=64"):
            from_environment({"EXPLORER_LIMIT_T": text})


# ------------------------------------------------------------------------------------------------------- edits


@pytest.mark.parametrize(
    ("edit", "given", "message"),
    [
        (Edit("prob", (), 0.0), {}, "No quantity or weight is named 'prob'. Did you mean 'probs'"),
        (Edit("self_attn.q_proj", (), 0.0), {}, "Did you mean 'self_attn.q_proj.weight'"),
        (Edit("mlp.experts.0.gate.weight", (0, 0), 0.0), {"experts": 2}, "is named 'mlp.experts.0.gate.weight'"),
        (Edit("mlp.experts.².up_proj.weight", (0, 0), 0.0), {"experts": 2}, "No quantity or weight is named"),
        (Edit("mlp.experts.2.up_proj.weight", (0, 0), 0.0), {"experts": 2}, "no weight 'mlp.experts.2.up_proj.weight'"),
        (Edit("mlp.experts.0.up_proj.weight", (0, 0), 0.0), {}, "has no weight 'mlp.experts.0.up_proj.weight'"),
        (Edit("mlp.up_proj.weight", (0, 0), 0.0), {"experts": 2}, "This block has no weight 'mlp.up_proj.weight'"),
        (Edit("mlp.gate.weight", (0, 0), 0.0), {}, "This block has no weight 'mlp.gate.weight'. Remove this edit."),
        (Edit("self_attn.q_norm.weight", (0,), 0.0), {"qk_norm": False}, "has no weight 'self_attn.q_norm.weight'"),
        (Edit("gate", (0, 0, 0), 0.0), {"experts": 2}, "gate does not exist in a mixture of experts. Remove this"),
        (Edit("router_probs", (0, 0, 0), 0.0), {}, "router_probs does not exist in a dense feed-forward."),
        (Edit("past_k", (), 0.0), {}, "past_k is empty: this run has no cache. Set past to 1 or more, or remove"),
        (Edit("q", (0, 0, 9, 0), 0.0), {}, "q has shape 1×2×3×4; index '[0, 0, 9, 0]' is outside of it. Give 4"),
        (Edit("q", (0, 0, 0), 0.0), {}, "index '[0, 0, 0]' is outside of it."),
        (Edit("q", (0, 0, 0, -1), 0.0), {}, "is outside of it."),
        (Edit("q", (0, 0, 0, True), 0.0), {}, "is outside of it."),
        (Edit("q", (0, 0, 0, 0.0), 0.0), {}, "is outside of it."),
        (Edit("q", 3, 0.0), {}, "index '[3]' is outside of it."),
        (Edit("q", (0,) * 10_000, 0.0), {}, "is outside of it."),
        (Edit("q", (0, 0, 0, 0), "much"), {}, "q: 'much' is not a number. Type a number."),
        (Edit("q", (0, 0, 0, 0), None), {}, "q: 'None' is not a number."),
        (Edit("q", (0, 0, 0, 0), True), {}, "q: 'True' is not a number."),
        (Edit("q", (0, 0, 0, 0), {}), {}, "q: '{}' is not a number."),
        (Edit("q", (0, 0, 0, 0), math.nan), {}, "q: nan does not fit. Type a finite number up to 3.4e+38 in size."),
        (Edit("q", (0, 0, 0, 0), 10**400), {}, "q: inf does not fit."),
        (Edit("q", (0, 0, 0, 0), -(10**400)), {}, "q: -inf does not fit."),
        (Edit("q", (0, 0, 0, 0), 7e4), {"dtype": "float16"}, "q: 70000 does not fit. Type a finite number up to 65504"),
        (Edit("masked_scores", (0, 0, 0, 0), math.inf), {}, "up to 3.4e+38 in size or −inf."),
        (Edit("expert_index", (0, 0, 0), 2.0), {"experts": 2}, "2 is no expert. Experts are numbered 0 to 1."),
        (Edit("expert_index", (0, 0, 0), 0.5), {"experts": 2}, "expert_index: 0.5 is no expert."),
        (Edit("q", (0, 0, 0, 0), (1.0, 2.0)), {}, "q takes values of shape 1×2×3×4, one number a cell."),
        (Edit("attn_out", (), ((1.0,),)), {}, "attn_out takes values of shape 1×3×8, one number a cell."),
        (Edit("attn_out", (), ((1.0, 2.0), (1.0,))), {}, "attn_out takes values of shape"),
        (Edit("attn_out", (), ()), {}, "attn_out takes values of shape"),
        (Edit(5), {}, "'5' is no name. Name a quantity or weight, for example resid_pre."),
        (Edit(["q"]), {}, "is no name."),
    ],
)  # fmt: skip
def test_an_edit_that_does_not_fit_is_told_why(edit: Edit, given: dict[str, Any], message: str) -> None:
    assert message in edit_error(edit, **given)


def test_edits_that_fit() -> None:
    RunSpec(edits=[Edit("masked_scores", (0, 0, 0, 0), -math.inf), Edit("q", (None, None, 0, None), 1)])
    RunSpec(edits=[Edit("rope_cos", (0, 0), 1e5), Edit("q", (0, 0, 0, 0), 65504.0)], dtype="float16")
    RunSpec(edits=[Edit("past_v", (0, 0, 0, 0), 1.0, on=False)], past=1)


def test_numbers_at_the_edge_of_each_dtype_stay_finite() -> None:
    for dtype, largest in (("float32", 3.4e38), ("bfloat16", 3.38e38), ("float16", 65504.0)):
        trace = run(RunSpec(dtype=dtype, edits=[Edit("resid_post", (0, 0, 0), largest)]))
        assert np.isfinite(trace["resid_post"]).all()


def test_a_value_nested_deeper_than_any_quantity_is_refused_not_followed() -> None:
    value: Any = 1.0
    for _ in range(2000):
        value = [value]
    assert "takes values of shape" in edit_error(Edit("q", (), value)) or "not a number" in edit_error(
        Edit("q", (), value)
    )


def test_shape_of_an_unknown_name() -> None:
    with pytest.raises(UnknownName, match=r"named 'reside_pre'\. Did you mean 'resid_pre'"):
        RunSpec().shape("reside_pre")
