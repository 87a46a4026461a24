"""Who scales the executors of an application: two at once would undo what the other one does."""

from __future__ import annotations

import threading

from elastream.errors import InvalidInputError

_claims: dict[str, Claim] = {}
"""By application."""
_lock = threading.Lock()


class Claim:
    """The right to scale the executors of an application, until it ends.

    >>> claim = Claim("app-1", "a pipeline")
    >>> Claim("app-1", "an attached query")
    Traceback (most recent call last):
    elastream.errors.InvalidInputError: a pipeline scales the executors of this session already: \
give executors= to one run or to attached queries, or use another session
    >>> claim.restoring = True
    >>> Claim("app-1", "an attached query")
    Traceback (most recent call last):
    elastream.errors.InvalidInputError: the executors of this session are going back to what they \
were, because a scaler was stopped with restore=True: try again when that call of stop has returned
    >>> claim.end()
    """

    def __init__(self, application: str, who: str) -> None:
        self.restoring = False
        """Whether it ends as soon as there are as many executors as before."""
        self._application = application
        self._who = who
        with _lock:
            if application in _claims:
                raise InvalidInputError(_claims[application]._refusal())
            _claims[application] = self

    def end(self) -> None:
        """Let others scale them."""
        with _lock:
            if _claims.get(self._application) is self:
                del _claims[self._application]

    def _refusal(self) -> str:
        if self.restoring:
            return (
                "the executors of this session are going back to what they were, because a scaler "
                "was stopped with restore=True: try again when that call of stop has returned"
            )
        return (
            f"{self._who} scales the executors of this session already: give executors= to one run "
            "or to attached queries, or use another session"
        )
