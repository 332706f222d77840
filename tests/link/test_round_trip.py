"""A thousand random states become links and come back equal."""

from __future__ import annotations

import math
import random
from dataclasses import fields, replace
from urllib.parse import parse_qsl

import pytest

from explorer.limits import LIMITS
from explorer.link import RESERVED, LinkTooLong, View, decode, encode
from explorer.spec import PRESETS, Edit, RunSpec
from tests.link.random_specs import CHECKPOINTS, random_spec, random_view

SEEDS = range(1000)
pytestmark = pytest.mark.usefixtures("checkpoints")


def same(a: object, b: object) -> bool:
    """Equality that tells 0 from −0 and finds −∞ equal to itself."""
    return a == b and repr(a) == repr(b)


def test_a_thousand_random_states() -> None:
    used: dict[str, int] = dict.fromkeys((f.name for f in fields(RunSpec)), 0)
    kinds: dict[str, int] = dict.fromkeys(("whole", "everywhere", "off", "minus infinity", "negative zero", "cell"), 0)
    for seed in SEEDS:
        rng = random.Random(seed)
        spec = random_spec(rng)
        view = random_view(rng, spec)
        query = encode(spec, view)
        back, seen, notes = decode("?" + query)
        assert not notes, (seed, query, notes)
        assert same(_plain(back), _plain(spec)), (seed, query)
        assert seen == view, (seed, query)
        assert encode(back, seen) == query, "one state has one link"
        assert len(query) <= LIMITS.link
        assert query.isascii()
        assert query.isprintable()
        for name in spec.given():
            used[name] += 1
        _count(kinds, spec, view)
    assert min(used.values()) >= 30, f"the generator hardly uses {[n for n, count in used.items() if count < 30]}"
    assert min(kinds.values()) >= 20, kinds


def _plain(spec: RunSpec) -> RunSpec:
    """An int given for a real field is the same setting as the float that a link reads."""
    reals = {
        name: float(x) for name in ("angle_step", "rope_theta", "norm_eps") if (x := getattr(spec, name)) is not None
    }
    return replace(spec, **reals)


def _count(kinds: dict[str, int], spec: RunSpec, view: View) -> None:
    for edit in spec.edits:
        kinds["whole"] += isinstance(edit.value, tuple)
        kinds["everywhere"] += None in edit.index
        kinds["off"] += not edit.on
        kinds["minus infinity"] += edit.value == -math.inf
        kinds["negative zero"] += repr(edit.value) == "-0.0"
    kinds["cell"] += view.cell is not None


@pytest.mark.parametrize("name", PRESETS)
def test_presets_have_short_readable_links(name: str) -> None:
    query = encode(PRESETS[name])
    assert decode(query) == (PRESETS[name], View(), [])
    assert len(query) < 100
    assert "%" not in query


def test_a_link_can_be_read() -> None:
    spec = RunSpec(
        B=2, T=5, d_model=12, h=3, weights="random", edits=(Edit("probs", (0, 0, 1, None), 0.5),), switches=("no_mask",)
    )
    query = encode(spec, View(stage=5, cell=("probs", (1, 2, 4, 0))))
    assert query == "v=1&B=2&T=5&d=12&h=3&w=random&e=probs@0.0.1.*~0.5&s=no_mask&stage=5&cell=probs@1.2.4.0"


def test_our_keys_are_none_that_gradio_reads() -> None:
    rng = random.Random(7)
    for _ in range(200):
        spec = random_spec(rng)
        keys = {key for key, _ in parse_qsl(encode(spec, random_view(rng, spec)), keep_blank_values=True)}
        assert not keys & {*RESERVED, "view", "__theme", "deep_link", "__sign", "logs", "ui", "page", "write_token"}


def test_what_gradio_reads_passes_through_unnoticed() -> None:
    spec, view, notes = decode("view=api&__theme=dark&deep_link=abc&__sign=xyz&logs=container&v=1&T=3&stage=4")
    assert (spec, view, notes) == (RunSpec(T=3), View(stage=4), [])


def test_whole_tensor_as_large_as_links_allow_and_one_beyond() -> None:
    rng = random.Random(3)
    flat = tuple(tuple(rng.gauss(0, 1) for _ in range(32)) for _ in range(30))
    fits = RunSpec(T=30, d_model=32, h=2, weights="random", edits=(Edit("resid_pre", (), (flat,)),))
    assert decode(encode(fits))[0] == fits
    wide = tuple(tuple(rng.gauss(0, 1) for _ in range(64)) for _ in range(64))
    beyond = RunSpec(T=64, d_model=64, h=2, weights="random", edits=(Edit("resid_pre", (), (wide,)),))
    with pytest.raises(LinkTooLong, match=r"needs a link of [\d,]+ characters; at most 16,000 .* edits"):
        encode(beyond)


def test_a_large_tensor_of_few_different_values_also_comes_back_or_is_refused() -> None:
    for tokens in (64, 300):
        flat = tuple(tuple(float(i == j) for j in range(256)) for i in range(tokens))
        spec = RunSpec(T=tokens, d_model=256, h=2, weights="random", edits=(Edit("resid_pre", (), (flat,)),))
        try:
            query = encode(spec)
        except LinkTooLong as error:
            assert tokens == 300
            assert "76,800 given values" in str(error)
        else:
            assert decode(query) == (spec, View(), [])


def test_a_long_text_is_named_when_a_link_cannot_hold_it() -> None:
    with pytest.raises(LinkTooLong, match="text"):
        encode(RunSpec(weights=CHECKPOINTS[0], text="深" * 4000))
    spec = RunSpec(weights=CHECKPOINTS[0], text="深" * 1700)
    assert decode(encode(spec))[0] == spec


def test_a_hundred_small_edits_fit() -> None:
    edits = tuple(Edit("resid_pre", (0, t % 16, t // 16), t / 7) for t in range(256))
    spec = RunSpec(T=16, d_model=16, h=2, weights="random", edits=edits)
    assert decode(encode(spec))[0] == spec
