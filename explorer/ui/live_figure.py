"""The one component of the page: an empty gr.HTML that our own script fills and keeps alive.

Purpose: hand the browser its texts, the first picture, the addresses of scripts, and one server function.
Must not know: what a request means.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import gradio as gr
import orjson

from explorer.messages import in_language, said, say
from explorer.ui.words import language, languages, words

ASSETS = Path(__file__).resolve().parents[2] / "assets"
ENTRY = ASSETS / "js" / "main.js"
LONGEST_REQUEST = 200_000  # characters; assets/js/asking.js says the same
LAST_SEQ = re.compile(r'.*"seq":\s*(\d{1,15})\b', re.DOTALL)
END = 200  # characters; the page writes a question's number last
LANG = re.compile(r'(?<!\\)"lang":\s*"([a-z]{2})"')

START = """
const say = text => { const p = document.createElement("p"); p.textContent = text; element.replaceChildren(p); };
const at = path => new URL(path, document.baseURI).href;
const styled = new Promise(done => {
  const link = [...document.querySelectorAll("link[data-explorer]")].find(node => node.rel === "stylesheet");
  if (!link || link.sheet) return done();
  link.addEventListener("load", done); link.addEventListener("error", done);
});
Promise.all([import(at(props.entry)), styled])
  .then(([page]) => page.mount(element, {...JSON.parse(props.content), plotly: at(props.plotly)},
                               text => server.update(text)))
  .catch(error => { console.error(error); say(navigator.language.startsWith("zh") ? props.lost.zh : props.lost.en); });
"""


def address(path: Path) -> str:
    """A relative URL of a file that Gradio may serve; relative, so that it works below any root path."""
    return f"gradio_api/file={quote(path.as_posix())}"


def dumps(payload: object) -> str:
    """JSON text; numpy arrays allowed, NaN and infinities become null."""
    return orjson.dumps(payload, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS).decode()


class Explorer(gr.HTML):
    """The page. `answer` maps a request to a payload; `fixed` and `first` are the texts and the first picture."""

    def __init__(
        self,
        answer: Callable[[Mapping[str, Any]], Mapping[str, Any]],
        fixed: Mapping[str, Any],
        first: Mapping[str, Any],
        plotly_js: Path,
    ) -> None:
        def update(text: str) -> str:
            """One question of the page, as JSON text, answered as JSON text."""
            try:
                request = parse(text)
            except ValueError as error:
                return dumps(
                    {"ok": False, "seq": number_of(text), "errors": {"": in_language(said(error), language_of(text))}}
                )
            return dumps(answer(request))

        super().__init__(
            "",
            html_template="",
            js_on_load=START,
            apply_default_css=False,
            server_functions=[update],
            entry=address(ENTRY),
            plotly=address(plotly_js),
            content=dumps({"fixed": fixed, "first": first}),
            lost={lang: words(lang)["script_lost"] for lang in languages()},
        )


def parse(text: object) -> Mapping[str, Any]:
    """A request from JSON text. Raises ValueError, with a sentence for the visitor, where there is none to read."""
    if not isinstance(text, str):
        raise ValueError(say("The request is {kind}; it must be JSON text. Reload the page.", kind=type(text).__name__))
    if len(text) > LONGEST_REQUEST:
        raise ValueError(
            say(
                "The request has {length:,} characters; at most {most:,} are read. "
                "Remove some edits or shorten the text.",
                length=len(text), most=LONGEST_REQUEST,
            )
        )  # fmt: skip
    try:
        request = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise ValueError(
            say("The request is not valid JSON text. Take back the last change, or reload the page.")
        ) from None
    if not isinstance(request, dict):
        raise ValueError(say("The request is JSON, but no object with fields. Reload the page."))
    return request


def number_of(text: object) -> int | None:
    """The number of a question that cannot be read, where its end still says it."""
    found = LAST_SEQ.match(text[-END:]) if isinstance(text, str) else None
    return int(found[1]) if found else None


def language_of(text: object) -> str:
    """The language that a question asks for, also one that cannot be read."""
    found = LANG.search(text) if isinstance(text, str) else None
    return language({"lang": found[1]} if found else {})
