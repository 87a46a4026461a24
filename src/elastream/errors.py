"""Every error that elastream raises on purpose.

```
ElastreamError
├── InvalidInputError         a value that a user gave is invalid              (also a ValueError)
│   ├── InvalidTopologyError  a pipeline that cannot run as declared
│   ├── InvalidSettingError   a value that a running pipeline cannot be set to
│   └── UnknownNameError      a name that is in no catalogue                   (also a LookupError)
├── MissingExtraError         an optional dependency is not installed          (also an ImportError)
├── NotReadyError             there is not enough data yet; try again later
├── RunOverError              the run to be steered has ended
├── BackendUnavailableError   the state of a run cannot be read or written now, which may pass
└── EngineError               an engine could not do its work
```

A message names the thing, the place and the remedy. The command line prints it without a stack
trace and ends with exit code 2, or 1 for the last two, which are not the user's mistake.
"""

from __future__ import annotations

import re
import sysconfig
import traceback
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

_NOT_THEIRS = (str(Path(__file__).parent), sysconfig.get_path("stdlib"), "<")
"""Files of elastream and of Python itself."""


def described(error: Exception) -> str:
    """An error that is not ours, in one line.

    >>> described(ValueError("no number"))
    'ValueError: no number'
    >>> described(ExceptionGroup("of an async function", [KeyError("id"), ValueError("no number")]))
    "KeyError: 'id'"
    """
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


def place_of(error: BaseException) -> str:
    """FILE:LINE of the user's code that led to an error, or nothing if none did.

    It is the last line of the file that was called first: libraries behind it are of no help.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(_NOT_THEIRS)
    ]
    theirs = [frame for frame in frames if frame.filename == frames[0].filename]
    return f"{theirs[-1].filename}:{theirs[-1].lineno}" if theirs else ""


def without_numbers(text: str) -> str:
    """The first line with every number as `#`, so that errors that differ in nothing else are one.

    >>> without_numbers("KeyError: 'order 4,711' at 0x7f3a, row 12")
    "KeyError: 'order #' at #, row #"
    """
    return re.sub(r"0x[0-9a-fA-F]+|\d+(?:[.,]\d+)*", "#", text.partition("\n")[0])


class ElastreamError(Exception):
    """The root of the tree."""


class InvalidInputError(ElastreamError, ValueError):
    """A value that a user gave is invalid."""


class InvalidTopologyError(InvalidInputError):
    """A pipeline that cannot run as declared."""


class InvalidSettingError(InvalidInputError):
    """A value that a running pipeline cannot be set to; nothing was changed.

    >>> raise InvalidSettingError("td", "0 s: it must be above 0")
    Traceback (most recent call last):
    elastream.errors.InvalidSettingError: td: 0 s: it must be above 0
    """

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class UnknownNameError(InvalidInputError, LookupError):
    """A name that is in no catalogue.

    >>> raise UnknownNameError("policy", "pa-spa", ["pa-sps", "static"])
    Traceback (most recent call last):
    elastream.errors.UnknownNameError: unknown policy 'pa-spa': did you mean 'pa-sps'? \
There are: pa-sps, static
    """

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        close = get_close_matches(name, names, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        super().__init__(f"unknown {kind} {name!r}: {hint}There are: {', '.join(names) or 'none'}")


class MissingExtraError(ElastreamError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs an extra: pip install 'elastream[{extra}]'")


class NotReadyError(ElastreamError):
    """There is not enough data yet; this is not a failure, and will pass."""


class RunOverError(ElastreamError):
    """The run to be steered has ended."""


class BackendUnavailableError(ElastreamError):
    """The state of a run cannot be read or written now, for a reason that may pass.

    For instance, the disk is full, or a broker is restarted. Nothing has happened: try again.
    """


class EngineError(ElastreamError):
    """An engine could not do its work; the message says what, and what to look at."""
