"""The cell inspector: equation, tree of terms, contributing cells, and the check against the block."""

import math
import re

import numpy as np
import pytest

from explorer import PRESETS, Edit, RunSpec, run
from explorer.inspector import MOST_TERMS, inspect, mathml
from explorer.quantities import QUANTITIES, WEIGHTS, UnknownName

RTOL = 1e-5


def evaluate(node):
    """The tree's value, worked out from its leaves alone."""
    match node["op"]:
        case "cell" | "number":
            return node["x"]
        case "call":
            return {"sqrt": math.sqrt, "exp": math.exp}[node["f"]](evaluate(node["of"]))
        case "ratio":
            return evaluate(node["top"]) / evaluate(node["bottom"])
        case "product":
            return math.prod(map(evaluate, node["of"]))
        case "sum":
            return sum(map(evaluate, node["of"])) + (node["rest"]["x"] if node["rest"] else 0.0)
    raise AssertionError(node)


def leaves(node):
    if node["op"] == "cell":
        yield node["q"], tuple(node["i"])
    for key in ("of", "top", "bottom"):
        part = node.get(key)
        for child in part if isinstance(part, list) else [part] if part else []:
            yield from leaves(child)


@pytest.mark.parametrize("preset", ["toy", "capstone", "gqa"])
@pytest.mark.parametrize("name", [n for n, q in QUANTITIES.items() if q.formula and q.only != "moe"])
def test_the_tree_gives_what_the_block_computed(preset, name):
    trace = run(PRESETS[preset])
    index = tuple(n - 1 for n in trace.shape(name))
    found = inspect(trace, name, index)
    assert found.computed == pytest.approx(float(trace[name][index]))
    assert found.difference < RTOL or abs(found.exact - found.computed) < 1e-6
    assert evaluate(found.tree) == pytest.approx(found.computed, rel=RTOL, abs=1e-6)
    assert set(leaves(found.tree)) <= {(n, i) for n, i in found.cells}
    assert found.mathml.startswith("<math")


@pytest.mark.parametrize("each", [1, 2])
@pytest.mark.parametrize("norm_topk", [True, False])
def test_every_quantity_of_experts_opens_with_an_equation(each, norm_topk):
    trace = run(RunSpec(T=3, d_model=8, h=2, weights="random", experts=3, experts_per_token=each, norm_topk=norm_topk))
    for name in (n for n in trace.names if QUANTITIES[n].only == "moe"):
        found = inspect(trace, name, tuple(n - 1 for n in trace.shape(name)))
        assert evaluate(found.tree) == pytest.approx(found.computed, rel=RTOL, abs=1e-6), name
        assert found.mathml.startswith("<math")


def test_a_score_is_opened_into_its_products():
    trace = run(RunSpec())
    found = inspect(trace, "scores", (0, 0, 1, 0))
    assert found.tree["op"] == "ratio"
    products = found.tree["top"]["of"]
    assert [p["x"] for p in products] == pytest.approx([1, 1], abs=1e-5)
    q, k = trace["q_rot"][0, 0, 1], trace["k_rot"][0, 0, 0]
    assert [p["of"][0]["x"] for p in products] == q.tolist()
    assert [p["of"][1]["x"] for p in products] == k.tolist()
    assert found.exact == pytest.approx(float(q.astype(np.float64) @ k.astype(np.float64)) / math.sqrt(2))


def test_without_a_cache_keys_light_up_under_both_names():
    cells = inspect(run(RunSpec()), "scores", (0, 0, 1, 0)).cells
    assert ("k_rot", (0, 0, 0, 1)) in cells and ("present_k", (0, 0, 0, 1)) in cells


def test_blended_values_come_only_from_allowed_keys():
    cells = inspect(run(PRESETS["capstone"]), "heads", (1, 2, 2, 0)).cells
    assert {index[3] for name, index in cells if name == "probs"} == {0, 1, 2}
    assert {index[2] for name, index in cells if name == "present_v"} == {0, 1, 2}


def test_an_edited_cell_shows_what_the_block_had_computed():
    spec = RunSpec(edits=[Edit("probs", (0, 0, 1, 0), 0.75)])
    found = inspect(run(spec), "probs", (0, 0, 1, 0))
    assert (found.edited, found.value) == (True, 0.75)
    assert found.computed == pytest.approx(0.5) and found.exact == pytest.approx(0.5)
    untouched = inspect(run(spec), "probs", (0, 0, 1, 1))
    assert not untouched.edited


@pytest.mark.parametrize("name", ["resid_pre", "rope_cos", "self_attn.q_proj.weight"])
def test_what_the_block_is_given_has_no_equation(name):
    trace = run(RunSpec())
    index = (0,) * len(QUANTITIES[name].axes if name in QUANTITIES else WEIGHTS[name].axes)
    found = inspect(trace, name, index)
    assert found.given and found.cells == () and found.tree["op"] == "cell"


def test_a_long_sum_is_cut_to_its_largest_terms_and_still_adds_up():
    trace = run(RunSpec(T=3, d_model=64, h=4, weights="random"))
    found = inspect(trace, "ffn_out", (0, 2, 5))
    assert len(found.tree["of"]) == MOST_TERMS - 1
    assert found.tree["rest"]["n"] == trace.sizes["F"] - MOST_TERMS + 1
    hidden, down = trace["hidden"][0, 2].astype(float), trace.weights["mlp.down_proj.weight"][5].astype(float)
    largest = set(np.argsort(-np.abs(hidden * down))[: MOST_TERMS - 1])
    assert {term["of"][0]["i"][-1] for term in found.tree["of"]} == largest
    assert evaluate(found.tree) == pytest.approx(float(hidden @ down), rel=1e-6)


def test_a_masked_probability_is_zero_without_contributors():
    found = inspect(run(RunSpec()), "probs", (0, 0, 0, 1))
    assert (found.value, found.exact, found.cells) == (0.0, 0.0, ())
    masked = inspect(run(RunSpec()), "masked_scores", (0, 0, 0, 1))
    assert masked.value == masked.exact == -math.inf and masked.difference == 0


def test_wrong_names_and_cells_are_refused():
    trace = run(RunSpec())
    with pytest.raises(UnknownName, match="Did you mean 'probs'"):
        inspect(trace, "prob", (0, 0, 0, 0))
    with pytest.raises(IndexError):
        inspect(trace, "probs", (0, 0, 0, 9))


def test_the_symbolic_equation_sums_over_the_axis_that_is_mixed():
    text = inspect(run(PRESETS["capstone"]), "q", (0, 1, 2, 3)).mathml
    assert mathml(r"\sum_{d} \bar X_{0,2,d}\,{\left(W_Q\right)}_{7,d}")[-60:] in text


def test_every_symbol_can_be_drawn():
    for declared in (*QUANTITIES.values(), *WEIGHTS.values()):
        assert "<math" in mathml(declared.latex)


def test_a_symbol_s_own_subscript_is_no_part_of_the_index() -> None:
    trace = run(RunSpec(T=3, d_model=4, h=2, weights="random"))
    for name, index, shown in (
        ("attn_norm", (0, 1, 0), r"{\left(\gamma_1\right)}_{0}"),
        ("attn_out", (0, 1, 2), r"{\left(O_{\text{attn}}\right)}_{0,1,2}"),
        ("q_rot", (0, 1, 2, 0), r"Q'_{0,1,2,0}"),
    ):
        inner = re.search(r"<mrow>(.*)</mrow>", mathml(shown))
        assert inner and inner[1] in inspect(trace, name, index).mathml, name
