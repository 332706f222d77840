"""The bridge as the page asks for it: rows once, then one check at a time, in the language of the page."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from explorer.bridge import ROWS
from explorer.limits import LIMITS
from explorer.ui.page import answer

ROOT = Path(__file__).resolve().parents[2]
CJK = re.compile(r"[一-鿿]")


def ask(given: Any, **more: Any) -> dict[str, Any]:
    return answer({"want": ["bridge"], "bridge": given, **more})


def test_the_rows_themselves() -> None:
    for lang in ("en", "zh"):
        rows = ask({}, lang=lang)["bridge"]["rows"]
        assert [row["number"] for row in rows] == [1, 2, 3, 4, 5, 6]
        for row in rows:
            assert row["code"] and all({"name", "file", "line", "text"} <= lines.keys() for lines in row["code"])
            assert bool(CJK.search(row["adds"])) == bool(CJK.search(row["title"])) == (lang == "zh")


@pytest.mark.parametrize("number", range(1, 7))
def test_one_row_at_a_time(number: int) -> None:
    english, chinese = (ask({"row": number}, preset="gqa", lang=lang)["bridge"] for lang in ("en", "zh"))
    assert english["row"] == number and english["holds"] is True
    assert [point["key"] for point in english["points"]] == [point["key"] for point in chinese["points"]]
    assert all(CJK.search(point["text"]) for point in chinese["points"])
    assert [point["holds"] for point in english["points"]] == [True] * len(english["points"])


def test_the_run_that_is_shown_is_the_one_that_is_checked() -> None:
    (shape,) = (p for p in ask({"row": 2}, preset="capstone")["bridge"]["points"] if p["key"] == "shape")
    assert "2×5×12" in shape["text"]


@pytest.mark.parametrize("row", [0, 7, "1", [1], {"a": 1}, True, 1e9])
def test_a_row_that_is_not_there(row: Any) -> None:
    reply = ask({"row": row})
    assert not reply["ok"] and reply["errors"] == {"bridge": "There is no such row. Choose one from 1 to 6."}


@pytest.mark.parametrize("given", [None, 3, "x", [], {"row": None}])
def test_what_names_no_row_gives_all(given: Any) -> None:
    assert len(ask(given)["bridge"]["rows"]) == len(ROWS)


def test_too_much_is_refused_in_both_languages() -> None:
    large = {"T": str(LIMITS.T), "d_model": "512", "h": "8", "weights": "random", "attention": "flash"}
    for lang in ("en", "zh"):
        reply = ask({"row": 4}, spec=large, lang=lang)
        assert list(reply["errors"]) == ["bridge"]
        assert bool(CJK.search(reply["errors"]["bridge"])) == (lang == "zh")


def test_only_the_last_row_brings_transformers() -> None:
    code = (
        "import sys; from explorer.ui.page import answer\n"
        "def loaded(n):\n"
        "    answer({'want': ['bridge'], 'bridge': n and {'row': n}})\n"
        "    return 'transformers' in sys.modules\n"
        "print([loaded(n) for n in (None, 1, 2, 3, 4, 5, 6)])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[-2] == "[False, False, False, False, False, False, True]"
