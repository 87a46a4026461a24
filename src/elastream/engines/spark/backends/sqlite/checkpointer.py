"""The driver's share of the work on the file: moving what was committed out of the log.

SQLite would let whichever member commits next do it, and wait for the disk meanwhile. Hardly
anybody waits for the driver's thread.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from contextlib import closing, suppress
from pathlib import Path

from elastream.engines.spark.backends.sqlite.database import FILE

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.25
LARGEST_LOG = 128 << 20
"""Bytes. Most pages change again and again, so a long log saves writing them."""
PATIENCE_SECONDS = 0.05
"""How long writers wait at most for readers of the log, when it begins anew."""


class Checkpointer:
    """A thread that keeps the log short, as long as it is entered.

    Args:
        folder: The state folder.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE
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
                if self._log_size() > LARGEST_LOG:
                    self.checkpoint()
            except (OSError, sqlite3.Error) as error:  # Members do it, if the log gets too long.
                if not failing:
                    log.warning("the log of %s cannot be shortened now: %s", self._file, error)
                failing = True
            else:
                failing = False

    def _log_size(self) -> int:
        with suppress(FileNotFoundError):
            return Path(f"{self._file}-wal").stat().st_size
        return 0

    def checkpoint(self) -> None:
        """Empty the log: most of it while others write, and only the rest while they wait."""
        with closing(
            sqlite3.connect(self._file, timeout=PATIENCE_SECONDS, isolation_level=None)
        ) as db:
            for mode in ("PASSIVE", "PASSIVE", "TRUNCATE"):
                db.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
