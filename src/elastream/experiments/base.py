"""What an experiment is: rows with a name each, and what a paper published of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from elastream.errors import InvalidInputError
from elastream.experiments.work import Advance, Measured, Work
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
    "cpu_seconds": "Processor time (s)",
    "stable_rmse": "Stable: RMSE",
    "stable_mae": "Stable: MAE",
    "periodic_rmse": "Periodic: RMSE",
    "periodic_mae": "Periodic: MAE",
    "fluctuating_rmse": "Fluctuating: RMSE",
    "fluctuating_mae": "Fluctuating: MAE",
}
"""The columns that tables may have, and how people call them."""


@dataclass(frozen=True)
class Inputs:
    """What experiments take their input from."""

    files: Mapping[str, str] = field(default_factory=dict)
    """For the name of a shipped trace a file, or another name, to take instead."""
    seed: int = 0
    fill_gaps: bool = False
    """Whether gaps in a file are filled; else they are refused."""

    def trace(self, name: str) -> Trace:
        """The trace that stands for this name."""
        return chosen_trace(self.files.get(name, name), self.seed, self.fill_gaps)

    def source(self, name: str) -> str:
        """What a report says of it."""
        return self.files.get(name, f"{name} (synthetic, seed {self.seed})")


@dataclass(frozen=True)
class Row:
    """One line of a table."""

    label: str
    work: Callable[[Inputs], Work]
    published: Mapping[str, float] = field(default_factory=dict)
    """By the names of `MEASURES`."""
    calibrated: frozenset[str] = frozenset()
    """The measures that were used to set the experiment up: that they come out shows nothing."""


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
    """What one has to know to read the differences."""
    claims: tuple[Claim, ...] = ()
    """What the text says beside the numbers."""
    trains: bool = False
    """Whether it trains models for minutes: then it is only run when asked for."""

    def __post_init__(self) -> None:
        unknown = set(self.measures) - MEASURES.keys()
        if unknown:
            raise InvalidInputError(f"experiment {self.name!r}: no measures {sorted(unknown)}")

    def run(self, inputs: Inputs, advance: Advance = lambda steps: None) -> Outcome:
        """Run every row."""
        results = [row.work(inputs).measure(advance) for row in self.rows]
        return Outcome(self, ", ".join(map(inputs.source, self.traces)), tuple(results))

    def steps(self, inputs: Inputs) -> int:
        """How many steps all rows have together."""
        return sum(row.work(inputs).steps for row in self.rows)


@dataclass(frozen=True)
class Outcome:
    """What the rows of an experiment came to."""

    experiment: Experiment
    source: str
    results: tuple[Measured, ...]

    def measured(self) -> list[dict[str, float | None]]:
        """The measures of every row."""
        names = self.experiment.measures
        return [{name: result.values[name] for name in names} for result in self.results]
