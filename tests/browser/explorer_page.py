"""The page as tests see it: cells, fields, stages, edits and ledger by their data attributes, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from playwright.sync_api import Locator, Page, expect

Index = tuple[int, ...]
READ_CELLS = """
    () => [...document.querySelectorAll('[data-q][data-i]')].map(
        cell => [cell.dataset.q, cell.dataset.i, 'value' in cell ? cell.value : cell.textContent])
"""


def number(text: str) -> float:
    """The number that a cell shows: a true minus, an infinity sign and thin spaces are read as written."""
    plain = re.sub(r"[\s\u2009\u202f]", "", text).replace("\u2212", "-").replace("∞", "inf")
    return float(plain)


def index_text(index: Index) -> str:
    return ",".join(map(str, index))


class ExplorerPage:
    """Wraps a playwright page. Every action that changes the spec waits until the answer is painted."""

    def __init__(self, page: Page):
        self.page = page

    # ---------------------------------------------------------------------------------------------- whole page

    @property
    def root(self) -> Locator:
        return self.page.locator("[data-ready]").first

    def open(self, url: str) -> None:
        self.page.goto(url)
        self.page.wait_for_selector("[data-ready=true]")

    def seq(self) -> int:
        """The number of the last painted answer."""
        return int(self.root.get_attribute("data-seq") or 0)

    @contextmanager
    def repaint(self) -> Iterator[None]:
        """What happens inside leads to at least one newer painted answer; returns when the page is quiet again."""
        before = self.seq()
        yield
        self.page.wait_for_function(
            "before => Number(document.querySelector('[data-ready]').dataset.seq) > before", arg=before
        )
        self.settle()

    def settle(self, still: int = 150) -> None:
        """Wait until every question is answered and no other was asked for `still` milliseconds."""
        last = -1
        while (now := self.answered()) != last:
            last = now
            self.page.wait_for_timeout(still)

    def answered(self) -> int:
        """The number of the last painted answer, once no question is under way."""
        self.page.wait_for_function("document.querySelector('[data-ready]').dataset.asking !== 'true'")
        return self.seq()

    # --------------------------------------------------------------------------------------------------- cells

    def cell(self, q: str, *index: int) -> Locator:
        return self.page.locator(f'[data-q="{q}"][data-i="{index_text(index)}"]')

    def value(self, q: str, *index: int) -> float:
        return self.cells()[q][index]

    def texts(self) -> dict[tuple[str, Index], str]:
        """What every shown cell says, by quantity and index; two cells of one name and index are an error."""
        shown: dict[tuple[str, Index], str] = {}
        for q, i, text in self.page.evaluate(READ_CELLS):
            key = (q, tuple(int(part) for part in i.split(",")))
            assert key not in shown, f"{q}[{i}] is shown twice"
            shown[key] = text
        return shown

    def cells(self) -> dict[str, dict[Index, float]]:
        """Every shown number: {quantity: {index: number}}."""
        found: dict[str, dict[Index, float]] = {}
        for (q, index), text in self.texts().items():
            found.setdefault(q, {})[index] = number(text)
        return found

    def array(self, q: str) -> np.ndarray:
        """A quantity that is shown whole, as an array; a missing cell is an error."""
        cells = self.cells()[q]
        out = np.full(np.max(list(cells), axis=0) + 1, np.nan)
        for index, x in cells.items():
            out[index] = x
        assert len(cells) == out.size, f"{q}: {len(cells)} cells shown, {out.size} expected"
        return out

    def type_cell(self, q: str, index: Index, text: str) -> None:
        """Replace what a cell says, key by key, and leave the focus there."""
        self.cell(q, *index).click()
        self.page.keyboard.press("ControlOrMeta+a")
        self.page.keyboard.type(text)

    # ------------------------------------------------------------------------------- stages, fields and presets

    def stage(self, n: int) -> None:
        with self.repaint():
            self.page.locator(f'button[data-stage="{n}"]').click()

    def field(self, name: str) -> Locator:
        return self.page.locator(f'[data-field="{name}"]')

    def set_field(self, name: str, text: str) -> None:
        """Put text in a field at once, as a paste does."""
        field = self.field(name)
        if field.evaluate("field => field.tagName") == "SELECT":
            field.select_option(text)
        else:
            field.fill(text)

    def error(self, name: str) -> Locator:
        return self.page.locator(f'[data-error-for="{name}"]')

    def expect_error(self, name: str) -> str:
        """The message beside a field, which must be there and visible."""
        expect(self.error(name)).to_be_visible()
        expect(self.error(name)).not_to_be_empty()
        return self.error(name).inner_text()

    def expect_no_errors(self) -> None:
        shown = [text for text in self.page.locator("[data-error-for]").all_inner_texts() if text.strip()]
        assert not shown, shown

    # -------------------------------------------------------------------------------------------------- ledger

    def ledger(self) -> dict[str, str]:
        """{quantity: the row's text}."""
        rows = self.page.locator("[data-ledger] [data-row]")
        return dict(rows.evaluate_all("rows => rows.map(row => [row.dataset.row, row.textContent])"))
