"""What an experiment is: named rows, and what a paper published about them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from math import inf

from elastream.control.run import Run
from elastream.errors import InvalidInputError, UnknownNameError
from elastream.experiments.pace import faster, with_grouping, with_quicker_operators
from elastream.experiments.work import Advance, Measured, Work
from elastream.workloads.applications import Application
from elastream.workloads.choice import chosen_trace
from elastream.workloads.traces import Trace

MEASURES: Mapping[str, str] = {
    "saved_resources": "Saved resources",
    "throughput_degradation": "Throughput degradation",
    "processed_ratio": "Processed events",
    "latency_ms": "Latency (ms)",
    "input_error": "Error of the input",
    "replica_error": "Error of the replicas",
    "replica_seconds": "Replica-seconds",
    "rescales": "Rescales",
    "cost": "Cost",
    "extra_cost": "Extra cost (equation 9)",
    "first_cost": "Cost of epochs 0 and 1",
    "late_changes": "Started and stopped after epoch 10",
    "cpu_percent": "Processors in use (%)",
    "stable_rmse": "Stable: RMSE",
    "stable_mae": "Stable: MAE",
    "periodic_rmse": "Periodic: RMSE",
    "periodic_mae": "Periodic: MAE",
    "fluctuating_rmse": "Fluctuating: RMSE",
    "fluctuating_mae": "Fluctuating: MAE",
}
"""The columns that tables may have, and their titles."""


@dataclass(frozen=True)
class Inputs:
    """The input of experiments."""

    files: Mapping[str, str] = field(default_factory=dict)
    """For the name of a shipped trace a file, or another name, to take instead."""
    seed: int = 0
    fill_gaps: bool = False
    """Whether gaps in a file are filled; else they are refused."""
    speed: float = 1.0
    """How many times as fast a trace is played, and decisions are taken."""
    scale: float = 1.0
    """How many times as many events come, each taking correspondingly less time."""
    runs: int | None = None
    """How many runs every row has, if not as many as the experiment says."""
    grouping: str | None = None
    """How all operators get their events, if not as the application says."""

    def __post_init__(self) -> None:
        for name, value in (("speed", self.speed), ("scale", self.scale)):
            if not 0 < value < inf:
                raise InvalidInputError(f"{name} {value:g}: it must be above 0")
        if self.runs is not None and self.runs < 1:
            raise InvalidInputError(f"runs {self.runs}: there must be at least 1")

    def trace(self, name: str) -> Trace:
        """The trace that stands for this name, at its own speed."""
        found = chosen_trace(self.files.get(name, name), self.seed, self.fill_gaps)
        return Trace(found.times, self.scale * found.values, found.step)

    def application(self, made: Application) -> Application:
        """The application, with execution times that fit the scale, and its grouping."""
        return self.grouped(made if self.scale == 1 else with_quicker_operators(made, self.scale))

    def grouped(self, made: Application) -> Application:
        """The application, with the grouping that is asked for."""
        return made if self.grouping is None else with_grouping(made, self.grouping)

    def seeds(self, runs: int = 1) -> tuple[int, ...]:
        """One for every run, of a row that has this many unless told otherwise."""
        first = runs * self.seed
        return tuple(range(first, first + (self.runs or runs)))

    def paced(self, run: Run) -> Run:
        """The run at the speed that is asked for."""
        return run if self.speed == 1 else faster(run, self.speed)

    def described(self, experiment: Experiment, engine: str = "") -> str:
        """What a report says of it."""
        traces = [
            self.files.get(name, f"{name} (synthetic, seed {self.seed})")
            for name in experiment.traces
        ]
        parts = [", ".join(traces), engine]
        if self.speed != 1:
            parts.append(f"speed {self.speed:g}")
        if self.scale != 1:
            parts.append(f"scale {self.scale:g}")
        if self.grouping is not None:
            parts.append(f"grouping {self.grouping} everywhere")
        runs = self.runs or experiment.runs
        if runs != experiment.runs:
            parts.append(
                f"{runs} {'run' if runs == 1 else 'runs'} of each row, not the usual "
                f"{experiment.runs}"
            )
        return "; ".join(part for part in parts if part)


@dataclass(frozen=True)
class Row:
    """One line of a table."""

    label: str
    work: Callable[[Inputs], Work]
    published: Mapping[str, float] = field(default_factory=dict)
    """By the names of `MEASURES`."""
    calibrated: frozenset[str] = frozenset()
    """The measures that the experiment was calibrated with: they prove nothing."""
    simulator_only: bool = False
    """Whether it needs what the Spark engine does not have."""


@dataclass(frozen=True, slots=True)
class Claim:
    """An ordering that a paper tells in words: in this measure one row is below another."""

    measure: str
    lower: str
    higher: str


@dataclass(frozen=True)
class Experiment:
    """A published table or figure."""

    name: str
    title: str
    """Which one of which paper, and what it compares."""
    traces: tuple[str, ...]
    """The names of the shipped traces that it runs on."""
    measures: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: str = ""
    """What to know to interpret the differences."""
    claims: tuple[Claim, ...] = ()
    """What the text says besides the numbers."""
    trains: bool = False
    """Whether it trains models for minutes: then it is only run when asked for."""
    runs: int = 1
    """How many runs every row has; with more than one, measures are means."""
    spark_speed: float | None = None
    """How many times as fast its traces are played on Spark unless another speed is asked for, so
    that it takes less than 100 minutes. None: there is nothing to run on Spark."""

    def __post_init__(self) -> None:
        unknown = set(self.measures) - MEASURES.keys()
        if unknown:
            raise InvalidInputError(f"experiment {self.name!r}: no measures {sorted(unknown)}")

    def run(self, inputs: Inputs, advance: Advance = lambda steps: None) -> Outcome:
        """Run every row."""
        results = [row.work(inputs).measure(advance) for row in self.rows]
        return Outcome(self, inputs.described(self), tuple(results))

    def only(self, labels: Collection[str]) -> Experiment:
        """The experiment with these rows alone; claims about others are left out."""
        unknown = set(labels) - {row.label for row in self.rows}
        if unknown:
            known = [row.label for row in self.rows]
            raise UnknownNameError("row", min(unknown), known)
        claims = [each for each in self.claims if {each.lower, each.higher} <= set(labels)]
        rows = tuple(row for row in self.rows if row.label in labels)
        return replace(self, rows=rows, claims=tuple(claims))

    def steps(self, inputs: Inputs) -> int:
        """How many steps all rows have together."""
        return sum(row.work(inputs).steps for row in self.rows)


@dataclass(frozen=True)
class Outcome:
    """The results of an experiment."""

    experiment: Experiment
    source: str
    results: tuple[Measured, ...]
    simulated: tuple[Measured, ...] = ()
    """What the simulator says about runs on Spark; none, if they were simulated themselves."""

    def measured(self) -> list[dict[str, float | None]]:
        """The measures of every row."""
        names = self.experiment.measures
        return [{name: result.values[name] for name in names} for result in self.results]
