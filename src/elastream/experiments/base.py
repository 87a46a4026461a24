"""What an experiment is: runs with a name each, and what a paper published of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from elastream.control import Cycle
from elastream.core.metrics import RunMetrics
from elastream.errors import InvalidInputError
from elastream.experiments.runs import Result, Run
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
}
"""The columns that tables may have, and how people call them."""


@dataclass(frozen=True)
class Inputs:
    """What the runs of experiments take their input from."""

    files: Mapping[str, str] = field(default_factory=dict)
    """For the name of a shipped trace a file, or another name, to take instead."""
    seed: int = 0

    def trace(self, name: str) -> Trace:
        """The trace that stands for this name."""
        return chosen_trace(self.files.get(name, name), self.seed)

    def source(self, name: str) -> str:
        """What a report says of it."""
        return self.files.get(name, f"{name} (synthetic, seed {self.seed})")


@dataclass(frozen=True)
class Row:
    """One line of a table."""

    label: str
    run: Callable[[Inputs], Run]
    published: Mapping[str, float] = field(default_factory=dict)
    """By the names of `MEASURES`."""


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
    trace: str
    """The name of the shipped trace that it runs on."""
    measures: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: str = ""
    """What one has to know to read the differences."""
    claims: tuple[Claim, ...] = ()
    """What the text says beside the numbers."""

    def __post_init__(self) -> None:
        unknown = set(self.measures) - MEASURES.keys()
        if unknown:
            raise InvalidInputError(f"experiment {self.name!r}: no measures {sorted(unknown)}")

    def run(self, inputs: Inputs, after_each: Callable[[Cycle], object] | None = None) -> Outcome:
        """Run every row."""
        results = [row.run(inputs).simulate(after_each) for row in self.rows]
        return Outcome(self, inputs.source(self.trace), tuple(results))

    def intervals(self, inputs: Inputs) -> int:
        """How many intervals all rows have together."""
        return sum(row.run(inputs).intervals for row in self.rows)


@dataclass(frozen=True)
class Outcome:
    """What the runs of an experiment came to."""

    experiment: Experiment
    source: str
    results: tuple[Result, ...]

    def measured(self) -> list[dict[str, float | None]]:
        """The measures of every row."""
        return [_columns(result.metrics, self.experiment.measures) for result in self.results]


def _columns(metrics: RunMetrics, names: tuple[str, ...]) -> dict[str, float | None]:
    """A paper's latency is the mean."""
    values: dict[str, Any] = metrics.as_dict()
    values["latency_ms"] = metrics.latency_ms.mean if metrics.latency_ms else None
    return {name: values[name] for name in names}
