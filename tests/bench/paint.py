"""(a) Edit-to-paint of a toy cell, against an echo Textbox in the same browser.

Both pages are timed alike, inside the page: from the `input` event of a real keystroke to the animation frame after
the one that found the answer in place, so the answer has been painted. Rounds alternate between the two pages, so
that both see the same load. Each stage is measured with the cell inspector closed and with it open. Afterwards the
explorer is watched for a while: anything that still changes on it is reported, since a page could claim to be done
too early.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, Page, sync_playwright

from tests.bench.stats import Row, compare
from tests.browser.chromium import launch
from tests.browser.server import Server

BAR = 1.25
ECHO_APP = Path(__file__).with_name("echo_app.py")
WARM_UP = 5
LATE_MS = 250

ARM = """
    ([done, seen]) => {
        const answered = new Function('start', 'return ' + done);
        window.timed = new Promise(finish => addEventListener('input', event => {
            const start = performance.now(), before = seen ? Number(document.querySelector(seen).dataset.seq) : 0;
            const frame = () => answered({before, typed: event.target.value})
                ? requestAnimationFrame(() => finish({ms: performance.now() - start, at: performance.now()}))
                : requestAnimationFrame(frame);
            requestAnimationFrame(frame);
        }, {once: true, capture: true}));
    }
"""
ROOT = "[data-ready]"
EXPLORER_DONE = f"Number(document.querySelector('{ROOT}').dataset.seq) > start.before"
ECHO_DONE = "document.querySelector('#heard textarea, #heard input').value === start.typed"
# The last change of the page after an answer was said to be painted, in milliseconds after it; -1 for none.
WATCH_LATE = f"""
    wait => new Promise(finish => {{
        const begin = performance.now(); let last = -1;
        const watch = new MutationObserver(() => {{ last = performance.now() - begin; }});
        watch.observe(document.querySelector('{ROOT}'),
                      {{subtree: true, childList: true, characterData: true, attributes: true}});
        setTimeout(() => {{ watch.disconnect(); finish(last); }}, wait);
    }})
"""
FIRST_EDITABLE = """
    () => {
        const cells = [...document.querySelectorAll('input[data-q][data-i]')].filter(cell => cell.offsetParent);
        const chosen = cells.find(c => c.dataset.q === 'resid_pre' && c.dataset.i === '0,0,1') ?? cells[0];
        return chosen ? [chosen.dataset.q, chosen.dataset.i] : null;
    }
"""


def keystroke(page: Page, selector: str, digit: str, done: str, seen: str | None) -> float:
    """Milliseconds from the input event to paint, after replacing what the field says by one digit."""
    page.locator(selector).focus()  # no click, which would open the inspector
    page.keyboard.press("ControlOrMeta+a")
    page.evaluate(ARM, [done, seen])
    page.keyboard.press(digit)
    return float(page.evaluate("() => window.timed.then(answer => answer.ms)"))


def open_stage(browser: Browser, url: str, stage: int, inspector: bool) -> tuple[Page, str, str]:
    """The default view at a stage, with the selector and name of the cell to edit there, which has the focus."""
    page = browser.new_context(viewport={"width": 1280, "height": 720}).new_page()
    page.goto(url)
    page.wait_for_selector("[data-ready=true]")
    page.locator(f'button[data-stage="{stage}"]').click()
    page.wait_for_timeout(500)
    chosen = page.evaluate(FIRST_EDITABLE)
    if chosen is None:
        raise RuntimeError(f"stage {stage} shows no editable cell")
    q, index = chosen
    selector = f'[data-q="{q}"][data-i="{index}"]'
    page.locator(selector).click()
    page.wait_for_timeout(500)
    if not inspector:
        page.keyboard.press("Escape")
        page.wait_for_timeout(500)
    if page.locator("[data-inspector]").is_visible() != inspector:
        raise RuntimeError(f"stage {stage}: the inspector is not as wanted")
    return page, selector, f"{q}[{index}]{', inspector open' if inspector else ''}"


def measure_stage(
    browser: Browser, url: str, echo: Page, stage: int, rounds: int, inspector: bool
) -> tuple[list[float], list[float], Row]:
    page, selector, name = open_stage(browser, url, stage, inspector)
    ours, floor, late = [], [], []
    for i in range(WARM_UP + rounds):
        digit = "2345678"[i % 7]
        floor.append(keystroke(echo, "#said textarea, #said input", digit, ECHO_DONE, None))
        ours.append(keystroke(page, selector, digit, EXPLORER_DONE, ROOT))
        late.append(page.evaluate(WATCH_LATE, LATE_MS))
    cells = page.locator("[data-q][data-i]").count()
    page.context.close()
    ours, floor, late = ours[WARM_UP:], floor[WARM_UP:], late[WARM_UP:]
    notes = {"cells": cells, "changed later in": f"{sum(x >= 0 for x in late)} of {rounds}"}
    if max(late) >= 0:
        notes["latest"] = f"+{max(late):.0f} ms"
    return ours, floor, compare("a", f"stage {stage}, {name}", ours, floor, bar=BAR, unit="ms", notes=notes)


def measure(rounds: int) -> list[Row]:
    """Two rows for each stage view and one over all; `rounds` keystrokes a row after a short warm-up."""
    rows, all_ours, all_floor = [], [], []
    with (
        TemporaryDirectory() as folder,
        Server(Path(folder) / "app.log") as app,
        Server(Path(folder) / "echo.log", script=ECHO_APP) as echo_app,
        sync_playwright() as playwright,
    ):
        browser = launch(playwright)
        echo = browser.new_context(viewport={"width": 1280, "height": 720}).new_page()
        echo.goto(echo_app.url)
        echo.wait_for_selector("#said")
        for stage, inspector in product(range(1, 9), (False, True)):
            ours, floor, row = measure_stage(browser, app.url, echo, stage, rounds, inspector)
            rows.append(row)
            all_ours += ours
            all_floor += floor
        browser.close()
    return [*rows, compare("a", "all stages", all_ours, all_floor, bar=BAR, unit="ms")]
