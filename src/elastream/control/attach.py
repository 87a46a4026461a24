"""`elastream.attach`: scale the executors of an existing Structured Streaming query."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from elastream.control.history import History
from elastream.control.loop import ControlLoop, Cycle
from elastream.control.settings import Choices, Steered
from elastream.core.batches import BatchModel
from elastream.errors import InvalidInputError, MissingExtraError, described
from elastream.policies import POLICIES, Policy
from elastream.policies.guards import Guard, ScaleDownWindow, TrustedBatches
from elastream.predictors import PREDICTORS, Predictor

if TYPE_CHECKING:
    from elastream.engines.attached.engine import AttachedEngine

log = logging.getLogger(__name__)

LOOK_BACK = 100
"""How many samples a forecast sees; a predictor that can use more gets more."""
LATENCY_SECONDS = 10.0
TARGET = 0.6
"""In the simulation of a query, batches that may take 60 % of their interval keep the p99 of the
largest number of executors, for 70 % of their cost; with 75 %, the p99 is higher."""


@dataclass(frozen=True, slots=True)
class Status:
    """The status of an attached query."""

    query: str
    running: bool
    """Whether the query is running."""
    executors: int
    """How many there are now."""
    wanted: int
    rows_per_second: float
    """How many arrive."""
    lead_time: float
    """The lead time of executors, as measured, in seconds."""
    model: BatchModel | None
    """How long a batch takes, as far as it is known."""
    last: Cycle | None
    """The newest decision."""
    problem: str
    """What keeps executors from being scaled; empty when nothing does."""

    def __str__(self) -> str:
        known = f"{self.model.trust:.0%} of batches predicted" if self.model else "no model yet"
        words = (
            f"{self.query}: {self.executors} executors, {self.wanted} wanted, "
            f"{self.rows_per_second:,.0f} rows/s, {known}"
        )
        return f"{words}; {self.problem}" if self.problem else words


class Scaler:
    """Scales the executors of one query until you stop it; `attach` returns it."""

    def __init__(
        self, engine: AttachedEngine, loop: ControlLoop, release: Callable[[bool], None]
    ) -> None:
        self.engine = engine
        self.loop = loop
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
                self._last = cycle
                for change in cycle.changes:
                    log.info("%s", change)
        except Exception as error:  # The query must never fail because of us.
            self._problem = f"scaling has ended: {described(error)}"
            log.exception("scaling has ended; the query keeps running with the executors it has")


def attach(
    query: Any,
    executors: tuple[int, int] = (1, 8),
    *,
    policy: str | Policy = "deadline",
    predictor: str | Predictor = "auto",
    latency: float = LATENCY_SECONDS,
    target: float = TARGET,
    td: float | None = None,
    look_back: int = LOOK_BACK,
    guards: Sequence[Guard] | None = None,
    advice_only: bool = False,
    history: Path | str | None = None,
    choices: Callable[[float], Choices] = lambda sample: Choices(),
    record: Callable[[Cycle | Steered], object] = lambda entry: None,
) -> Scaler:
    """Scale the executors of a streaming query, from now until `stop`.

    Args:
        query: What `writeStream.start()` returned.
        executors: The minimum and the maximum. Several queries of a session share them.
        policy: Decides how many: a name, or an object.
        predictor: Forecasts the input: a name, or an object.
        latency: The latency to keep when the query has no trigger interval, in seconds.
        target: The share of its interval that a batch may take.
        td: How often to decide, in seconds. By default, twice in a trigger interval.
        look_back: How many samples the predictor sees; each is `td` long.
        guards: Limits on the policy. By default, nothing changes before the duration of batches
            can be predicted, and executors stay for two intervals after they were last needed.
        advice_only: Record plans, but do not apply them; this works on any master.
        history: A file that keeps every decision and its reasons.
        choices: What people may switch to while it runs, for samples of that length.
        record: Called with every cycle.

    Returns:
        A handle: `status()`, `stop()`, and a context manager.

    Examples:
        >>> query = frame.writeStream.trigger(processingTime="10 seconds").start()  # doctest: +SKIP
        >>> with attach(query, executors=(1, 8)) as scaler:  # doctest: +SKIP
        ...     query.awaitTermination()
    """
    try:
        from elastream.engines.attached.engine import AttachedEngine
        from elastream.engines.attached.query import session_of
        from elastream.engines.attached.sharing import SharedExecutors
    except ImportError:
        raise MissingExtraError("attach", "spark") from None
    _check(latency, target)
    decides = POLICIES[policy]() if isinstance(policy, str) else policy
    forecasts = PREDICTORS[predictor]() if isinstance(predictor, str) else predictor
    session = session_of(query)
    with ExitStack() as undo:
        shared = SharedExecutors.join(session, str(query.id), executors, advice_only)
        undo.callback(shared.leave, str(query.id), False)
        recorded = History(Path(history)) if history else None
        if recorded:
            undo.callback(recorded.close)
        engine = AttachedEngine(
            session,
            query,
            shared.fleet,
            objective=latency,
            target=target,
            sample=td,
            check=shared.check_scalable,
        )
        undo.callback(engine.close)
        usual = (TrustedBatches(), ScaleDownWindow(2 * engine.record.every))
        loop = ControlLoop(
            engine,
            decides,
            forecasts,
            td=engine.sample,
            guards=usual if guards is None else guards,
            look_back=look_back,
            advice_only=advice_only,
            choices=choices(engine.sample),
            record=_both(recorded, record),
        )
        undo.pop_all()

    def release(restore: bool) -> None:
        shared.leave(str(query.id), restore and not advice_only)
        if recorded:
            recorded.close()

    return Scaler(engine, loop, release)


def _both(
    history: History | None, record: Callable[[Cycle | Steered], object]
) -> Callable[[Cycle | Steered], object]:
    def note(entry: Cycle | Steered) -> None:
        if history:
            history.record(entry)
        record(entry)

    return note


def _check(latency: float, target: float) -> None:
    if not latency > 0:
        raise InvalidInputError(f"attach: latency={latency} must be a number of seconds above 0")
    if not 0 < target <= 1:
        raise InvalidInputError(f"attach: target={target} must be above 0 and at most 1")
