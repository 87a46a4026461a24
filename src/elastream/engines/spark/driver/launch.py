"""Spark's Java process, started so that Ctrl-C leaves none behind.

PySpark waits for a file in which the process says where it listens. If Ctrl-C ends that wait, the
folder of the file goes, the process cannot write it, and never ends.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark import SparkConf, SparkContext


def launch(settings: Mapping[str, str]) -> None:
    """Start the process with these settings, unless this program has one."""
    with interrupts_held():
        # PySpark has no public way to start it without a session, which may take minutes to come.
        SparkContext._ensure_initialized(conf=SparkConf().setAll(list(settings.items())))


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Let Ctrl-C wait for the end of the block."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is None:
        yield
        return
    pressed = threading.Event()
    signal.signal(signal.SIGINT, lambda number, frame: pressed.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if pressed.is_set():
            signal.raise_signal(signal.SIGINT)
