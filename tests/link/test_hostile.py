"""Whatever an address holds, opening it never fails, never costs more than the limits allow, and says what it left out.

Hypothesis writes the addresses: any text, any pairs, and mutations of good ones. A few are written by hand.
"""

from __future__ import annotations

import base64
import os
import random
import struct
import time
import tracemalloc
import zlib
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from explorer.limits import LIMITS
from explorer.link import KEYS, LinkTooLong, View, decode, encode
from explorer.spec import RunSpec
from tests.link.random_specs import random_spec, random_view

pytestmark = pytest.mark.usefixtures("checkpoints")
EXAMPLES = int(os.environ.get("EXPLORER_FUZZ_EXAMPLES", "300"))  # more of them, and new ones, when asked for
examples = settings(
    max_examples=EXAMPLES,
    derandomize=EXAMPLES == 300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

KEY = st.sampled_from(
    [
        *KEYS.values(),
        "v",
        "stage",
        "cell",
        "show",
        "row",
        "head",
        "lang",
        "present",
        "off",
        "expert",
        "token",
        "view",
        "x",
    ]
)
HOSTILE = (
    "", "-1", "0", "1", "2", "3", "8", "64", "1e400", "-inf", "nan", "NaN", "9" * 400, "1_0", "١٢", "２", "+3", " 4 ",
    "0x10", "1,2", "2.5", "true", "on", "toy", "random", "checkpoint:", "checkpoint:../../etc/passwd",
    "checkpoint:stories", "<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "javascript:alert(1)",
    "{{7*7}}", "${7*7}", "%00", "\x00", "\n", "\ud800", "a" * 5000, "probs@0.0.0.0~1",
    "-probs@0.0.1.0~0.5!resid_pre@*.*.*~2", "resid_pre@0.0.0~nan", "expert_index@0.0.0~0",
    "mlp.experts.².gate_proj.weight@0.0~1", "mlp.experts.0.gate_proj.weight@0.0~1",
    "resid_pre@~z1x2x2_eNpjYACBH_YMEHCAAQVwOAAALIcCQA", "resid_pre@~z999999x999999_AAAA", "resid_pre@~z_", "z", "!!!",
    "@~", "~", "no_mask", "no_mask!only_head:9!temperature:0", "only_head:0!expert:1", "probs@0.0.0.0", "probs", "@0.0",
)  # fmt: skip
VALUE = st.sampled_from(HOSTILE) | st.text(max_size=30) | st.integers(-3, 70).map(str) | st.floats().map(repr)


def check(query: str) -> None:
    """What holds for every address."""
    spec, view, notes = decode(query)
    RunSpec(**spec.given())  # valid, which includes every limit
    assert 1 <= view.stage <= 8
    assert 0 <= view.row < spec.B
    assert 0 <= view.head < spec.h
    if view.cell:
        name, index = view.cell
        assert all(0 <= i < n for i, n in zip(index, spec.shape(name), strict=True))
    assert len(notes) <= 12
    assert all(len(note) <= 2500 for note in notes), max(notes, key=len)
    assert all(note.isprintable() for note in notes), notes
    "".join(notes).encode("utf-8")
    try:
        again = encode(spec, view)
    except LinkTooLong:
        return
    assert decode(again) == (spec, view, []), "what was read makes a link of its own, with nothing to complain about"


@examples
@given(st.text(max_size=200))
def test_any_text(query: str) -> None:
    check(query)


@examples
@given(st.lists(st.tuples(KEY, VALUE), max_size=12), st.booleans())
def test_any_pairs(pairs: list[tuple[str, str]], quoted: bool) -> None:
    check("&".join(f"{key}={quote(text, errors='replace') if quoted else text}" for key, text in pairs))


@examples
@given(st.integers(0, 10**6), st.data())
def test_mutated_links(seed: int, data: st.DataObject) -> None:
    rng = random.Random(seed)
    spec = random_spec(rng)
    query = encode(spec, random_view(rng, spec))
    for _ in range(data.draw(st.integers(1, 6))):
        at, to = sorted((rng.randrange(len(query) + 1), rng.randrange(len(query) + 1)))
        piece = data.draw(st.sampled_from("&=@~!*.-_:,%zx0919") | st.sampled_from(HOSTILE) | st.text(max_size=5))
        kind = data.draw(st.sampled_from(["insert", "replace", "delete", "double", "swap"]))
        query = {
            "insert": query[:at] + piece + query[at:],
            "replace": query[:at] + piece + query[at + len(piece) :],
            "delete": query[:at] + query[min(to, at + 9) :],
            "double": query[:to] + query[at:],
            "swap": query[to:] + query[:to],
        }[kind] or "&"
    check(query)


def packed(shape: str, data: bytes) -> str:
    return f"z{shape}_{base64.urlsafe_b64encode(data).decode().rstrip('=')}"


def peak_and_seconds(query: str) -> tuple[float, float, list[str]]:
    """MiB at the peak and seconds of opening it."""
    decode("v=1")
    tracemalloc.start()
    try:
        begin = time.perf_counter()
        notes = decode(query)[2]
        return tracemalloc.get_traced_memory()[1] / 2**20, time.perf_counter() - begin, notes
    finally:
        tracemalloc.stop()


def test_a_compressed_bomb_is_not_unfolded() -> None:
    bomb = zlib.compress(zlib.compress(bytes(10 * 2**20), 9), 9)  # and a plain one of as much as fits into a link
    plain = zlib.compress(bytes(8 * 2**20), 9)
    assert len(plain) < 12_000
    for data in (bomb, plain):
        for shape in ("2x2", "1x2x2", "256x256", "9999999"):
            peak, seconds, notes = peak_and_seconds(f"e=resid_pre@~{packed(shape, data)}")
            assert peak < 8, (shape, peak)
            assert seconds < 2
            assert len(notes) == 1
            assert "resid_pre" in notes[0]


def test_many_well_packed_edits_share_one_budget() -> None:
    zeros = packed("256x256", zlib.compress(struct.pack("<65536d", *bytes(65536)), 9))
    query = "e=" + "!".join([f"resid_pre@~{zeros}"] * (15_000 // (len(zeros) + 13)))
    assert len(query) < LIMITS.link
    peak, seconds, notes = peak_and_seconds(query)
    assert peak < 24
    assert seconds < 3
    assert notes


def test_a_link_with_everything_wrong_opens_quickly() -> None:
    zeros = packed("16x16x256", zlib.compress(struct.pack("<65536d", *bytes(65536)), 9))
    wrong = "&".join(f"{key}={text}" for key, text in zip(KEYS.values(), HOSTILE * 2, strict=False) if key not in "es")
    bad = "!".join(["heads@9.9.9.9~1"] * 200)
    for query in (wrong, f"w=random&d=3&{wrong}", f"w=random&B=8&T=16&h=7&d=255&pad=1&e=resid_pre@~{zeros}!{bad}"):
        _, seconds, notes = peak_and_seconds(query)
        assert seconds < 3, query
        assert notes


def test_an_address_beyond_the_limit_is_not_read() -> None:
    spec, view, notes = decode("v=1&T=3&text=" + "a" * LIMITS.link)
    assert (spec, view) == (RunSpec(), View())
    assert notes == [f"The link has {LIMITS.link + 13:,} characters; at most 16,000 are read. All of it was ignored."]


def test_too_many_parts() -> None:
    assert decode("&".join(f"x{n}=1" for n in range(81)))[2] == [
        "The link has more than 80 parts. All of it was ignored."
    ]
    notes = decode("&".join(f"x{n}=1" for n in range(40)))[2]
    assert len(notes) == 12
    assert notes[-1] == "29 more parts were ignored."
