"""Runs a pipeline's functions on events of its sources, to measure each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from elastream.control.execution_time import benchmark
from elastream.core.topology import Edge, Operator, Topology
from elastream.engines.spark.worker.function import UserFunction


class Rehearsed(NamedTuple):
    """What was measured at an operator."""

    seconds: float
    """et_i: per event, on one replica."""
    events: int
    """How many reached it."""


def rehearse(
    topology: Topology,
    generators: Mapping[str, Callable[[int, int], Any]],
    events: int,
    repeats: int,
) -> dict[str, Rehearsed]:
    """Every operator that events reach, in the order of the pipeline.

    Args:
        topology: The pipeline.
        generators: What makes the events of each source.
        events: How many each source sends.
        repeats: How often each function is measured.
    """
    found: dict[str, Rehearsed] = {}
    outputs = {source.name: generators[source.name](0, events) for source in topology.sources}
    for name in topology.order:
        if name in outputs:
            continue
        parts = [_through(edge, outputs[edge.origin]) for edge in topology.incoming[name]]
        parts = [part for part in parts if part.num_rows]
        table = pa.concat_tables(parts, promote_options="permissive") if parts else pa.table({})
        outputs[name] = table
        if table.num_rows:
            found[name], outputs[name] = _measured(topology.by_name[name], table, repeats)
    return found


def _measured(operator: Operator, table: pa.Table, repeats: int) -> tuple[Rehearsed, pa.Table]:
    function = UserFunction(operator)
    with function.ready():
        seconds = benchmark(function, table, table.num_rows, repeats)
        return Rehearsed(seconds, table.num_rows), function(table)


def _through(edge: Edge, table: pa.Table) -> pa.Table:
    """The events that take an edge."""
    if not table.num_rows:
        return table
    if edge.when is not None:
        return table.filter(pa.array(np.asarray(edge.when(table), dtype=bool)))
    return table if edge.share is None else table.slice(0, round(edge.share * table.num_rows))
