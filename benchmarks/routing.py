"""How many events a second each grouping routes on one core, beside plain round robin."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.command import by_hand
from benchmarks.measure import Figure, report, seconds
from elastream.core.groupings import GROUPINGS, Batch, Grouping
from elastream.core.groupings.base import ReplicaLoads, SketchReport, Utilization
from elastream.core.groupings.osg import Osg
from elastream.core.groupings.osg_published import OsgPublished
from elastream.core.sketches import CountMin

POOL, BATCH, BATCHES = 8, 1_000, 50
TARGETS = {"load-aware": 1_000_000, "osg": 300_000}


def warm_state(grouping: Grouping[Any], values: np.ndarray) -> Any:
    """A state in the middle of a run: loads differ, and what values cost is known."""
    active = np.arange(POOL)
    state = grouping.route(grouping.start(POOL), Batch.of(values), active).state
    busy = tuple(np.linspace(0.1, 0.5, POOL))
    if isinstance(grouping, Osg | OsgPublished):
        sketch = CountMin.empty(grouping.family)
        for replica in active.tolist():
            frequency, time = sketch.add(values).table, sketch.add(values, values % 64 / 1e3).table
            state = grouping.learn(state, SketchReport(replica, frequency, time))
    state = grouping.learn(state, Utilization(busy, per_event=1e-5))
    loads = ReplicaLoads((10.0,) * POOL, tuple(np.linspace(1, 3, POOL) / 1e3), busy, 2_000.0, 1.0)
    return grouping.learn(state, loads)


def events_per_second(grouping: Grouping[Any]) -> float:
    """The rate over a run of batches of Zipf-distributed keys."""
    rng = np.random.default_rng(0)
    batches = [Batch.of(rng.zipf(1.5, BATCH) % 4096) for _ in range(BATCHES)]
    active = np.arange(POOL)
    start = warm_state(grouping, batches[0].keys)

    def work() -> None:
        state = start
        for batch in batches:
            state = grouping.route(state, batch, active).state

    return BATCH * BATCHES / seconds(work)


def main() -> bool:
    """Print the rate of every grouping."""
    rates = {name: events_per_second(factory()) for name, factory in GROUPINGS.items()}
    figures = [
        Figure(
            f"{name} ({rates[name] / rates['shuffle']:.0%} of round robin)",
            f"{rates[name]:,.0f}/s",
            f"{TARGETS[name]:,}/s" if name in TARGETS else "",
            rates[name] >= TARGETS[name] if name in TARGETS else None,
        )
        for name in rates
    ]
    return report(f"Routing: events/s, batches of {BATCH:,} to {POOL} replicas", figures)


if __name__ == "__main__":
    by_hand(main)
