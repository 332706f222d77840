"""Calls that wait for their asker's stream, which may come to another server of this machine.

Purpose: `Mailbox`, a small SQLite file that the servers of one machine share, and `start`, which finds its place.
Must not know: what is asked. No cookie and no address of a visitor is kept; a row goes when it is taken, or after OLD
seconds when its asker has left, and what is deleted is overwritten.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import stat
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

VARIABLE = "EXPLORER_MAILBOX"
OFF = "off"
FILE = "calls-1.sqlite"  # a later form of the table takes a later number
MOST = 64  # calls that wait, of all visitors
OLD = 30  # seconds until a call that nobody comes for is thrown away
SETTINGS = ("journal_mode = TRUNCATE", "synchronous = OFF", "secure_delete = ON")  # it need not outlive the machine
TABLE = "CREATE TABLE IF NOT EXISTS calls (session TEXT NOT NULL, event TEXT NOT NULL, body TEXT NOT NULL, at REAL)"
PUT = "INSERT INTO calls SELECT ?, ?, ?, ? WHERE (SELECT count(*) FROM calls) < ? RETURNING event, at"
TAKE = "DELETE FROM calls WHERE session = ? RETURNING event, body"

log = logging.getLogger(__name__)
in_use: Mailbox | None = None


class Mailbox:
    """The file in `folder`, for the thread that serves. Raises OSError and sqlite3.Error."""

    def __init__(self, folder: Path, most: int = MOST) -> None:
        self._path, self.most = folder / FILE, most
        self._open()

    def _open(self) -> None:
        os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        self._calls = sqlite3.connect(self._path, timeout=2, isolation_level=None, check_same_thread=False)
        for setting in SETTINGS:
            self._calls.execute(f"PRAGMA {setting}")
        self._calls.execute(TABLE)
        self._file = _identity(self._path)

    def _do(self, statement: str, *values: object) -> list[tuple[str, str]]:
        """What comes of a statement. Temporary folders are cleared now and then: then it begins with a new file."""
        if _identity(self._path) != self._file:
            self.close()
            self._path.parent.mkdir(mode=0o700, exist_ok=True)
            self._open()
        return self._calls.execute(statement, values).fetchall()

    def put(self, session: str, event: str, body: str) -> bool:
        """Whether there was room for one more call."""
        self.clear()
        return bool(self._do(PUT, session, event, body, time.time(), self.most))

    def clear(self) -> None:
        """Throw away the calls that nobody came for."""
        now = time.time()
        self._do("DELETE FROM calls WHERE at NOT BETWEEN ? AND ?", now - OLD, now + OLD)

    def take(self, session: str) -> list[tuple[str, str]]:
        """(event, body) of each call that waits for this session's stream, and of no other: nobody gets them twice."""
        waiting = self._do("SELECT event, body FROM calls WHERE session = ? LIMIT 1", session)
        return self._do(TAKE, session) if waiting else []

    def close(self) -> None:
        """The file stays, for the others."""
        self._calls.close()


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file lies there, whatever its name."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def start(asked: str | None, environment: Mapping[str, str] = os.environ) -> None:
    """Use the mailbox in the folder that is asked for, else in one of this user's own, from now on; or none.

    A Space has one server and needs none. Raises ValueError where the folder that is asked for cannot be used.
    """
    global in_use
    where = asked or environment.get(VARIABLE) or (OFF if environment.get("SPACE_ID") else "")
    if in_use:
        in_use.close()
    in_use = None
    if where == OFF:
        return
    try:
        in_use = Mailbox(Path(where) if where else _own_folder())
    except (OSError, sqlite3.Error) as error:
        if where:
            raise ValueError(f"{where} cannot hold it: {error}. Give a folder that exists, or {OFF}.") from None
        log.warning("no mailbox: %s", error)


def _own_folder() -> Path:
    """A folder that nobody else can read. Raises OSError where somebody else made it."""
    user = os.getuid() if hasattr(os, "getuid") else "own"
    folder = Path(tempfile.gettempdir()) / f"minimind-explorer-{user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if user != "own" and (
        not stat.S_ISDIR(found.st_mode) or found.st_uid != user or stat.S_IMODE(found.st_mode) & 0o77
    ):
        raise PermissionError(f"{folder} is not this user's alone")
    return folder
