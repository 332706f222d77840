"""A checkpoint on the page: it reads a text, dictates the sizes, and a link to it that cannot be run can be mended."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import DESKTOP, Watch
from tests.browser.explorer_page import ExplorerPage
from tests.browser.server import Server
from tests.ui.reading_checkpoint import EXAMPLES, write_reader


@pytest.fixture(scope="module")
def reading(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("reading")
    source = write_reader(folder / "reader")
    with Server(folder / "log", extra=["--checkpoint", str(source)]) as running:
        yield running


@pytest.fixture
def reader(chromium: Browser, reading: Server) -> Iterator[ExplorerPage]:
    watch, context = Watch(reading.url), chromium.new_context(viewport={"width": DESKTOP[0], "height": DESKTOP[1]})
    watch.attach(context)
    explorer = ExplorerPage(context.new_page())
    explorer.open(reading.url)
    yield explorer
    context.close()
    assert not watch.troubles, "\n".join(watch.troubles)


def test_a_checkpoint_reads_a_text_and_gives_the_sizes_back(reader: ExplorerPage) -> None:
    expect(reader.field("text")).to_be_hidden()
    before = reader.texts()
    with reader.repaint():
        reader.set_field("weights", "checkpoint:reader")
    reader.expect_no_errors()
    expect(reader.field("text")).to_have_value(EXAMPLES[0]["text"])
    for name, value in {"T": "4", "B": "1", "d_model": "16", "h": "4"}.items():
        expect(reader.field(name)).to_have_value(value)
    expect(reader.field("d_model")).to_be_disabled()
    expect(reader.page.locator(".tokens li")).to_have_count(4)
    with reader.repaint():
        reader.page.locator("[data-example]").nth(1).click()
    expect(reader.field("B")).to_have_value("2")
    expect(reader.field("T")).to_have_value("7")
    expect(reader.field("padding")).to_have_value("4 0")
    with reader.repaint():
        reader.set_field("layer", "2")
    reader.set_field("layer", "3")
    assert "from 0 to 2" in reader.expect_error("layer")
    with reader.repaint():
        reader.set_field("layer", "1")
    reader.set_field("text", "")
    assert "empty" in reader.expect_error("text")
    with reader.repaint():
        reader.set_field("text", "the cat ran")
    expect(reader.field("T")).to_have_value("3")
    with reader.repaint():
        reader.set_field("weights", "toy")
    reader.expect_no_errors()
    assert reader.texts() == before, "the sizes from before are back"


def test_what_a_link_asks_for_stands_in_the_fields_even_where_it_cannot_be_run(reader: ExplorerPage) -> None:
    page = reader.page
    page.goto(page.url.split("?")[0] + "?v=1&T=5&w=checkpoint:reader&text=the%20cat%20ran&stage=5")
    assert "Line 1 of the text has 3 tokens" in reader.expect_error("T")
    for name, value in {
        "T": "5",
        "B": "1",
        "weights": "checkpoint:reader",
        "text": "the cat ran",
        "d_model": "16",
    }.items():
        expect(reader.field(name)).to_have_value(value)
    expect(page.locator("h1")).to_have_text("Softmax and blend")
    expect(page.locator("[data-stage='5']")).to_have_attribute("aria-current", "step")
    with reader.repaint():
        reader.set_field("T", "3")
    reader.expect_no_errors()
    expect(page.locator(".tokens li")).to_have_count(3)
    assert {index[2:] for index in reader.cells()["probs"]} == {(i, j) for i in range(3) for j in range(3)}
