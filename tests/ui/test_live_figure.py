"""What reaches the page's one server function and is no request, gets an answer that says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson
import pytest

from explorer import link
from explorer.spec import Edit, RunSpec
from explorer.ui.live_figure import LONGEST_REQUEST, Explorer, number_of, parse
from explorer.ui.page import answer

LONG = '{"spec":{"text":"' + "x" * LONGEST_REQUEST + '"},"seq":41}'


@pytest.mark.parametrize("text", ["", "[]", "nonsense", "null", "{", '"x"', LONG, r'{"spec":{"text":"\ud800"}}', 3])
def test_what_is_no_request_is_refused_with_a_sentence(text: object) -> None:
    with pytest.raises(ValueError, match=r"request .*\. (Reload|Remove|Take back)"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "number"), [(LONG, 41), ('{"seq": 7', 7), ("{", None), (None, None), (r'{"x":"\"seq\":3', None)]
)
def test_the_number_is_found_where_it_can_be(text: object, number: int | None) -> None:
    assert number_of(text) == number


def test_the_server_function_refuses_instead_of_showing_the_default(tmp_path: Any) -> None:
    component = Explorer(answer, {}, {}, tmp_path / "plotly.js")
    update = component.server_fns[0] if hasattr(component, "server_fns") else component.server_functions[0]
    reply = orjson.loads(update(LONG))
    assert (reply["ok"], reply["seq"], list(reply["errors"])) == (False, 41, [""])
    assert "at most 200,000" in reply["errors"][""]


def test_a_whole_tensor_travels_as_short_as_in_its_link() -> None:
    spec = RunSpec(T=64, d_model=64, h=4, weights="random")
    spec = RunSpec(
        T=64, d_model=64, h=4, weights="random", edits=(Edit("resid_pre", (), np.ones(spec.shape("resid_pre"))),)
    )
    first = answer({"query": "?" + link.encode(spec)})
    (edit,) = first["edits"]
    assert isinstance(edit["x"], str) and edit["x"].startswith("z1x64x64_") and len(edit["x"]) < 500
    again = answer({"spec": first["spec"], "edits": first["edits"]})
    assert again["ok"] and again["edits"] == first["edits"]
    assert (again["query"], again["panels"]) == (first["query"], first["panels"])


@pytest.mark.parametrize("packed", ["z", "zap", "z9999x9999_eJw", "z2x2_!!!"])
def test_a_broken_package_is_an_error_of_its_edit(packed: str) -> None:
    reply = answer({"edits": [{"t": "resid_pre", "i": [], "x": packed}]})
    assert not reply["ok"] and list(reply["errors"]) == ["edits.0"]
