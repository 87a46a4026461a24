"""What a unit of events costs a replica, part by part: one replica in one process, without Spark.

The process never sleeps, so its caches are warm: where replicas wait in between, a unit costs about
twice as much. Other connections put a unit into the replica's lane, and empty the next one's.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.command import by_hand
from benchmarks.measure import Figure, report
from benchmarks.spark.pipelines import events, line, pass_on
from elastream.core.lanes import assign
from elastream.engines.spark.arrow_ipc import to_bytes
from elastream.engines.spark.backends.base import Connection
from elastream.engines.spark.backends.board import LanePlan
from elastream.engines.spark.backends.ledger import Counts
from elastream.engines.spark.backends.members import MemberName
from elastream.engines.spark.backends.parcels import Parcel
from elastream.engines.spark.backends.sqlite.backend import SqliteBackend
from elastream.engines.spark.births import Births
from elastream.engines.spark.options import Options
from elastream.engines.spark.worker.deployment import Deployment
from elastream.engines.spark.worker.replica import Replica
from elastream.engines.spark.worker.routing import UNIT

POOL = 4
WARM_UP, UNITS = 200, 4_000
Spent = dict[str, list[float]]
"""By part, the seconds of every unit."""


def timed(spent: Spent, part: str, owner: Any, method: str) -> None:
    """From now on, note how long a method of an object takes."""
    act: Callable[..., Any] = getattr(owner, method)

    def noting(*arguments: Any) -> Any:
        began = time.perf_counter()
        result = act(*arguments)
        spent[part].append(time.perf_counter() - began)
        return result

    spent[part] = []
    setattr(owner, method, noting)


def spent_on_units(folder: Path) -> Spent:
    """Let the second of three operators work on one unit after the other."""
    backend = SqliteBackend(folder)
    topology = line(3, POOL, pass_on)
    _, work, end = (operator.name for operator in topology.operators)
    deployment = Deployment(topology, {}, Options(), backend, frozenset())
    backend.prepare(topology.name, deployment.layout)
    with ExitStack() as opened:

        def connection() -> Connection:
            return opened.enter_context(backend.connect())

        board = connection().board
        generation = board.new_generation(deployment.members)
        board.start(generation)
        lanes = {name: of.lanes for name, of in deployment.layout.items()}
        pool = tuple(range(POOL))
        owners = {
            operator.name: assign((-1,) * lanes[operator.name], pool, [1.0] * lanes[operator.name])
            for operator in topology.operators
        }
        board.publish(LanePlan(dict.fromkeys(owners, pool), owners, True))

        def joined(name: MemberName, held: frozenset[int] = frozenset()) -> Connection:
            made = connection()
            made.lanes.join(name, generation)
            made.lanes.hold(held)
            return made

        before = joined(("outside", 0)).lanes
        after = joined((end, 0), frozenset(range(lanes[end]))).lanes
        replica = deployment.member((work, 0), connection(), generation)
        assert isinstance(replica, Replica)
        replica.lanes.join(replica.name, generation)
        opened.enter_context(replica.ready())
        replica._follow()
        spent: Spent = {}
        timed(spent, "all of it", replica, "_step_and_wait")
        timed(spent, "taking it from its lane", replica.lanes, "take")
        timed(spent, "the function, and reading Arrow", replica, "run_chain")
        timed(spent, "routing, writing Arrow, counting", replica.chain, "results")
        timed(spent, "committing, and waking the next", replica.lanes, "commit")
        timed(spent, "waiting for more", replica.lanes, "wait")
        lane, data = owners[work].index(0), to_bytes(events(0, UNIT))
        for _ in range(WARM_UP + UNITS):
            births = Births.evenly(UNIT, time.time())
            before.commit([], [Parcel(work, lane, UNIT, births, data)], Counts())
            replica._step_and_wait()
            after.commit(after.take(2 * UNIT), [], Counts())
    return spent


def main() -> bool:
    """Print the median of every part."""
    with tempfile.TemporaryDirectory() as folder:
        spent = spent_on_units(Path(folder) / "state")
    figures = [
        Figure(part, f"{1e6 * statistics.median(seconds[WARM_UP:]):.0f} µs")
        for part, seconds in spent.items()
    ]
    return report(f"Spark: a unit of {UNIT} events in a warm replica", figures)


if __name__ == "__main__":
    by_hand(main)
