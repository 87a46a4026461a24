"""Runs a pipeline's functions on events of its sources, to measure each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from elastream.control.execution_time import benchmark
from elastream.core.stats import EdgeName
from elastream.core.topology import Edge, Operator, Topology
from elastream.engines.spark.worker.function import UserFunction


class Rehearsed(NamedTuple):
    """What was measured at an operator."""

    seconds: float
    """et_i: per event, on one replica."""
    events: int
    """How many reached it."""
    selectivity: float
    """α: events that it put out per event that reached it."""


class Rehearsal(NamedTuple):
    """What was seen of a pipeline."""

    operators: dict[str, Rehearsed]
    """Every operator that events reached, in the order of the pipeline."""
    splits: dict[EdgeName, float]
    """The share of its origin's output that took each edge with a condition."""


def rehearse(
    topology: Topology,
    generators: Mapping[str, Callable[[int, int], Any]],
    events: int,
    repeats: int,
) -> Rehearsal:
    """Send events through a pipeline, on this machine and without Spark.

    Args:
        topology: The pipeline.
        generators: What makes the events of each source.
        events: How many each source sends.
        repeats: How often each function is measured.
    """
    found = Rehearsal({}, {})
    outputs = {source.name: generators[source.name](0, events) for source in topology.sources}
    for name in topology.order:
        if name in outputs:
            continue
        parts = []
        for edge in topology.incoming[name]:
            before = outputs[edge.origin]
            part = _through(edge, before)
            if edge.when is not None and before.num_rows:
                found.splits[edge.origin, edge.target] = part.num_rows / before.num_rows
            if part.num_rows:
                parts.append(part)
        table = pa.concat_tables(parts, promote_options="permissive") if parts else pa.table({})
        outputs[name] = table
        if table.num_rows:
            found.operators[name], outputs[name] = _measured(topology.by_name[name], table, repeats)
    return found


def _measured(operator: Operator, table: pa.Table, repeats: int) -> tuple[Rehearsed, pa.Table]:
    function = UserFunction(operator)
    with function.ready():
        seconds = benchmark(function, table, table.num_rows, repeats)
        output = function(table)
    return Rehearsed(seconds, table.num_rows, output.num_rows / table.num_rows), output


def _through(edge: Edge, table: pa.Table) -> pa.Table:
    """The events that take an edge."""
    if not table.num_rows:
        return table
    if edge.when is not None:
        return table.filter(pa.array(np.asarray(edge.when(table), dtype=bool)))
    return table if edge.share is None else table.slice(0, round(edge.share * table.num_rows))
