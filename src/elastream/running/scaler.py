"""The handle of an attached query."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING

from elastream.control import ControlLoop, Cycle
from elastream.core.batches import BatchModel
from elastream.errors import described

if TYPE_CHECKING:
    from elastream.engines.attached.engine import AttachedEngine

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Status:
    """The status of an attached query."""

    query: str
    running: bool
    """Whether the query is running."""
    executors: int
    """How many there are now."""
    wanted: int
    """How many there should be in total."""
    rows_per_second: float
    """How many rows arrive per second."""
    lead_time: float
    """The lead time of executors, as measured, in seconds."""
    model: BatchModel | None
    """How long a batch takes, as far as it is known."""
    batch_seconds: Mapping[str, float]
    """How long the parts of the newest batch took, by the names that Spark gives them."""
    last: Cycle | None
    """The newest decision."""
    problem: str
    """What keeps executors from being scaled; empty when nothing does."""

    def __str__(self) -> str:
        if not self.running:
            return (
                f"{self.query}: not running, {self.executors} executors are there; scaling "
                "continues when the query is started again"
            )
        known = f"{self.model.trust:.0%} of batches predicted" if self.model else "no model yet"
        words = (
            f"{self.query}: {self.executors} executors, {self.wanted} wanted, "
            f"{self.rows_per_second:,.0f} rows/s, {known}"
        )
        return f"{words}; {self.problem}" if self.problem else words


class Scaler:
    """Scales the executors of one query until you stop it; `attach` returns it."""

    def __init__(
        self,
        engine: AttachedEngine,
        loop: ControlLoop,
        release: Callable[[bool], None],
        url: str | None,
    ) -> None:
        self.engine = engine
        self.loop = loop
        self.url = url
        """Where its page is."""
        self._release = release
        self._last: Cycle | None = None
        self._problem = ""
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="elastream-attach", daemon=True)
        self._thread.start()

    def status(self) -> Status:
        """The current status."""
        fleet, running = self.engine.fleet, self.engine.view.running
        present = len(fleet.present)
        watching = self.engine.problem if running else ""
        return Status(
            query=self.engine.name,
            running=running,
            executors=present,
            wanted=fleet.target or present,
            rows_per_second=self.engine.record.rate,
            lead_time=fleet.lead_time,
            model=self.engine.record.model,
            batch_seconds=self.engine.record.parts,
            last=self._last,
            problem=self._problem or fleet.problem or watching,
        )

    def stop(self, restore: bool = False) -> None:
        """Stop scaling; the query keeps running. A second call does nothing.

        Args:
            restore: Whether to return to the number of executors at the start; otherwise they stay
                as they are.
        """
        if self._stopped:
            return
        self._stopped = True
        self.loop.interrupt()
        self._thread.join()
        self.engine.close()
        self._release(restore)

    def __enter__(self) -> Scaler:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            for cycle in self.loop.run():
                told = not cycle.is_quiet_after(self._last)
                self._last = cycle
                kind = "advice: " if self.loop.steering.settings.advice_only else ""
                for change in cycle.changes if told else ():
                    log.info("%s%s", kind, change)
        except Exception as error:  # The query must never fail because of us.
            self._problem = f"scaling has ended: {described(error)}"
            log.exception("scaling has ended; the query keeps running with the executors it has")
