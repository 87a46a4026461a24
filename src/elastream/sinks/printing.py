"""A sink that prints events to the worker's standard error, for trying things out."""

from __future__ import annotations

import json
import sys
from typing import Any


class Print:
    """Prints every event as one line of JSON to standard error, and passes it on.

    On one machine, that is the standard error of your program; on a cluster, it is in the log of
    the executor. Events are printed at least once.
    """

    __name__ = "print"

    def __call__(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Print them."""
        lines = [json.dumps(row, default=str) + "\n" for row in rows]
        sys.stderr.write("".join(lines))
        sys.stderr.flush()
        return rows
