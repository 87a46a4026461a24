"""The executors of an application, and the attached queries that share them."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from elastream.engines.attached.gaps import between_batches
from elastream.engines.attached.query import queries_of_this_program
from elastream.engines.attached.warm_up import WarmUp, python_parts
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
    queries: set[str] = field(default_factory=set)
    """Those that are attached."""
    claim: Claim | None = None
    """As long as one of the queries is not only looked at."""
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
            if shared is None:
                shared = cls._of(application, session, executors)
            shared._check_not_restoring()
            bounds = shared.fleet.least, shared.fleet.most
            if bounds != executors:
                raise InvalidInputError(
                    f"attach: executors={executors}, and another query of this session shares "
                    f"them with {bounds}: give the same"
                )
            if not advice_only:
                shared._begin_to_scale(query)
            if application not in _shared:
                shared.fleet.start()
            shared.queries.add(query)
            _shared[application] = shared
        return shared

    def scale(self, query: str) -> None:
        """This query is not only looked at, from now on; raises why that cannot be.

        One that is attached with `advice_only=True` may be switched to scaling on its page.
        """
        with _lock:
            self._check_not_restoring()
            self._begin_to_scale(query)

    def leave(self, query: str, restore: bool) -> None:
        """A query is no longer scaled; the last one closes the fleet. A second call does nothing.

        Args:
            query: Its identifier.
            restore: Whether to return to the number of executors at the start, if this query has
                wanted any, no other does, and the session has not ended.
        """
        with _lock:
            if query not in self.queries:
                return
            self.queries.remove(query)
            if not restore or self.cluster.ended or not self.fleet.restore(query):
                self._end(query)
                return
            self.restoring.add(query)
            if self.claim:
                self.claim.restoring = True
        try:
            self._await_restored()
        finally:
            with _lock:
                self._end(query)

    def _end(self, query: str) -> None:
        """Close the fleet when nobody uses it any more, nor waits for it."""
        scaled = self.fleet.forget(query)
        self.restoring.discard(query)
        if self.claim and not scaled:
            self.claim.end()
            self.claim = None
        if not self.queries and not self.restoring:
            self.fleet.close()
            del _shared[self.application]

    def _begin_to_scale(self, query: str) -> None:
        if self.claim is None:  # Every plan comes here, and reading settings takes 100 calls.
            try:
                self.cluster.check_scalable()
            except InvalidInputError as error:
                raise InvalidInputError(
                    f"attach: {error}; or attach with advice_only=True, which records plans and "
                    "changes nothing"
                ) from None
            self.claim = Claim(self.application, "an attached query")
        self.fleet.join(query)

    def _check_not_restoring(self) -> None:
        if self.restoring:
            raise InvalidInputError(
                "attach: the executors of this session are going back to "
                f"{self.fleet.at_start}, because a scaler was stopped with restore=True: "
                "attach again when that call of stop has returned, which takes at most "
                f"{RESTORE_SECONDS:g} s"
            )

    @classmethod
    def _of(
        cls, application: str, session: SparkSession, executors: tuple[int, int]
    ) -> SharedExecutors:
        status = StatusStore(session.sparkContext)

        # Also those that nobody scales: an executor takes their shuffle files with it, too.
        cluster = SparkCluster(
            session,
            read_only=True,
            quiet=lambda: between_batches(status, queries_of_this_program().values()),
        )
        warm_up = WarmUp(session, cluster, lambda: python_parts(queries_of_this_program().values()))
        return cls(application, cluster, Fleet(cluster, *executors, greet=warm_up.begin))

    def _await_restored(self) -> None:
        if not self.fleet.settle(RESTORE_SECONDS):
            log.warning(
                "there are %d executors, and there were %d at the start",
                len(self.fleet.present),
                self.fleet.at_start,
            )
