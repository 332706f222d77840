"""Nothing in a whole picture of the Chinese page is English."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from explorer.ui.page import answer
from tests.ui.in_chinese import ENGLISH, is_chinese

pytestmark = pytest.mark.usefixtures("checkpoints")


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, part in value.items():
            if key not in ("code", "text", "examples", "error", "query", "link"):
                yield from strings(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from strings(part)


@pytest.mark.parametrize("stage", range(1, 9))
def test_nothing_in_a_picture_is_english(stage: int) -> None:
    spec = {"T": "3", "B": "2", "d_model": "8", "h": "2", "weights": "random", "past": "1", "attention": "flash"}
    for request in (
        {"spec": spec, "switches": ["no_mask"]}, {"spec": {**spec, "experts": "3"}},
        {"edits": [{"t": "probs", "i": [0, 0, 1, 0], "x": 0.5}]},
    ):  # fmt: skip
        picture = answer({**request, "stage": stage, "lang": "zh"})
        assert picture["ok"]
        for text in strings(orjson.loads(orjson.dumps(picture, option=orjson.OPT_SERIALIZE_NUMPY))):
            assert not ENGLISH.search(re.sub(r"<[^>]*>", " ", text)), text


def test_nothing_that_never_changes_is_english() -> None:
    fixed = answer({"want": ["fixed"], "lang": "zh"})
    in_english = {"default_text", "language_hint"}  # what a model reads, and the way back for who reads no Chinese
    fixed["fixed"]["texts"] = {k: v for k, v in fixed["fixed"]["texts"].items() if k not in in_english}
    for text in strings(orjson.loads(orjson.dumps(fixed, option=orjson.OPT_SERIALIZE_NUMPY))):
        assert not ENGLISH.search(re.sub(r"<[^>]*>", " ", text)), text


def test_ledger_notes() -> None:
    edit = {"t": "q", "i": [0, 0, 0, 0], "x": 2}
    notes = {lang: {row["note"] for row in answer({"lang": lang, "edits": [edit]})["ledger"]} for lang in ("en", "zh")}
    assert {"", "edited", "same memory as k_rot"} <= notes["en"]
    assert {"", "已编辑", "与 k_rot 共用内存"} <= notes["zh"]
    assert all(is_chinese(note) for note in notes["zh"] - {""})
