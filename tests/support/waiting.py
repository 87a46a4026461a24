"""Waiting for what happens elsewhere."""

import time


def eventually(condition, seconds=180.0):
    """Wait until the condition is true, and return what it returned."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
    return found
