"""An engine that restarts the pipeline for every change, as DABS-Storm's does."""

from __future__ import annotations

import logging
from threading import Lock, Timer
from typing import Any

from elastream.core.decision import Plan
from elastream.engines.spark.driver.engine import SparkEngine

log = logging.getLogger(__name__)

RETRY_SECONDS = 0.5
"""How long a restart waits if it could not be completed, for instance because the disk is full."""


class RestartingEngine(SparkEngine):
    """For a while after every change nothing is processed; what waits then and comes is lost.

    The workers themselves stay: restarting them takes Spark seconds, and a downtime that is
    given can be played faster or slower with the trace. What is lost is counted as dropped.

    Args:
        downtime: How long a restart takes, in seconds.
        engine: All arguments of `SparkEngine`.
    """

    def __init__(self, *engine: Any, downtime: float, **settings: Any) -> None:
        super().__init__(*engine, **settings)
        self._downtime = downtime
        self._changing = Lock()
        self._restart: Timer | None = None

    def apply(self, plan: Plan) -> None:
        """Restart with the plan if it changes anything."""
        self._check_plan(plan)
        wanted = self._placement.wanted
        if all(wanted[name] == count for name, count in plan.replicas.items()):
            return
        with self._changing:
            self._check_open()
            if self._restart:
                self._restart.cancel()
            try:
                self._placement.halt(True)
                super().apply(plan)
                self._drop_waiting()
            finally:
                self._be_up_again_in(self._downtime)

    def close(self) -> None:
        """Stop all workers."""
        with self._changing:
            if self._restart:
                self._restart.cancel()
            super().close()

    def _be_up_again_in(self, seconds: float) -> None:
        self._restart = Timer(seconds, self._up_again)
        self._restart.daemon = True
        self._restart.start()

    def _up_again(self) -> None:
        with self._changing:
            if self._closed:
                return
            try:
                self._drop_waiting()
                self._placement.halt(False)
            except Exception:
                # Nobody else would start the replicas again.
                log.exception("the restart could not be completed; trying again")
                self._be_up_again_in(RETRY_SECONDS)

    def _drop_waiting(self) -> None:
        if self._ownership.lost:  # What waits is another driver's.
            return
        for name in self.topology.by_name:
            self.backend.clear(name)
