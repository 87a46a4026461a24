"""Small pipelines and runs for the tests of the simulator."""

import numpy as np

from elastream import Pipeline
from elastream.core.behaviour import Behaviour, OperatorBehaviour
from elastream.engines.simulation import SimulationEngine, SimulationSettings
from elastream.workloads.traces import Trace


def constant(rate, seconds):
    return trace([rate] * seconds)


def trace(values):
    return Trace(np.arange(float(len(values))), np.asarray(values, dtype=float), 1.0)


def line(*times, **settings):
    """Operators `a`, `b`, ... in a line, with these execution times."""
    pipeline = Pipeline("line")
    previous = pipeline.source("in")
    for name, seconds in zip("abcdefgh", times, strict=False):
        pipeline.add(len, name=name, after=previous, execution_time=seconds, **settings)
        previous = name
    return pipeline.topology()


def one(service, **settings):
    """One operator `a` with this distribution of execution times."""
    return line(1.0, **settings), Behaviour({"a": OperatorBehaviour(service)})


def engine(topology, rates, behaviour=None, **settings):
    return SimulationEngine(
        topology, rates, behaviour or Behaviour(), SimulationSettings(**settings)
    )


def watch(running, *times):
    """The statistics of the intervals that end at these times."""
    seen = []
    for time in times:
        running.clock.sleep_until(time)
        seen.append(running.observe())
    return seen
