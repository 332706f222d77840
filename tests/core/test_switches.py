"""Every switch against the float64 reference without that part, two at a time, and what a wrong switch is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from explorer import Edit, RunSpec, SpecError, run
from explorer.switches import KINDS, SwitchError, parse_switch
from tests.core.cases import CASES, assert_agree, reference

# The switch, and what the reference has to do without.
LEFT_OUT: dict[str, dict[str, Any]] = {
    "no_mask": {"causal_and_padding_mask": False},
    "no_rope": {"rope": False},
    "no_scale": {"scale": False},
    "no_qk_norm": {"head_norms": False},
    "no_first_residual": {"first_residual": False},
    "no_second_residual": {"second_residual": False},
    "uniform_attention": {"uniform": True},
    "only_head:1": {"only_heads": (1,)},
    "without_head:1": {"without_heads": (1,)},
    "temperature:0.5": {"temperature": 0.5},
    "temperature:3": {"temperature": 3.0},
    "expert:2": {"expert": 2},
}
WIDE = ("capstone", "grouped", "cache_and_padding", "moe", "moe_two_raw")
SINGLE = [(case, s) for case in WIDE for s in LEFT_OUT if CASES[case].experts or not s.startswith("expert")]
PAIRS = [
    ("no_mask", "uniform_attention"),
    ("no_rope", "no_qk_norm"),
    ("no_scale", "temperature:3"),
    ("no_first_residual", "no_second_residual"),
    ("no_mask", "no_scale"),
    ("without_head:1", "no_rope"),
    ("uniform_attention", "no_first_residual"),
]


def test_every_kind_of_switch_is_tested() -> None:
    assert {s.partition(":")[0] for s in LEFT_OUT} == set(KINDS)


@pytest.mark.parametrize(("case", "switch"), SINGLE, ids=[f"{c}-{s}" for c, s in SINGLE])
def test_a_switch_equals_the_calculation_without_that_part(case: str, switch: str) -> None:
    spec = replace(CASES[case], switches=[switch])
    trace = run(spec)
    assert_agree(trace, reference(spec, **LEFT_OUT[switch]))
    assert set(trace.edited) == set(parse_switch(switch).kind.rules)


@pytest.mark.parametrize("pair", PAIRS, ids=" ".join)
@pytest.mark.parametrize("case", ["grouped", "cache_and_padding", "moe"])
def test_two_switches_together_leave_out_both(case: str, pair: tuple[str, str]) -> None:
    for switches in (pair, pair[::-1]):
        spec = replace(CASES[case], switches=switches)
        assert_agree(run(spec), reference(spec, **LEFT_OUT[pair[0]], **LEFT_OUT[pair[1]]))


def test_switches_work_in_the_toy() -> None:
    for switch, expected in (
        ("no_rope", [[1, 0], [1 / (1 + np.exp(2**0.5)), 1 / (1 + np.exp(-(2**0.5)))]]),
        ("no_mask", [[0.5, 0.5], [0.5, 0.5]]),
        ("uniform_attention", [[1, 0], [0.5, 0.5]]),
    ):
        np.testing.assert_allclose(run(RunSpec(switches=[switch]))["probs"][0, 0], expected, rtol=2e-6, err_msg=switch)
    np.testing.assert_allclose(
        run(RunSpec(switches=["no_first_residual"]))["resid_mid"][0], [[1, 1], [1, 0]], atol=1e-5
    )


def test_only_and_without_the_same_head_leave_nothing() -> None:
    trace = run(replace(CASES["capstone"], switches=["only_head:0", "without_head:0"]))
    assert not trace["heads"].any() and not trace["attn_out"].any()
    np.testing.assert_array_equal(trace["resid_mid"], trace["resid_pre"])


def test_uniform_attention_heeds_a_mask_set_by_hand() -> None:
    edits = [Edit("masked_scores", (0, 0, 4, 1), -np.inf), Edit("masked_scores", (0, 0, 0, 2), 0.0)]
    trace = run(replace(CASES["capstone"], edits=edits, switches=["uniform_attention"]))
    np.testing.assert_allclose(trace["probs"][0, 0, 4], [0.25, 0, 0.25, 0.25, 0.25])
    np.testing.assert_allclose(trace["probs"][0, 0, 0], [0.5, 0, 0.5, 0, 0])


def test_an_expert_is_never_taken_twice() -> None:
    for expert in range(4):
        chosen = run(replace(CASES["moe_two"], switches=[f"expert:{expert}"]))["expert_index"]
        assert (chosen[..., 0] == expert).all() and (chosen[..., 1] != expert).all()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_switches_keep_the_dtype(dtype: str) -> None:
    for switch in LEFT_OUT:
        if not switch.startswith("expert"):
            trace = run(replace(CASES["cache_and_padding"], dtype=dtype, switches=[switch]))
            assert trace.dtype("resid_post") == trace.dtype("probs") == dtype
            assert np.isfinite(trace["resid_post"]).all()


def test_what_was_before_a_switch_is_kept() -> None:
    plain, trace = run(CASES["capstone"]), run(replace(CASES["capstone"], switches=["no_mask"]))
    np.testing.assert_array_equal(trace.before("masked_scores"), plain["masked_scores"])
    np.testing.assert_array_equal(trace["masked_scores"], plain["scores"])
    assert [row.note for row in trace.ledger() if row.name == "masked_scores"] == ["edited"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense", "There is no switch 'nonsense'. Switches: no_mask, no_rope, "),
        ("", "There is no switch ''. Switches:"),
        ("no_mask:1", "Switch 'no_mask:1' is not complete. Write it as no_mask."),
        ("only_head", "Switch 'only_head' is not complete. Write it as only_head:HEAD."),
        ("temperature", "Write it as temperature:NUMBER."),
        ("only_head:x", "only_head: 'x' is not a number. Write for example only_head:1."),
        ("only_head:0.5", "only_head: '0.5' is not a number. Write for example only_head:1."),
        ("only_head:nan", "only_head: 'nan' is not a number."),
        ("expert:", "expert: '' is not a number."),
        ("x" * 1000, f"There is no switch '{'x' * 40}'."),
    ],
)
def test_a_wrong_switch_is_told_what_to_write(text: str, message: str) -> None:
    with pytest.raises(SwitchError) as caught:
        parse_switch(text)
    assert message in str(caught.value)
    with pytest.raises(SpecError) as refused:
        RunSpec(switches=[text])
    assert message in refused.value.errors["switches"]


@pytest.mark.parametrize(
    ("spec", "switch", "message"),
    [
        ("capstone", "only_head:3", "only_head: there is no head 3. Heads go from 0 to 2."),
        ("capstone", "without_head:-1", "without_head: there is no head -1. Heads go from 0 to 2."),
        ("capstone", "expert:0", "expert: this feed-forward is dense. Choose a number of experts first."),
        ("moe", "expert:4", "expert: there is no expert 4. Experts go from 0 to 3."),
        ("capstone", "temperature:0", "temperature = 0 is out of range. It goes from 0.001 to 1000."),
        ("capstone", "temperature:1e9", "temperature = 1e+09 is out of range."),
    ],
)
def test_a_switch_that_does_not_fit_the_sizes_is_refused(spec: str, switch: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        replace(CASES[spec], switches=[switch])
    assert message in caught.value.errors["switches"]


def test_switches_are_bounded_in_number() -> None:
    with pytest.raises(SpecError, match="65 switches are on; at most 64 can be. Remove some"):
        RunSpec(switches=["no_mask"] * 65)


def test_without_rope_only_the_mask_tells_order() -> None:
    spec = RunSpec(T=4, d_model=8, h=2, weights="random", switches=("no_rope",))
    swapped = [1, 0, 2, 3]
    x = run(spec)["resid_pre"]
    for more, apart in (((), [0, 1]), (("no_mask",), [])):
        free = replace(spec, switches=(*spec.switches, *more))
        other = run(replace(free, edits=(Edit("resid_pre", (), x[:, swapped]),)))
        gap = np.abs(other["resid_post"][0] - run(free)["resid_post"][0, swapped]).max(axis=-1)
        assert np.flatnonzero(gap > 1e-3).tolist() == apart
