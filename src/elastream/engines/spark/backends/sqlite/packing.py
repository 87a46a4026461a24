"""Python values in columns: only the pipeline's own processes write them."""

from __future__ import annotations

import pickle
from typing import Any


def packed(value: object | None) -> bytes | None:
    """The value as it is stored; nothing stays nothing."""
    return None if value is None else pickle.dumps(value)


def unpacked(stored: bytes | None) -> Any:
    """What was packed."""
    return None if stored is None else pickle.loads(stored)
