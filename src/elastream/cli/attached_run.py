"""A user's program while it runs: attaches to every query that it starts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from elastream.cli.choices import trained_files
from elastream.cli.render.logs import tell
from elastream.control import Choices, Cycle, Steered
from elastream.control.attach import LOOK_BACK, Scaler, attach
from elastream.errors import ElastreamError
from elastream.policies import Policy
from elastream.predictors import Predictor
from elastream.running.choices import Models, steering_choices
from elastream.running.service import RunService

LOOK_SECONDS = 0.5


@dataclass(frozen=True)
class Wishes:
    """How to scale queries."""

    executors: tuple[int, int]
    policy: Policy
    predictor: Predictor
    latency: float
    target: float
    td: float | None
    advice_only: bool
    folder: Path | None
    """For the history of every query."""
    trained: tuple[str, ...] = ()


class AttachedRun:
    """Looks for queries while its block runs, and scales them.

    Args:
        wishes: How.
        service: Shows the first query, and lets people steer it.
    """

    def __init__(self, wishes: Wishes, service: RunService | None) -> None:
        self._wishes = wishes
        self._service = service
        self._known: set[str] = set()
        self._scalers = ExitStack()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> AttachedRun:
        # Imported here and not in the thread: the program imports PySpark at the same time.
        from elastream.engines.attached.query import queries_of_this_program

        arguments = (queries_of_this_program,)
        self._thread = threading.Thread(
            target=self._run, args=arguments, name="attach", daemon=True
        )
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        if self._thread:
            self._thread.join()
        self._scalers.close()

    def _run(self, queries: Callable[[], Iterable[Any]]) -> None:
        while not self._over.wait(LOOK_SECONDS):
            try:
                new = [one for one in queries() if str(one.id) not in self._known]
            except Exception:  # A session that is just being made or stopped.
                continue
            for query in new:
                self._known.add(str(query.id))
                try:
                    self._attach(query)
                except ElastreamError as error:  # The program keeps running, unscaled.
                    tell(f"{query.name or query.id} is not scaled: {error}")

    def _attach(self, query: Any) -> None:
        wishes, listeners = self._wishes, Listeners()
        models = Models(wishes.predictor, trained_files(wishes.trained))

        def offered(sample: float) -> Choices:
            return steering_choices(wishes.policy, models, shortest_td=sample)

        scaler = attach(
            query,
            wishes.executors,
            policy=wishes.policy,
            predictor=wishes.predictor,
            latency=wishes.latency,
            target=wishes.target,
            td=wishes.td,
            advice_only=wishes.advice_only,
            history=self._history(query),
            choices=offered,
            record=listeners.tell,
        )
        self._scalers.callback(scaler.stop)
        least, most = wishes.executors
        tell(f"scaling {scaler.engine.name}: {least} to {most} executors")
        if self._service:
            self._serve(self._service, scaler, listeners, models)
            self._service = None

    def _history(self, query: Any) -> Path | None:
        if self._wishes.folder is None:
            return None
        self._wishes.folder.mkdir(parents=True, exist_ok=True)
        return self._wishes.folder / f"{query.name or query.id}.db"

    def _serve(
        self, service: RunService, scaler: Scaler, listeners: Listeners, models: Models
    ) -> None:
        live = service.follow(scaler.engine, scaler.engine.sample)
        listeners.add(live.record)
        beside = service.beside(scaler.loop, live, "attached", LOOK_BACK, models)
        self._scalers.enter_context(beside)
        tell(f"watch and steer it at {service.url}", url=service.url)


class Listeners:
    """Passes records on to its listeners."""

    def __init__(self) -> None:
        self._to: list[Callable[[Cycle | Steered], object]] = []

    def add(self, listener: Callable[[Cycle | Steered], object]) -> None:
        """Add a listener."""
        self._to.append(listener)

    def tell(self, entry: Cycle | Steered) -> None:
        """Pass it on."""
        for listener in self._to:
            listener(entry)
