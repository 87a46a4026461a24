"""The executors of an application, and the attached queries that share them."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from elastream.engines.attached.gaps import between_batches
from elastream.engines.executors.claims import Claim
from elastream.engines.executors.fleet import Fleet
from elastream.engines.executors.spark import SparkCluster
from elastream.engines.executors.status import StatusStore
from elastream.errors import InvalidInputError

log = logging.getLogger(__name__)

RESTORE_SECONDS = 60.0

_shared: dict[str, SharedExecutors] = {}
"""By application."""
_lock = threading.Lock()


@dataclass
class SharedExecutors:
    """The executors of one application."""

    application: str
    """Its identifier; a session that has ended does not tell it any more."""
    cluster: SparkCluster
    fleet: Fleet
    queries: dict[str, SparkSession] = field(default_factory=dict)
    """The attached queries, each with its session."""
    claim: Claim | None = None
    """Once one of the queries is not only looked at."""
    restoring: set[str] = field(default_factory=set)
    """The queries that have left, and wait until there are as many executors as at the start."""

    @classmethod
    def join(
        cls, session: SparkSession, query: str, executors: tuple[int, int], advice_only: bool
    ) -> SharedExecutors:
        """The executors of the session's application, which this query shares from now on."""
        application = str(session.sparkContext.applicationId)
        with _lock:
            shared = _shared.get(application)
            if shared is not None and query in shared.queries:
                raise InvalidInputError(
                    "attach: the query is already attached: stop the other scaler first"
                )
            if shared is not None and shared.restoring:
                raise InvalidInputError(
                    "attach: the executors of this session are going back to "
                    f"{shared.fleet.at_start}, because a scaler was stopped with restore=True: "
                    "attach again when that call of stop has returned, which takes at most "
                    f"{RESTORE_SECONDS:g} s"
                )
            if shared is None:
                shared = cls._of(application, session, executors)
            bounds = shared.fleet.least, shared.fleet.most
            if bounds != executors:
                raise InvalidInputError(
                    f"attach: executors={executors}, and another query of this session shares "
                    f"them with {bounds}: give the same"
                )
            if not advice_only:
                shared.check_scalable()
                shared.claim = shared.claim or Claim(application, "an attached query")
                shared.fleet.join(query)
            if application not in _shared:
                shared.fleet.start()
            shared.queries[query] = session
            _shared[application] = shared
        return shared

    def check_scalable(self) -> None:
        """Raise what has to be set first, if they cannot be scaled."""
        try:
            self.cluster.check_scalable()
        except InvalidInputError as error:
            raise InvalidInputError(
                f"attach: {error}; or attach with advice_only=True, which records plans and "
                "changes nothing"
            ) from None

    def leave(self, query: str, restore: bool) -> None:
        """A query is no longer scaled; the last one closes the fleet. A second call does nothing.

        Args:
            query: Its identifier.
            restore: Whether to return to the number of executors at the start, if no other query
                wants any.
        """
        with _lock:
            if self.queries.pop(query, None) is None:
                return
            if not self.fleet.forget(query) and restore:
                self.restoring.add(query)
        try:
            if query in self.restoring:
                self._restore(query)
        finally:
            self._end_if_last(query)

    def _end_if_last(self, query: str) -> None:
        """Close the fleet when nobody uses it any more, nor waits for it."""
        with _lock:
            self.restoring.discard(query)
            if self.queries or self.restoring or _shared.get(self.application) is not self:
                return
            self.fleet.close()
            if self.claim:
                self.claim.end()
            del _shared[self.application]

    @classmethod
    def _of(
        cls, application: str, session: SparkSession, executors: tuple[int, int]
    ) -> SharedExecutors:
        status = StatusStore(session.sparkContext)

        def quiet() -> bool:
            sessions = list(shared.queries.values())
            return between_batches(status, (one for of in sessions for one in of.streams.active))

        cluster = SparkCluster(session, read_only=True, quiet=quiet)
        shared = cls(application, cluster, Fleet(cluster, *executors))
        return shared

    def _restore(self, query: str) -> None:
        self.fleet.want(query, self.fleet.at_start)
        if not self.fleet.settle(RESTORE_SECONDS):
            log.warning(
                "there are %d executors, and there were %d at the start",
                len(self.fleet.present),
                self.fleet.at_start,
            )
        self.fleet.forget(query)
