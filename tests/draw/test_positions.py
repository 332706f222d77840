"""What tokens are called: their text cut, printable and without markup."""

from __future__ import annotations

import html

import pytest

from explorer.draw.positions import LONGEST, NUMBERED, Positions, shortened

HOSTILE = ("<b>x</b>", "<img src=x onerror=alert(1)>", "&lt;i&gt;", "$x$", "%{z}", "{t}", '"quoted"', "a\nb", "\u202ex")


def test_numbers_alone_without_texts() -> None:
    assert NUMBERED.label(3) == "3"
    assert NUMBERED.called(3) == NUMBERED.spoken(3) == 3
    assert NUMBERED.labels([3, 4]) == [3, 4]
    assert NUMBERED.axis([3, 4]) == {}
    assert NUMBERED.left == NUMBERED.below == 0


def test_texts_stand_beside_positions() -> None:
    tokens = Positions(1, ("the", " ball"))
    assert tokens.label(1) == "1 ball"
    assert tokens.called(0) == tokens.spoken(0) == "0 “the”"
    assert tokens.labels([0, 1, 2]) == ["0 the", "1 ball", "2"]
    assert tokens.axis([0, 1, 2]) == {"labelalias": {"0": "0 the", "1": "1 ball"}, "autotickangles": [0, -40]}
    assert tokens.axis([1], across=False) == {"labelalias": {"1": "1 ball"}}
    assert tokens.left > tokens.below > 0


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ball", "ball"),
        (" ball ", "ball"),
        ("unbelievable", "unbelieva…"),
        ("exactly-10", "exactly-10"),
        ("滚得很远的", "滚得很远的"),
        ("滚得很远的地方", "滚得很远…"),
        (" ", "␣"),
        ("\n\n", "↵↵"),
        ("", ""),
        ("a\tb", "a⇥b"),
        ("\x00\x1b[0m", "··[0m"),
        ("a\u202eb", "a·b"),
        ("\ud800", "·"),
        ("x" * 10**6, "xxxxxxxxx…"),
    ],
)
def test_shortened(text: str, shown: str) -> None:
    assert shortened(text) == shown


@pytest.mark.parametrize("text", HOSTILE)
def test_labels_hold_no_markup(text: str) -> None:
    tokens = Positions(0, (text,))
    label = tokens.label(0)
    assert not set("<>$") & set(label)
    assert html.unescape(label) == f"0 {shortened(text)}"
    spoken = str(tokens.spoken(0))
    assert not set("<>") & set(spoken)
    assert all(c.isprintable() for c in label + spoken)
    assert len(shortened(text)) <= LONGEST


def test_a_position_beyond_the_texts_is_a_number() -> None:
    tokens = Positions(0, ("a",))
    assert tokens.label(5) == "5"
    assert tokens.called(-1) == -1
