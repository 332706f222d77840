"""The mailbox that servers of one machine share: who gets what, how much it holds, and where it may lie."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from explorer.ui import mailbox
from explorer.ui.mailbox import FILE, OLD, Mailbox

Open = Callable[..., Mailbox]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Opens a mailbox once more, as another server would."""
    with ExitStack() as all_of_them:
        yield lambda **most: all_of_them.enter_context(closing(Mailbox(tmp_path, **most)))


@pytest.fixture(autouse=True)
def _none_after() -> Iterator[None]:
    yield
    mailbox.start("off")


def test_what_one_server_puts_in_another_takes_out_once(opened: Open) -> None:
    one, other = opened(), opened()
    assert one.put("ann", "1", "first")
    assert other.put("ann", "2", "second")
    assert one.put("bob", "3", "third")
    assert other.take("ann") == [("1", "first"), ("2", "second")]
    assert one.take("ann") == other.take("ann") == other.take("nobody") == []
    assert one.take("bob") == [("3", "third")]


def test_many_servers_at_once_give_each_call_to_one(opened: Open) -> None:
    boxes = [opened(most=1000) for _ in range(4)]
    for n in range(200):
        boxes[n % 4].put("ann", str(n), "")

    def some(box: Mailbox) -> list[str]:
        return [event for _ in range(5) for event, _ in box.take("ann")]

    with ThreadPoolExecutor(4) as servers:
        taken = [event for got in servers.map(some, boxes) for event in got]
    assert sorted(map(int, taken)) == list(range(200))


def test_it_holds_so_many_and_throws_away_the_old(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    box = opened(most=2)
    assert [box.put("ann", str(n), "") for n in range(3)] == [True, True, False]
    now = time.time()
    monkeypatch.setattr(mailbox.time, "time", lambda: now + OLD + 1)
    assert box.put("bob", "4", "privatewords")
    assert box.take("ann") == []
    monkeypatch.setattr(mailbox.time, "time", lambda: now + 2 * OLD + 2)
    box.clear()
    assert box.take("bob") == []


def test_nothing_stays_of_what_was_taken(opened: Open, tmp_path: Path) -> None:
    box = opened()
    box.put("ann", "1", "privatewords")
    assert b"privatewords" in (tmp_path / FILE).read_bytes()
    box.take("ann")
    assert b"privatewords" not in (tmp_path / FILE).read_bytes()
    assert [path.name for path in tmp_path.iterdir() if path.stat().st_size] == [FILE]


@pytest.mark.skipif(os.name == "nt", reason="an open file stays")
def test_a_folder_that_was_cleared_is_begun_anew(tmp_path: Path) -> None:
    folder = tmp_path / "cleared"
    folder.mkdir()
    with closing(Mailbox(folder)) as one, closing(Mailbox(folder)) as other:
        one.put("ann", "1", "")
        shutil.rmtree(folder)
        assert other.take("ann") == []
        assert one.put("ann", "2", "")
        with closing(Mailbox(folder)) as new:
            assert new.put("ann", "3", "")
        assert [event for event, _ in other.take("ann")] == ["2", "3"]


def test_where_it_lies_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    mailbox.start(None, {})
    (folder,) = tmp_path.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / FILE).stat().st_mode) == 0o600
    assert mailbox.in_use is not None


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="a system without owners of files")
def test_a_folder_that_others_can_read_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = tmp_path / f"minimind-explorer-{os.getuid()}"
    folder.mkdir()
    folder.chmod(0o755)
    mailbox.start(None, {})
    assert mailbox.in_use is None
    folder.rmdir()
    folder.symlink_to(tmp_path)
    mailbox.start(None, {})
    assert mailbox.in_use is None


def test_it_can_be_set_and_left_out(tmp_path: Path) -> None:
    mailbox.start(str(tmp_path), {mailbox.VARIABLE: "off"})
    assert mailbox.in_use is not None
    for asked, environment in ((None, {"SPACE_ID": "a/b"}), ("off", {}), (None, {mailbox.VARIABLE: "off"})):
        mailbox.start(asked, environment)
        assert mailbox.in_use is None
    mailbox.start(None, {mailbox.VARIABLE: str(tmp_path), "SPACE_ID": "a/b"})
    assert mailbox.in_use is not None
    with pytest.raises(ValueError, match=r"/nowhere cannot hold it: .*\. Give a folder that exists, or off\."):
        mailbox.start("/nowhere", {})
