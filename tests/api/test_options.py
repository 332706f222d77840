"""The options of a server, and the limits that they set."""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from explorer import PRESETS, RunSpec, SpecError
from explorer.limits import LIMITS, Limits, read_limits
from explorer.offers import OFFERS
from explorer.spec import fit_presets
from explorer.ui import access, mailbox, options
from tests.browser.server import ROOT
from tests.small_checkpoint import write_checkpoint


def asked(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    options.add_options(parser)
    return parser.parse_args(words)


@pytest.fixture
def _as_before() -> object:
    """Limits, presets, offers and log handlers as they were, whatever a test does."""
    limits, offers, handlers = dict(vars(LIMITS)), dict(OFFERS), list(access.LOG.handlers)
    yield
    vars(LIMITS).update(limits)
    fit_presets()
    OFFERS.clear()
    OFFERS.update(offers)
    for handler in set(access.LOG.handlers) - set(handlers):
        access.LOG.removeHandler(handler)
        handler.close()
    mailbox.start("off")


@pytest.mark.usefixtures("_as_before")
def test_limits_hold_from_then_on_and_presets_follow() -> None:
    RunSpec(T=40, weights="random")
    options.apply(asked("--limits", "T=32, B=2,edits=1"))
    assert (LIMITS.T, LIMITS.B, LIMITS.edits) == (32, 2, 1)
    with pytest.raises(SpecError, match="T = 40 is out of range"):
        RunSpec(T=40, weights="random")
    assert list(PRESETS) == ["toy", "capstone", "gqa"]


@pytest.mark.usefixtures("_as_before")
def test_a_checkpoint_is_offered_under_its_name_and_a_log_begun(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    options.apply(asked("--checkpoint", str(write_checkpoint(tmp_path / "tiny")), "--log", str(log)))
    assert OFFERS["tiny"].layers == 2
    with access.noted("trace") as call:
        call.outcome = "refused"
    assert '"endpoint": "trace"' in log.read_text()


@pytest.mark.usefixtures("_as_before")
def test_two_checkpoints_of_one_name_are_refused(tmp_path: Path) -> None:
    one, other = (str(write_checkpoint(tmp_path / part / "small")) for part in "ab")
    options.apply(asked("--checkpoint", one, "--checkpoint", f"{one}/"))
    with pytest.raises(ValueError) as error:
        options.apply(asked("--checkpoint", one, "--checkpoint", other))
    assert str(error.value) == (f"--checkpoint {other}: 'small' is the name of {one} already. Rename one of the two.")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--limits", "T"), "--limits: The limit 'T' has no value. Write limits as NAME=NUMBER"),
        (("--limits", "T=many"), "--limits: Limit T = 'many' is no number from 2 on."),
        (("--limits", "T=1"), "--limits: Limit T = '1' is no number from 2 on."),
        (("--limits", "tokens=3"), "--limits: There is no limit 'tokens'. Limits: B, T,"),
        (("--checkpoint", "/nowhere"), "--checkpoint /nowhere: /nowhere does not exist"),
        (("--mailbox", "/nowhere"), "--mailbox: /nowhere cannot hold it: [Errno 2] No such file"),
        (("--log", "/nowhere/log"), "--log /nowhere/log: it cannot be written: No such file"),
    ],
)
def test_a_wrong_option_says_what_is_wrong(words: tuple[str, ...], says: str) -> None:
    with pytest.raises(ValueError) as error:
        options.apply(asked(*words))
    assert str(error.value).startswith(says)


def test_mcp_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"--mcp: one more package is needed: pip install 'gradio\[mcp\]'\."):
        options.apply(asked("--mcp"))


def test_limits_as_text() -> None:
    assert read_limits("") == {}
    assert read_limits(" T=256 ,B=4,") == {"T": "256", "B": "4"}
    limits = Limits()
    limits.update({"flops": "1e9", "T": "64"})
    assert (limits.flops, limits.T, type(limits.T)) == (1e9, 64, int)


def test_limits_from_the_environment_start_a_smaller_explorer() -> None:
    code = "from explorer import PRESETS; from explorer.limits import LIMITS; print(LIMITS.T, *PRESETS)"
    environment = os.environ | {"EXPLORER_LIMIT_T": "16"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["16", "toy", "capstone", "gqa"]


@pytest.mark.parametrize(
    ("flags", "environment", "says"),
    [
        (["--port", "99999"], {}, "'99999' is no port. Choose a number from 1 to 65535."),
        (["--port", "TAKEN"], {}, "it is taken, or no address of this machine. Choose another --port or --host."),
        ([], {"EXPLORER_LIMIT_T": "abc"}, "Limit T = 'abc' is no number from 2 on."),
        ([], {"EXPLORER_LIMIT_NOPE": "2"}, "There is no limit 'NOPE'. Limits: B, T"),
    ],
)
def test_what_keeps_a_server_from_starting_is_said_in_a_sentence(
    flags: list[str], environment: dict[str, str], says: str
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        flags = [str(taken.getsockname()[1]) if flag == "TAKEN" else flag for flag in flags]
        done = subprocess.run(
            [sys.executable, str(ROOT / "app.py"), *flags], cwd=ROOT, env=os.environ | environment,
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
    assert done.returncode != 0
    assert says in done.stderr
    assert "Traceback" not in done.stderr
