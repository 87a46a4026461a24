"""While a file is imported for the pipeline in it, what it calls must not start anything.

`elastream explain FILE.py:NAME` imports files for that, and so do Spark's workers, where functions
are known by the name of their module. A program that runs its pipeline as soon as it is imported
would start Spark in every worker, each of which has workers, too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from traceback import walk_stack

from elastream.errors import InvalidInputError

_OURS = f"{Path(__file__).parent}{os.sep}"
_importing = ContextVar("_importing", default=False)


@contextmanager
def only_importing() -> Iterator[None]:
    """In this block, files are imported, and nothing else; in forked processes, too."""
    token = _importing.set(True)
    try:
        yield
    finally:
        _importing.reset(token)


def check_not_importing(what: str) -> None:
    """Raise an error, with the place of the call, if this is called while a file is imported."""
    if not _importing.get():
        return
    calls = ((frame.f_code.co_filename, line) for frame, line in walk_stack(sys._getframe()))
    file, line = next(call for call in calls if not call[0].startswith(_OURS))
    raise InvalidInputError(
        f"{file}:{line}: {what} is called when the file is imported: start this program with "
        f"'python {file}', or put the call, and what needs it, under if __name__ == '__main__'"
    )
