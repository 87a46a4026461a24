"""From what a user types to a trace: the name of one that is shipped, or a CSV file."""

from __future__ import annotations

from pathlib import Path

from elastream.errors import InvalidInputError
from elastream.workloads import TRACES
from elastream.workloads.traces import Trace, load_trace


def chosen_trace(name_or_file: str, seed: int = 0, fill_gaps: bool = False) -> Trace:
    """The trace of that name, made with this seed, or else the one in that file.

    Gaps in a file are refused, or filled with `fill_gaps`.

    >>> len(chosen_trace("spiky").values)
    1301
    """
    if seed < 0:
        raise InvalidInputError(f"the seed {seed}: it must be 0 or more")
    if name_or_file in TRACES:
        return TRACES[name_or_file](seed=seed)
    path = Path(name_or_file)
    if not path.exists():
        raise InvalidInputError(
            f"{name_or_file}: there is no such file, and no trace of that name; "
            f"there are {', '.join(TRACES)}"
        )
    return load_trace(path, fill_gaps)
