"""Errors of a user's own code, in one line that says where."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import elastream
from elastream.errors import ElastreamError, InvalidInputError, described

_NOT_THEIRS = (str(Path(elastream.__file__).parent), sysconfig.get_path("stdlib"), "<")
"""Files of elastream and of Python itself."""


@contextmanager
def users_code(what: str, remedy: str = "") -> Iterator[None]:
    """Whatever it raises is the user's mistake; the error says where, what failed, and a remedy.

    >>> with users_code("the operator 'price' fails", "declare its execution_time"):
    ...     {}["pieces"]
    Traceback (most recent call last):
    elastream.errors.InvalidInputError: the operator 'price' fails: KeyError: 'pieces'; \
declare its execution_time
    """
    try:
        yield
    except ElastreamError:
        raise
    except Exception as error:
        cause: Exception = error
        while isinstance(cause, ExceptionGroup):
            cause = cause.exceptions[0]
        if isinstance(cause, SyntaxError):  # As text, it repeats the place.
            told = f"SyntaxError: {cause.msg}"
        else:
            told = described(cause).partition("\n")[0]
        place, end = _place(cause), f"; {remedy}" if remedy else ""
        raise InvalidInputError(f"{place}{what}: {told}{end}") from error


def _place(error: Exception) -> str:
    """The last line of the user's file that led there; libraries behind it are of no help."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}: "
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(_NOT_THEIRS)
    ]
    theirs = [frame for frame in frames if frame.filename == frames[0].filename]
    return f"{theirs[-1].filename}:{theirs[-1].lineno}: " if theirs else ""
