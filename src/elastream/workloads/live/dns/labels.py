"""Labels of random characters, for whole batches at once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from elastream.core.hashing import mix
from elastream.workloads.live.draws import Draws

_LONGEST = 64


def random_labels(
    draws: Draws, aspect: str, alphabet: str, shortest: int, longest: int
) -> pa.Array:
    """One label per number, with `shortest` to `longest` characters of an ASCII alphabet."""
    words = np.arange(_LONGEST // 8, dtype=np.uint64)
    # Every hash gives eight characters.
    noise = mix(draws.hashes(aspect)[:, np.newaxis] + words)
    letters = np.frombuffer(alphabet.encode(), np.uint8)
    characters = letters[noise.view(np.uint8) % len(letters)]
    lengths = shortest + draws.below(f"length of {aspect}", longest - shortest + 1)
    used = np.arange(_LONGEST) < lengths[:, np.newaxis]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.StringArray.from_buffers(
        len(lengths), pa.py_buffer(offsets), pa.py_buffer(characters[used])
    )
