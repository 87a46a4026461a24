"""The runs of an experiment on Spark: real tasks and queues; operators wait as long as they take.

What differs from the simulator: events do not time out, replicas that share a core do not slow each
other down as they only wait, and a decision takes the time that it takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from elastream.control import Cycle
from elastream.control.run import Result, Run
from elastream.control.windows import InWindows
from elastream.core.stats import IntervalStats
from elastream.engines.simulation import Arrivals
from elastream.engines.simulation.spark_costs import as_on_spark
from elastream.errors import InvalidInputError, MissingExtraError
from elastream.experiments.base import Experiment, Inputs, Outcome
from elastream.experiments.cells import CellFolder
from elastream.experiments.computing import AsIfComputing
from elastream.experiments.runs import PipelineRuns, together
from elastream.experiments.work import Advance, Measured
from elastream.workloads.waiting import NumberedEvents, waiting_topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START_SECONDS = 8.0
"""About how long a run takes to start and to stop, for estimates of what is left."""


@dataclass(frozen=True)
class SparkCell:
    """One run of one row."""

    row: str
    runs: PipelineRuns
    seed: int

    @property
    def seconds(self) -> float:
        """About how long it takes."""
        return self.runs.seconds + START_SECONDS


@dataclass(frozen=True)
class SparkExperiment:
    """An experiment that runs on Spark, cell by cell.

    Args:
        experiment: What is run; rows that need the simulator are left out.
        inputs: On what.
        folder: Where the cells of all experiments are kept; those that are there already, of
            this experiment or of another one that runs the same, are not run again.
    """

    experiment: Experiment
    inputs: Inputs
    folder: Path

    @classmethod
    def of(cls, experiment: Experiment, inputs: Inputs, folder: Path) -> SparkExperiment:
        """With the rows that can run there."""
        if experiment.spark_speed is None:
            raise InvalidInputError(
                f"the experiment {experiment.name!r} compares models and runs no pipeline: "
                "there is nothing to run on Spark"
            )
        labels = [row.label for row in experiment.rows if not row.simulator_only]
        if not labels:
            raise InvalidInputError(
                f"these rows of {experiment.name!r} need the simulator: run them without "
                "--engine spark"
            )
        return cls(experiment.only(labels), inputs, folder)

    @property
    def cells(self) -> list[SparkCell]:
        """All of them."""
        found = []
        for row in self.experiment.rows:
            work = row.work(self.inputs)
            assert isinstance(work, PipelineRuns)
            found += [SparkCell(row.label, work, seed) for seed in work.seeds]
        return found

    @property
    def missing(self) -> list[SparkCell]:
        """Those that are not stored; of rows that run the same, the last."""
        wanted = {self._kept.path(cell.runs.what, cell.seed): cell for cell in self.cells}
        return [
            cell for cell in wanted.values() if self._kept.stored(cell.runs.what, cell.seed) is None
        ]

    def run(
        self, advance: Advance, begin: Callable[[SparkCell], object], session: Any = None
    ) -> Outcome:
        """Run what is missing; then all of it is there.

        Args:
            advance: Told of every interval.
            begin: Told of every cell that is run, before it is.
            session: The Spark session; a new one, for all cells, unless given.
        """
        missing = self.missing
        if missing:
            with _session(missing[0], session) as spark:
                body = OnSpark(spark)
                for cell in missing:
                    begin(cell)
                    began = time.monotonic()
                    found = cell.runs.measure_one(cell.seed, body, advance)
                    self._kept.keep(cell.runs.what, cell.seed, found, time.monotonic() - began)
        return self._outcome()

    def simulated(self) -> tuple[Measured, ...]:
        """The same runs in the simulator, with what the Spark engine adds to every event."""
        works = [row.work(self.inputs) for row in self.experiment.rows]
        runs = [work for work in works if isinstance(work, PipelineRuns)]
        return tuple(work.measure(lambda steps: None, _simulated_as_on_spark) for work in runs)

    def _outcome(self) -> Outcome:
        found: dict[str, list[Any]] = {}
        for cell in self.cells:
            stored = self._kept.stored(cell.runs.what, cell.seed)
            found.setdefault(cell.row, []).append(stored)
        source = self.inputs.described(self.experiment, "on Spark")
        return Outcome(self.experiment, source, tuple(together(of) for of in found.values()))

    @property
    def _kept(self) -> CellFolder:
        return CellFolder(self.folder)


@dataclass(frozen=True)
class OnSpark:
    """Runs one thing after the other in a session."""

    session: SparkSession

    def __call__(self, run: Run, after_each: Callable[[Cycle], object]) -> Result:
        """Play the trace through real tasks, under the policy of the run."""
        from elastream.engines.spark.driver.engine import SparkEngine
        from elastream.engines.spark.driver.restarts import RestartingEngine
        from elastream.engines.spark.worker.trace_player import TraceSource

        application, trace, settings = run.application, run.trace, run.settings
        values = trace.values
        if settings.arrivals is Arrivals.POISSON:
            values = np.random.default_rng(settings.seed).poisson(values).astype(np.float64)
        events = TraceSource(
            NumberedEvents.of(application, settings.seed), trace.step, values / trace.step
        )
        topology = waiting_topology(application)
        with TemporaryDirectory(prefix="elastream-") as state:
            arguments = topology, {of.name: events for of in topology.sources}, state, self.session
            conditions: dict[str, Any] = {
                "queue_size": round(settings.queue_bound),
                "on_full": settings.when_full,
                "sample": settings.sample,
                "initial": run.initial,
            }
            downtime = settings.restart_downtime
            engine = (
                SparkEngine(*arguments, **conditions)
                if downtime is None
                else RestartingEngine(*arguments, downtime=downtime, **conditions)
            )
            windows: list[IntervalStats] = []
            engine.watch(InWindows(run.throughput_window, windows.append))
            cores = settings.cores
            computing = engine if cores is None else AsIfComputing(engine, cores)
            return run.control(computing, windows, after_each)


def _simulated_as_on_spark(run: Run, after_each: Callable[[Cycle], object]) -> Result:
    return replace(run, settings=as_on_spark(run.settings)).simulate(after_each)


@contextmanager
def _session(first: SparkCell, given: Any) -> Iterator[Any]:
    """One with task slots for the pools; the rows of an experiment have pools of the same size."""
    if given is not None:
        yield given
        return
    try:
        from elastream.engines.spark.driver.preflight import slots_for
        from elastream.engines.spark.driver.session import new_session
    except ImportError:
        raise MissingExtraError("running on Spark", "spark") from None
    session = new_session(slots_for(first.runs.run(first.seed).application.topology, 0, 0))
    try:
        yield session
    finally:
        session.stop()
