"""Who scales the executors of an application: two at once would undo what the other one does."""

from __future__ import annotations

import threading

from elastream.errors import InvalidInputError

_claimed: dict[str, str] = {}
"""By application: who scales its executors."""
_lock = threading.Lock()


class Claim:
    """The right to scale the executors of an application, until it ends.

    >>> claim = Claim("app-1", "a pipeline")
    >>> Claim("app-1", "an attached query")
    Traceback (most recent call last):
    elastream.errors.InvalidInputError: a pipeline scales the executors of this session already: \
give executors= to one run or to attached queries, or use another session
    >>> claim.end()
    """

    def __init__(self, application: str, who: str) -> None:
        self._application = application
        with _lock:
            if application in _claimed:
                raise InvalidInputError(
                    f"{_claimed[application]} scales the executors of this session already: give "
                    "executors= to one run or to attached queries, or use another session"
                )
            _claimed[application] = who

    def end(self) -> None:
        """Let others scale them."""
        with _lock:
            _claimed.pop(self._application, None)
