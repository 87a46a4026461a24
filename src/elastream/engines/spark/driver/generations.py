"""Generations of workers: one Spark query each, the next one up before the last one ends.

The workers of a new generation take their roles and set up what they need while the old ones work.
Only when all are ready does the driver start the generation: each of its members joins in the place
of the old one, which then has its commits refused and ends by itself. So events flow on while the
tasks change, and when a generation cannot start, the old one works on. A query that dies is
replaced in the same way.

Where there are not enough task slots for two generations at once, a generation lasts until its
query dies; then events wait for the next one. Where there are not even enough for one, as on a
cluster, it begins when sources and minima are ready. Spark starts the other workers when slots
become free, and the board has roles for them. But their waiting tasks would take every free slot
before the micro-batches of DataFrames do: with DataFrames, there are only as many workers as leave
slots for those, and when the number of slots changes for long, so does the generation.
"""

from __future__ import annotations

import logging
import math
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from elastream.core.health import RUNNING, Health, Restarts, State, worst
from elastream.engines.spark.backends.base import Ownership
from elastream.engines.spark.backends.board import Board
from elastream.engines.spark.driver.generation import Generation
from elastream.engines.spark.worker.deployment import Deployment
from elastream.errors import BackendUnavailableError, EngineError

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.25
READY_SECONDS = 60.0
"""How long a new generation may take to get ready while another one works."""
STOP_SECONDS = 10.0
"""How long members may take to finish what they do before their query is stopped."""
UNAVAILABLE_SECONDS = 2.0
"""From one attempt to the next while the backend can take nothing."""
RESIZE_SECONDS = 30.0
"""How long the number of slots must be another before a generation of another size replaces one: an
executor that died is often replaced sooner."""
START_ATTEMPTS = 6
CAME_TOO_LATE = "failed to connect back"
"""What Spark says when a Python process did not connect in time."""


