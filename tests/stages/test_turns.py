"""What stage 3 says of its turns, against angles and turns calculated here."""

from __future__ import annotations

import cmath
import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from explorer import PRESETS, Edit, RunSpec, run
from explorer.stages import STAGES
from explorer.stages.figures import FIGURES
from tests.stages.cases import ANGLES, SPECS, recorded

CAPSTONE = RunSpec(B=2, T=5, d_model=12, h=3, weights="random")
CLOCKWISE = SPECS["turning backwards"]


def said(spec: RunSpec, lang: str = "en", **at: int) -> str:
    return " ".join(re.sub(r"<[^>]+>", "", fact) for fact in STAGES[2].facts(run(spec), lang=lang, **at))


def shown(value: float) -> str:
    return f"{value:.4g}".replace("-", "−")


def pair(values: Any) -> str:
    return f"({', '.join(map(shown, values))})"


@pytest.mark.parametrize(("table", "cell"), [("rope_cos", (4, 0)), ("rope_sin", (4, 2))])
def test_an_edited_table_is_not_called_a_turn(table: str, cell: tuple[int, int]) -> None:
    spec = replace(CAPSTONE, edits=(Edit(table, cell, 0.5),))
    x, y = run(CAPSTONE)["q_norm"][0, 0, 4, [0, 2]].astype(float)
    cos, sin = math.cos(4), math.sin(4)
    first = (0.5 if table == "rope_cos" else cos) * x - sin * y
    second = cos * y + (0.5 if table == "rope_sin" else sin) * x
    text, chinese = said(spec), said(spec, "zh")
    assert "counter-clockwise by 229.2°" in text, "the table's edit does not move the position"
    length, after = shown(math.hypot(x, y)), f"{pair((first, second))} of length {shown(math.hypot(first, second))}"
    assert f"the pair {pair((x, y))} of length {length} is now {after}, which is not that turn" in text
    assert "stays" not in text and "保持不变" not in chinese and shown(math.hypot(first, second)) in chinese
    figure = FIGURES["rope"](run(spec))
    measured = math.degrees(cmath.phase(complex(first, second) / complex(x, y))) % 360
    assert figure["data"][-1]["text"][4] == f"{measured:.4g}° (edited)"
    assert figure["data"][-1]["text"][3] == f"{math.degrees(3):.4g}°"


def test_a_table_edited_at_another_position_changes_no_sentence() -> None:
    assert said(replace(CAPSTONE, edits=(Edit("rope_cos", (3, 0), 0.5),))) == said(CAPSTONE)


def yarn_speeds(width: int, base: float, factor: float = 16, length: int = 2048) -> list[float]:
    """Peng et al. 2023 §3.2 with MiniMind's whole-pair limits, one pair at a time."""

    def where(turns: float) -> float:
        return width * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(base))

    low, high = max(math.floor(where(32)), 0), min(math.ceil(where(1)), width // 2 - 1)
    speeds = []
    for i in range(width // 2):
        slowed = min(max((i - low) / max(high - low, 1e-3), 0), 1)
        speeds.append(base ** (-2 * i / width) * ((1 - slowed) + slowed / factor))
    return speeds


def test_yarn_counts_whole_turns() -> None:
    wide = replace(PRESETS["minimind3"], yarn=True)
    speeds = yarn_speeds(96, 1e6)
    text = said(wide)
    assert f"counter-clockwise by {shown(math.degrees(63))}°" in text and "3610°" in text
    assert f"pair 47, by {shown(math.degrees(63 * speeds[47]))}° here" in text
    assert said(replace(PRESETS["minimind3"])).split("So the pair")[0] == text.split("So the pair")[0]
    labels = FIGURES["rope"](run(wide), pair=5)["data"][-1]["text"]
    assert labels[11] == f"{shown(math.degrees(63 * speeds[5]))}°"


def test_yarn_counts_whole_turns_after_a_cache() -> None:
    spec = RunSpec(T=5, d_model=32, h=2, yarn=True, past=3, weights="random")
    assert f"counter-clockwise by {shown(math.degrees(7))}°" in said(spec) and "401.1°" in said(spec)


@pytest.mark.parametrize(
    ("base", "text", "chinese"),
    [(1e6, "Later pairs turn more slowly", "转得越慢"), (1.0, "All pairs turn equally fast", "一样快"),
     (0.5, "Later pairs turn faster", "转得越快")],
)  # fmt: skip
def test_which_pairs_turn_faster_follows_the_base(base: float, text: str, chinese: str) -> None:
    spec = replace(CAPSTONE, rope_theta=base)
    last = math.degrees(4 * base ** (-2 / 4))
    assert f"{text}: the last one, pair 1, by {shown(last)}° here" in said(spec)
    assert chinese in said(spec, "zh") and f"转 {shown(last)}°" in said(spec, "zh")
    assert text not in said(replace(spec, d_model=6)), "a head of one pair has no later one"


def test_a_turn_backwards_is_clockwise() -> None:
    assert "head 0, clockwise by 114.6°. So the pair (1, −1)" in said(CLOCKWISE)
    assert "顺时针旋转 114.6°" in said(CLOCKWISE, "zh")
    x, y = math.cos(-2) * 1 - math.sin(-2) * -1, math.sin(-2) * 1 + math.cos(-2) * -1
    assert f"becomes {pair((x, y))}" in said(CLOCKWISE)


def test_a_large_angle_is_written_out() -> None:
    assert "counter-clockwise by 22918°" in said(RunSpec(angle_step=400.0))
    assert round(math.degrees(400)) == 22918


def test_tables_that_lengthen_are_said_to() -> None:
    trace = recorded(1.25)
    before, after = (np.hypot(*trace[name][0, 0, 2, [0, 2]].astype(float)) for name in ("q_norm", "q_rot"))
    assert after == pytest.approx(1.25 * before, rel=1e-5)
    text = " ".join(STAGES[2].facts(trace))
    assert f"multiplies its length {shown(before)} by 1.25, which gives {shown(after)}" in text and "stays" not in text
    assert "乘以 1.25" in " ".join(STAGES[2].facts(trace, lang="zh"))


def test_of_a_block_without_a_specification_no_order_is_claimed() -> None:
    text = " ".join(STAGES[2].facts(recorded()))
    assert (
        f"The last pair, pair 1, turns by {shown(math.degrees(2 * ANGLES[1]))}° here" in text
        and "Later pairs" not in text
    )
    assert "stays" in text
