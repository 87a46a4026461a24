"""Runs a pipeline's functions on events of its sources, to measure each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from elastream.cli.render.logs import report
from elastream.cli.users_code import place_and_cause, users_code
from elastream.control.execution_time import benchmark
from elastream.core.stats import EdgeName
from elastream.core.topology import Edge, Operator, Topology
from elastream.engines.spark.worker.function import UserFunction
from elastream.engines.spark.worker.named_outputs import joined, unpacked
from elastream.engines.spark.worker.trace_player import checked
from elastream.errors import InvalidInputError

EVENTS, REPEATS = 1_000, 3
"""How many events sources send, and how often functions are measured, unless told otherwise."""
ONCE_SECONDS = 0.5
"""A slow function is measured with as few events as it processes in this time, or with one."""
GROWTH = 4
"""How many times as many events it is tried with next, as long as those take less."""
REMEDY = "measure it with events on which it works, or declare its execution_time"


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
    """The share of its origin's output that took each edge with a condition, or whose target the
    function named."""


def rehearse(
    topology: Topology,
    generators: Mapping[str, Callable[[int, int], Any]],
    events: int = EVENTS,
    repeats: int = REPEATS,
    timer: Callable[[], float] = perf_counter,
) -> Rehearsal:
    """Send events through a pipeline, on this machine and without Spark.

    Args:
        topology: The pipeline.
        generators: What makes the events of each source.
        events: How many each source sends.
        repeats: How often each function is measured.
        timer: Tells the seconds.
    """
    found = Rehearsal({}, {})
    outputs = {of.name: _made(of.name, generators[of.name], events) for of in topology.sources}
    for name in topology.order:
        if name in outputs:
            continue
        parts = []
        for edge in topology.incoming[name]:
            before = outputs[edge.origin]
            part = _through(edge, before)
            is_named = unpacked(before) is not None
            if (edge.when is not None or is_named) and before.num_rows:
                found.splits[edge.origin, edge.target] = part.num_rows / before.num_rows
            if part.num_rows:
                topology.by_name[name].check_columns(part.column_names, edge.origin)
                parts.append(part)
        table = pa.concat_tables(parts, promote_options="permissive") if parts else pa.table({})
        outputs[name] = table
        if table.num_rows:
            operator = topology.by_name[name]
            found.operators[name], outputs[name] = _measured(operator, table, repeats, timer)
    return found


def _measured(
    operator: Operator, table: pa.Table, repeats: int, timer: Callable[[], float]
) -> tuple[Rehearsed, pa.Table]:
    """Measured with the events on which the function works, if there are any."""
    function = UserFunction(operator)
    with users_code(f"the operator {operator.name!r} fails", REMEDY), function.ready():
        errors: list[Exception] = []
        table = _affordable(function, table, timer)
        events = table.num_rows
        good = pa.concat_tables([table.slice(0, 0), *_working(function, table, errors)])
        if not good.num_rows:
            raise errors[0]
        seconds = benchmark(function, good, good.num_rows, repeats, timer)
        output = function(good)
    if errors:
        place, told = place_and_cause(errors[0])
        failed = f"{place}the operator {operator.name!r} fails on {len(errors):,} of {events:,}"
        report(f"{failed} events, and is measured with the others: {told}")
    return Rehearsed(seconds, events, output.num_rows / events), output


def _affordable(function: UserFunction, table: pa.Table, timer: Callable[[], float]) -> pa.Table:
    """The first events: as many as the function takes `ONCE_SECONDS` for, or all."""
    size = 1
    while size < table.num_rows:
        began = timer()
        with suppress(Exception):  # What fails is found later.
            function(table.slice(0, size))
        if GROWTH * (timer() - began) > ONCE_SECONDS:
            break
        size *= GROWTH
    return table.slice(0, size)


def _working(
    function: UserFunction, table: pa.Table, errors: list[Exception]
) -> Iterator[pa.Table]:
    """The events on which it works; those on which it fails are found by halving."""
    try:
        function(table)
    except Exception as error:
        if table.num_rows == 1:
            errors.append(error)
            return
        half = table.num_rows // 2
        yield from _working(function, table.slice(0, half), errors)
        yield from _working(function, table.slice(half), errors)
    else:
        yield table


def _made(source: str, make: Callable[[int, int], Any], events: int) -> pa.Table:
    with users_code(f"make(0, {events}) of the source {source!r} fails"):
        made = make(0, events)
    try:
        return checked(made)
    except InvalidInputError as error:
        raise InvalidInputError(f"the source {source!r}: {error}") from None


def _through(edge: Edge, table: pa.Table) -> pa.Table:
    """The events that take an edge: those that the function named it for, and others by it."""
    named = unpacked(table)
    if named is None:
        return _by_edge(edge, table)
    parts = [of.table for of in named if of.successor == edge.target]
    parts += [_by_edge(edge, of.table) for of in named if of.successor is None]
    return joined(parts)


def _by_edge(edge: Edge, table: pa.Table) -> pa.Table:
    if not table.num_rows:
        return table
    if edge.when is not None:
        with users_code(f"the condition of the edge {edge} fails"):
            return table.filter(pa.array(np.asarray(edge.when(table), dtype=bool)))
    return table if edge.share is None else table.slice(0, round(edge.share * table.num_rows))
