"""The driver's share of the work on the file: moving what was committed out of the log.

SQLite would let whichever member commits next do it, and wait for the disk meanwhile. Hardly
anybody waits for the driver's thread.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

from elastream.engines.spark.backends.sqlite.database import FILE

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.25
LONG_LOG = 8_000
"""Pages. A log that grows slowly is begun anew when it is longer: then writers wait briefly."""
FLOOD = 24 << 20
"""Bytes by which the log grows from one look to the next, if there is a flood. Most pages of such a
log change again and again, so it is left to grow, which saves writing them."""
LARGEST_LOG = 128 << 20
"""Bytes. A log that is longer is cut, and writers wait until the disk has done so."""
PATIENCE_SECONDS = 0.05
"""How long writers wait at most for readers of the log."""


class Checkpointer:
    """A thread that keeps the log short, as long as it is entered.

    Args:
        folder: The state folder.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE
        self._log = folder / f"{FILE}-wal"
        self._size = self._written = 0
        """How large the log was when we last looked, and when it was written to."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="checkpointer", daemon=True)

    def __enter__(self) -> Checkpointer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        failing = False
        while not self._stop.wait(LOOK_SECONDS):
            try:
                self.look()
            except (OSError, sqlite3.Error) as error:  # Members do it, if the log gets too long.
                if not failing:
                    log.warning("the log of %s cannot be shortened now: %s", self._file, error)
                failing = True
            else:
                failing = False

    def look(self) -> None:
        """Copy what is new in the log to the file; begin it anew when it is long."""
        try:
            found = self._log.stat()
        except FileNotFoundError:
            return
        grown, self._size = found.st_size - self._size, found.st_size
        if found.st_size > LARGEST_LOG:
            self.cut()
        elif grown <= FLOOD and found.st_mtime_ns != self._written:
            self._written = found.st_mtime_ns
            if self.copy() > LONG_LOG:
                self.begin_anew()

    def copy(self) -> int:
        """Copy the log to the file, while others write; returns how many pages the log has.

        0 if somebody still reads what was there before: writers would have to wait for that reader.
        """
        _, pages, copied = self._checkpoint("PASSIVE")
        return pages if copied == pages else 0

    def begin_anew(self) -> None:
        """Copy the rest while writers wait; the next one writes to the beginning of the log."""
        self._checkpoint("RESTART")

    def cut(self) -> None:
        """Empty the log: most of it while others write, and only the rest while they wait."""
        for mode in ("PASSIVE", "PASSIVE", "TRUNCATE"):
            self._checkpoint(mode)

    def _checkpoint(self, mode: str) -> tuple[int, int, int]:
        """Whether somebody was in the way, how many pages the log has, and how many were copied."""
        with closing(
            sqlite3.connect(self._file, timeout=PATIENCE_SECONDS, isolation_level=None)
        ) as db:
            told: tuple[int, int, int] = db.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
        return told
