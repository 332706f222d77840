"""Equations are well-formed MathML with role colours."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from explorer.draw.scales import ROLES
from explorer.stages import STAGES

CORE = {
    "math",
    "mrow",
    "mi",
    "mn",
    "mo",
    "mtext",
    "mspace",
    "msub",
    "msup",
    "msubsup",
    "mfrac",
    "msqrt",
    "mover",
    "mtable",
    "mtr",
    "mtd",
}
CHILDREN = {"msubsup": 3, "msub": 2, "msup": 2, "mfrac": 2, "mover": 2}
EQUATIONS = [(s.key, s.equation) for s in STAGES] + [("experts", STAGES[-1].equation_moe)]


@pytest.mark.parametrize(("key", "text"), EQUATIONS)
def test_well_formed(key: str, text: str) -> None:
    math = ET.fromstring(text)
    assert math.get("display") == "block"
    assert math.get("alttext")
    for element in math.iter():
        assert element.tag in CORE, element.tag
        assert len(element) == CHILDREN.get(element.tag, len(element)), key
        if element.get("class"):
            assert element.get("class", "").removeprefix("role-") in ROLES


def test_colours_follow_the_roles() -> None:
    expected = ["resid", "resid q k v", "q k", "q k score", "score prob v", "attn v", "resid attn", "resid ffn"]
    for stage, roles in zip(STAGES, expected, strict=True):
        assert set(re.findall(r"role-(\w+)", stage.equation)) == set(roles.split()), stage.key
