"""How many events a second the applications' generators and functions manage on one core.

Beside the rate in large batches stands the rate in small ones, as a replica gets them when it keeps
up: what a call costs whatever the size of its batch weighs most there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from benchmarks.command import by_hand
from benchmarks.measure import Figure, report, seconds
from elastream.core.topology import Operator
from elastream.workloads import LIVE_APPLICATIONS
from elastream.workloads.live.applications import LiveApplication

LARGE, SMALL = 2_000, 20
TARGET = 2_000
"""Events per second of one replica, in small batches."""


@contextmanager
def running(operator: Operator) -> Iterator[Callable[[pa.Table], pa.Table]]:
    """The operator's function between its set-up and its tear-down."""
    resource = (operator.setup(),) if operator.setup else ()
    yield lambda batch: operator.function(batch, *resource)
    if operator.teardown:
        operator.teardown(*resource)


def operator_rate(function: Callable[[pa.Table], pa.Table], batch: pa.Table, size: int) -> float:
    """Events per second through one operator; the store gets new events every time."""
    place = batch.schema.get_field_index("id")
    firsts = count(size * 1_000_000, size)

    def work() -> None:
        first = next(firsts)
        numbers = pa.array(range(first, first + size), pa.int64())
        function(batch.slice(0, size).set_column(place, "id", numbers))

    return size / seconds(work)


def generator_rate(application: LiveApplication, size: int) -> float:
    """Events per second that the source makes, asking for so many at a time."""
    (make,) = application.generators.values()
    calls = 3 * LARGE // size
    return size * calls / seconds(lambda: [make(step * size, size) for step in range(calls)])


def figures_of(name: str, folder: Path) -> Iterator[Figure]:
    """The source and the operators of one application, in the order of the flow."""
    application = LIVE_APPLICATIONS[name](folder / f"{name}.db")
    (make,) = application.generators.values()
    yield _figure(name, "source", [generator_rate(application, size) for size in (SMALL, LARGE)])
    batch = make(0, LARGE)
    for node in application.topology.order:
        if node in application.generators:
            continue
        with running(application.topology.by_name[node]) as function:
            rates = [operator_rate(function, batch, size) for size in (SMALL, LARGE)]
            batch = function(batch)
        yield _figure(name, node, rates)


def _figure(name: str, node: str, rates: list[float]) -> Figure:
    small, large = rates
    shown = f"{small:,.0f}/s ({large:,.0f}/s)"
    return Figure(f"{name}: {node}", shown, f"{TARGET:,}/s", small >= TARGET)


def main() -> bool:
    """Print the rates of every application."""
    with TemporaryDirectory() as folder:
        figures = [f for name in LIVE_APPLICATIONS for f in figures_of(name, Path(folder))]
    return report(f"Functions: events/s in batches of {SMALL} (and of {LARGE:,})", figures)


if __name__ == "__main__":
    by_hand(main)
