"""Processes whose parent has died."""

from __future__ import annotations

import os
import threading
import time
from functools import cache

LOOK_SECONDS = 1.0


@cache
def end_with_parent() -> None:
    """Let this process end soon after its parent, whatever it is doing.

    Spark's daemon ends its workers when Spark ends. When the daemon is killed with it, nobody does;
    they could not repeat or lose anything, but would work on without a driver.
    """
    parent = os.getppid()
    threading.Thread(target=_watch, args=(parent,), name="orphan watch", daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_SECONDS)
    os._exit(1)
