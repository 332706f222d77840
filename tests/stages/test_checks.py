"""The softmax check of the course page, and both norms on one row."""

from __future__ import annotations

import re
from decimal import Decimal, getcontext

import pytest
import torch

from explorer.stages.checks import COURSE_ROW, norm_comparison, read_row, softmax_check

INF = float("inf")


def exact(scores: list[str]) -> list[Decimal]:
    getcontext().prec = 40
    powers = [Decimal(s).exp() for s in scores]
    return [p / sum(powers) for p in powers]


def test_the_course_row() -> None:
    check = softmax_check()
    shares = [*exact(["0.7", "1.1", "0.2"]), Decimal(0)]
    assert check.scores == COURSE_ROW
    assert check.shares == pytest.approx([float(s) for s in shares], rel=1e-14)
    assert check.shares[3] == 0.0
    assert check.rounded == ("0.323", "0.481", "0.196", "0.000")
    assert check.rounded_total == "1.000"
    text = " ".join(check.sentences)
    assert "prints the second share as 0.482" in text
    assert "add up to 1.001" in text
    assert "To five decimals the share is 0.48149, so it rounds to 0.481" in text
    assert "(0.32275, 0.48149, 0.19576, 0)" in text


def test_another_row_says_nothing_of_the_course() -> None:
    check = softmax_check([1.0, 1.0, 1.0])
    assert check.rounded_total == "0.999"
    text = " ".join(check.sentences)
    assert "course" not in text
    assert "comes from the rounding alone" in text
    assert "exactly 0" not in text


@pytest.mark.parametrize("row", [[0.0], [1e308, 1e308], [-1e300, 3], [1000, 999, -INF], [5, -INF]])
def test_softmax_against_torch(row: list[float]) -> None:
    expected = torch.tensor(row, dtype=torch.float64).softmax(0)
    assert softmax_check(row).shares == pytest.approx(expected.tolist(), abs=1e-15)
    assert sum(softmax_check(row).exponentials) == pytest.approx(softmax_check(row).total)


def test_a_row_of_hidden_keys_gives_zeros() -> None:
    check = softmax_check([-INF, -INF])
    assert check.shares == (0, 0)
    assert "all shares are 0" in check.sentences[0]


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ([], "has 0 numbers. It takes 1 to 64"),
        ([0.0] * 65, "has 65 numbers"),
        ([float("nan")], "nan cannot be used here. Type finite numbers, or −inf"),
        ([INF, 1], "inf cannot be used here"),
        ([[1, 2]], "The row has 2 numbers"),
    ],
)
def test_rows_that_cannot_be_used(row: list[float], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        softmax_check(row)


def test_read_row() -> None:
    assert read_row("0.7, 1.1 .2;−∞") == [0.7, 1.1, 0.2, -INF]
    assert read_row(" −1e-3,-inf ") == [-0.001, -INF]
    assert read_row("０.7，1、２；－inf") == [0.7, 1, 2, -INF], "as a Chinese keyboard writes it"
    with pytest.raises(ValueError, match=r"'abc' is not a number. Type numbers separated by commas"):
        read_row("1, abc")
    with pytest.raises(ValueError, match="'' is not a number"):
        read_row("")


def test_both_norms_against_torch() -> None:
    row, gamma, beta = [3.0, 1.0, 0.5, -2.0], [1.0, 0.5, 2.0, 1.5], [0.1, 0.0, -0.2, 0.3]
    x, g, b = (torch.tensor(v, dtype=torch.float64) for v in (row, gamma, beta))
    found = norm_comparison(row, gamma, beta, eps=1e-5)
    assert found.rms_normed == pytest.approx(torch.nn.functional.rms_norm(x, (4,), g, 1e-5).tolist())
    assert found.layer_normed == pytest.approx(torch.nn.functional.layer_norm(x, (4,), g, b, 1e-5).tolist())
    assert found.figure["data"][2]["y"][1::3] == pytest.approx(found.layer_normed, rel=1e-6)
    assert (found.mean, found.variance) == (0.625, pytest.approx(x.var(correction=0).item()))


def test_rows_on_which_the_norms_agree_or_part() -> None:
    centred, constant = norm_comparison([1, -1]), norm_comparison([1, 1])
    assert centred.rms_normed == pytest.approx(centred.layer_normed)
    assert "both norms give the same" in " ".join(centred.sentences)
    assert constant.layer_normed == (0, 0)
    assert constant.rms_normed == pytest.approx((1, 1), rel=1e-6)
    assert "All numbers of this row are equal" in " ".join(constant.sentences)
    assert len(norm_comparison([0, 0]).sentences) == 3


def test_norm_comparison_refuses_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match=r"gamma has 1 numbers, the row 2. Give one finite number for each feature"):
        norm_comparison([1, 2], gamma=[1])
    with pytest.raises(ValueError, match=r"-inf cannot be used here. Type finite numbers.$"):
        norm_comparison([1, -INF])


def sentences(row: list[float], lang: str = "en", **learned: list[float]) -> str:
    return re.sub(r"<[^>]+>", "", " ".join(norm_comparison(row, lang=lang, **learned).sentences))


def test_scale_and_shift_stand_in_the_sentences() -> None:
    scaled = sentences([1, -1], gamma=[2, 3])
    assert "and multiplies by γ = (2, 3): (2, −3)" in scaled and "multiplies by the same γ: (2, −3)" in scaled
    shifted = sentences([1, -1], beta=[0.5, 0.5])
    assert "and adds β = (0.5, 0.5): (1.5, −0.5)" in shifted and "γ" not in shifted
    both = sentences([3, 1], gamma=[2, 3], beta=[0.5, 1.0])
    rms = [2 * 3 / 5**0.5, 3 * 1 / 5**0.5]
    layer = [2 * 1 + 0.5, 3 * -1 + 1.0]
    assert f"γ = (2, 3): ({rms[0]:.4g}, {rms[1]:.4g})" in both
    assert f"multiplies by the same γ and adds β = (0.5, 1): ({layer[0]:.4g}, −{-layer[1]:.4g})" in both
    chinese = sentences([3, 1], "zh", gamma=[2, 3], beta=[0.5, 1.0])
    assert "乘上 γ = (2, 3)：" in chinese and "加上 β = (0.5, 1)：(2.5, −2)" in chinese
    assert "γ" not in sentences([3, 1]) and "β" not in sentences([3, 1])


def test_a_row_of_equal_numbers_with_a_shift_leaves_the_shift() -> None:
    assert "(0.5, 0.5)" in sentences([1, 1], beta=[0.5, 0.5])
    assert "its result is β alone" in sentences([1, 1], beta=[0.5, 0.5])
    assert "its result is β alone" not in sentences([1, 1])
    assert "结果只有 β" in sentences([1, 1], "zh", beta=[0.5, 0.5])
