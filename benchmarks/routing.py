"""How many events a second each grouping routes on one core, beside plain round robin."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.measure import Figure, report, seconds
from elastream.core.groupings import GROUPINGS, Batch, Grouping
from elastream.core.groupings.base import SketchReport, SyncReply, Utilization
from elastream.core.groupings.osg import Osg, OsgState, Phase
from elastream.core.sketches import CountMin

POOL, BATCH, BATCHES = 8, 1_000, 50
TARGETS = {"load-aware": 1_000_000, "osg": 300_000}


def warm_state(grouping: Grouping[Any], values: np.ndarray) -> Any:
    """A state in the middle of a run: utilisations differ, and OSG runs greedily."""
    state = grouping.start(POOL)
    if isinstance(grouping, Osg):
        return _running(grouping, state, values)
    measured = tuple(np.linspace(0.1, 0.5, POOL))
    return grouping.learn(state, Utilization(measured, per_event=1e-5))


def _running(osg: Osg, state: OsgState, values: np.ndarray) -> OsgState:
    active = np.arange(POOL)
    state = osg.route(state, Batch.of(values), active).state
    sketch = CountMin.empty(osg.family)
    for replica in active.tolist():
        frequency, time = sketch.add(values).table, sketch.add(values, values % 64 / 1e3).table
        state = osg.learn(state, SketchReport(replica, frequency, time))
    routing = osg.route(state, Batch.of(values), active)
    state = routing.state
    for request in routing.requests:
        state = osg.learn(state, SyncReply(request.replica, request.epoch, 0.0))
    assert state.phase is Phase.RUN
    return state


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
    raise SystemExit(not main())
