"""Small pipelines, intervals and contexts, for tests of what decides."""

from dataclasses import replace

import numpy as np

from elastream.core.demand import output_shares
from elastream.core.pipeline import Pipeline
from elastream.core.stats import IntervalStats, OperatorStats, ReplicaStats, SourceStats
from elastream.policies import Context
from elastream.predictors import Forecast


def same(batch):
    return batch


def line(*names, pool=8, minimum=1, **settings):
    """Operators in a row behind the source `in`."""
    pipeline = Pipeline("line")
    previous = pipeline.source("in")
    for name in names:
        pipeline.add(same, after=previous, name=name, pool=pool, minimum=minimum, **settings)
        previous = name
    return pipeline.topology()


def interval(
    topology, events, number=0, td=30.0, et=0.01, active=1, queued=0.0, source="in", **more
):
    """An interval in which every operator of a line received and processed `events`."""
    counts = active if isinstance(active, dict) else dict.fromkeys(topology.by_name, active)
    waiting = queued if isinstance(queued, dict) else dict.fromkeys(topology.by_name, queued)
    operators = {
        name: OperatorStats(
            received=events,
            processed=events,
            emitted=events,
            queued=waiting.get(name, 0.0),
            busy=events * et,
            active=counts[name],
            replicas={
                number: ReplicaStats(events / counts[name], events * et / counts[name])
                for number in range(counts[name])
            },
        )
        for name in topology.by_name
    }
    edges = {(edge.origin, edge.target): events for edge in topology.edges}
    sources = {source: SourceStats(events, 0.0, (events / 3,) * 3)}
    return IntervalStats(number, td, sources, operators, edges, **more)


def failing(topology, operator, errors, **more):
    """An interval in which an operator processed nothing, and set events aside on these errors."""
    stats = interval(topology, 100, **more)
    aside = replace(
        stats.operators[operator], processed=0.0, set_aside=sum(errors.values()), errors=errors
    )
    return replace(stats, operators={**stats.operators, operator: aside})


def forecast_of(values):
    return Forecast(np.atleast_1d(np.asarray(values, dtype=float)), "lr")


def context(topology, *past, forecast=None, ahead=None, et=0.01, **more):
    """A context after these intervals; `ahead` are the operators' forecasts."""
    return Context(
        topology=topology,
        past=tuple(past),
        execution_times=dict.fromkeys(topology.by_name, et) if et is not None else {},
        shares=output_shares(topology, past[-1]),
        forecast=None if forecast is None else forecast_of(forecast),
        operator_forecasts={}
        if ahead is None
        else {name: forecast_of(ahead) for name in topology.by_name},
        **more,
    )
