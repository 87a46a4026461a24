"""How long a simulation takes: the papers' 22 minutes, and a day at 100,000 events/s."""

from __future__ import annotations

import numpy as np

from benchmarks.command import by_hand
from benchmarks.measure import Figure, report, seconds
from elastream import Pipeline
from elastream.control.run import Run
from elastream.core.behaviour import Behaviour
from elastream.engines.simulation import SimulationSettings
from elastream.policies.pa_sps import PaSps
from elastream.predictors.linear import Lr
from elastream.workloads import APPLICATIONS, TRACES
from elastream.workloads.applications import Application
from elastream.workloads.traces import evenly

TARGETS = {"spiky": 0.5, "day": 10.0}
DAY, RATE, OPERATORS = 86_400, 100_000.0, 8


def long_line() -> Application:
    """Eight operators in a line, with pools that can carry the peak."""
    pipeline = Pipeline("line")
    previous = pipeline.source("in")
    for number in range(OPERATORS):
        name = f"o{number}"
        pipeline.add(len, name=name, after=previous, pool=32, execution_time=1e-4)
        previous = name
    return Application(pipeline.topology(), Behaviour())


def day_of_swings() -> Run:
    """Three swings of half the rate over the day."""
    swing = 1 + 0.5 * np.sin(np.linspace(0, 6 * np.pi, DAY))
    settings = SimulationSettings(step=0.25)
    return Run(long_line(), evenly(RATE * swing), PaSps(), Lr(), settings=settings)


def main() -> bool:
    """Print both figures; the second is one run, because it is long."""
    short = Run(APPLICATIONS["twitter"](), TRACES["spiky"](), PaSps(), Lr())
    day = day_of_swings()
    twenty_two_minutes = seconds(lambda: short.simulate().metrics, repeats=5)
    whole_day = seconds(lambda: day.simulate().metrics, repeats=1)
    return report(
        "Simulator: pa-sps with lr in the loop, every 30 s, steps of 0.25 s",
        [
            _figure("1,301 s, 4 operators, 3 million events", twenty_two_minutes, "spiky"),
            _figure("86,400 s, 8 operators, 8.6 billion events", whole_day, "day"),
        ],
    )


def _figure(what: str, taken: float, target: str) -> Figure:
    most = TARGETS[target]
    return Figure(what, f"{taken:.2f} s", f"{most:g} s", taken <= most)


if __name__ == "__main__":
    by_hand(main)