class Generations:
    """Keeps one generation of workers alive, until it is closed.

    Args:
        session: Where they run.
        deployment: What they run.
        board: A connection's board that nobody else uses.
        seconds: How long a generation lasts.
        room: How many task slots there are for workers now.
        checkpoints: Where Spark may keep what it wants to remember of the queries; nobody resumes
            them.
        fitted: Whether there may not be more workers than slots, because DataFrames need theirs.
        ownership: Of the state. When it is lost, the members are another driver's.
    """

    def __init__(
        self,
        session: SparkSession,
        deployment: Deployment,
        board: Board,
        seconds: float,
        room: Callable[[], int],
        checkpoints: Path,
        fitted: bool = False,
        ownership: Ownership | None = None,
    ) -> None:
        self._session = session
        self._ownership = ownership or Ownership()
        self._deployment = deployment.to_text()
        self._members = deployment.members
        self._required = deployment.required
        self._board = board
        self._seconds = seconds
        self._room = room
        self._fitted = fitted
        self._checkpoints = checkpoints / "checkpoints"
        self._closed = threading.Event()
        self._ends = math.inf
        """When the generation is over; it begins when all members have joined."""
        self._fits_until = math.inf
        """When it is replaced because it has not been of the right size for long."""
        self._restarts = Restarts()
        self._waiting, self._wait_until = RUNNING, -math.inf
        """Whether the backend can take a new generation, and when it is asked again if not."""
        self._running = self._offer()
        self._thread = threading.Thread(target=self._keep, name="generations", daemon=True)

    @property
    def running(self) -> tuple[int, StreamingQuery]:
        """The number of the generation that works, and its query."""
        generation = self._running
        return generation.number, generation.query

    def health(self) -> Health:
        """Failed when nobody works and attempts to change that have failed for long.

        And when another driver has taken over.
        """
        if self._ownership.lost:
            return Health(State.FAILED, self._ownership.lost)
        health = self._restarts.health
        if health.state is State.FAILED and self._running.ended() is None:
            health = Health(State.DEGRADED, health.why)
        return worst(health, self._waiting)

    def wait_until_ready(self, seconds: float) -> None:
        """Start the first generation when it is ready; an error when it cannot be."""
        if not self._started_in_time(seconds):
            required = self._running.required
            missing = len(required - self._board.ready(self._running.number))
            raise EngineError(
                f"{missing} of {len(required)} workers have not started in {seconds:g} s"
            )
        self._board.start(self._running.number)
        self._wait_for(lambda: self._taken_over(self._running), seconds)
        self._ends = time.monotonic() + self._seconds
        self._thread.start()

    def _started_in_time(self, seconds: float) -> bool:
        """Whether all that are required are ready; a query that came too late is retried.

        Spark gives the Python process that plans a query 10 s to connect.
        """
        for attempt in range(1, START_ATTEMPTS + 1):
            try:
                return self._wait_for(lambda: self._all_ready(self._running), seconds)
            except EngineError as error:
                if CAME_TOO_LATE not in str(error) or attempt == START_ATTEMPTS:
                    raise
                log.warning("Spark's Python process did not connect in time; trying again")
                self._board.abandon(self._running.number)
                self._running = self._offer()
        raise AssertionError

    def close(self) -> None:
        """Dismiss all members, give them time to finish what they do, and end the query."""
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join()
        self._end(self._running)
        shutil.rmtree(self._checkpoints, ignore_errors=True)

    def _keep(self) -> None:
        while not self._closed.wait(LOOK_SECONDS):
            try:
                self.look(time.monotonic())
            except Exception as error:
                # Nobody else looks: whatever it was, look again.
                self._fail(time.monotonic(), f"the workers cannot be looked after: {error}")

    def look(self, now: float) -> None:
        """Make sure that a generation works: start the next one when it is due or needed.

        Args:
            now: Of a clock that never goes back.
        """
        if self._ownership.lost:
            return
        ended = self._running.ended()
        alive = ended is None
        if alive and not self._is_due(now):
            if self._restarts.cause:  # Spark did not answer, and does again.
                self._restarts = self._restarts.recovered()
            return
        if ended and not self._restarts.cause:
            self._fail(now, f"the workers' query ended: {ended}")
        if now < max(self._restarts.due, self._wait_until):
            return
        if not alive and self._restarts.exhausted:
            return
        began = time.monotonic()
        try:
            self._renew()
        except BackendUnavailableError as error:
            # Not the workers' fault: it does not count against them.
            self._waiting = Health(State.WAITING, f"a new generation of workers waits: {error}")
            self._wait_until = now + (time.monotonic() - began) + UNAVAILABLE_SECONDS
            log.warning("%s", self._waiting.why)
        except Exception as error:
            # The current generation keeps working.
            took = time.monotonic() - began
            self._fail(now + took, f"a new generation of workers could not start: {error}")
        else:
            self._waiting = RUNNING
            self._restarts = self._restarts.recovered()
            self._ends = now + (time.monotonic() - began) + self._seconds
            self._fits_until = math.inf

    def _is_due(self, now: float) -> bool:
        """Whether a generation that works should be replaced."""
        if self._fitted and self._size() != self._running.workers:
            self._fits_until = min(self._fits_until, now + RESIZE_SECONDS)
        else:
            self._fits_until = math.inf
        return now >= self._fits_until or (now >= self._ends and self._overlaps())

    def _overlaps(self) -> bool:
        """Whether there are slots for two generations."""
        return self._room() >= 2 * len(self._members)

    def _size(self) -> int:
        """How many workers a generation should have now."""
        if not self._fitted:
            return len(self._members)
        return max(min(len(self._members), self._room()), len(self._required))

    def _fail(self, now: float, cause: str) -> None:
        log.error("%s", cause)
        self._restarts = self._restarts.failed(now, cause)

    def _renew(self) -> None:
        """Let the next generation take over; an error if it does not get ready."""
        old, began = self._running, time.monotonic()
        self._board.probe()
        self._report_deaths(old)
        if not self._overlaps():
            self._end(old)
        new = self._offer()
        try:
            if not self._wait_for(lambda: self._all_ready(new), READY_SECONDS):
                missing = len(new.required - self._board.ready(new.number))
                raise EngineError(f"{missing} workers were not ready after {READY_SECONDS:g} s")
            self._board.start(new.number)
        except Exception:
            with suppress(BackendUnavailableError):
                self._board.abandon(new.number)
            new.stop()
            if self._closed.is_set():
                return
            raise
        self._running = new
        with suppress(BackendUnavailableError):  # It has begun, whether or not that can be seen.
            self._wait_for(lambda: self._taken_over(new), READY_SECONDS)
        log.info("a new generation has taken over after %.1f s", time.monotonic() - began)
        old.stop()

    def _all_ready(self, generation: Generation) -> bool:
        for (name, _), error in self._board.failures(generation.number).items():
            raise EngineError(f"a replica of {name!r} cannot start: {error}")
        if ended := generation.ended():
            raise EngineError(f"the workers' query ended: {ended}")
        return self._board.ready(generation.number) >= generation.required

    def _taken_over(self, by: Generation) -> bool:
        members = self._board.members()
        return all(
            name in members and members[name].generation == by.number for name in by.required
        )

    def _report_deaths(self, generation: Generation) -> None:
        """If a query has ended by itself, its workers died at their work."""
        if generation.ended() is not None:
            members = self._board.members().items()
            died = {name: of.process for name, of in members if of.generation == generation.number}
            self._board.report_deaths(died)

    def _end(self, generation: Generation) -> None:
        """Dismiss all members, and give them time to finish what they do."""
        if self._ownership.lost:
            generation.stop()
            return
        try:
            self._report_deaths(generation)
            self._board.dismiss()
        except BackendUnavailableError as error:
            log.warning("the workers could not be dismissed, so they are stopped: %s", error)
        else:
            self._wait_for(generation.finished, STOP_SECONDS, until_closed=False)
        generation.stop()

    def _offer(self) -> Generation:
        """Start a query whose workers get ready."""
        workers = self._size()
        everybody = min(workers, self._room()) >= len(self._members)
        number = self._board.new_generation(self._members)
        required = self._members if everybody else self._required
        return Generation.started(
            self._session,
            self._deployment,
            number,
            workers,
            frozenset(required),
            self._checkpoints,
        )

    def _wait_for(
        self, condition: Callable[[], bool], seconds: float, until_closed: bool = True
    ) -> bool:
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline or (until_closed and self._closed.is_set()):
                return False
            time.sleep(0.02)
        return True
