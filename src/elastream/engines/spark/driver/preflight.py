"""Checks before the first event."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql.types import StructType

from elastream.core.chains import Chains
from elastream.core.topology import Topology
from elastream.engines.spark.sources import EventSource
from elastream.engines.spark.worker.events import input_of
from elastream.engines.spark.worker.function import context_parameter
from elastream.errors import InvalidInputError, UnknownNameError

SPARE_SLOTS = 2
"""For other queries of the same session."""


def slots_for(topology: Topology, feeds: int = 0, outputs: int = 0, generations: int = 2) -> int:
    """How many task slots a session needs to run a pipeline.

    Args:
        topology: The pipeline.
        feeds: How many of its sources are DataFrames: the query of each needs a slot.
        outputs: How many outputs are read as DataFrames: likewise.
        generations: Two run side by side while one takes over from the other. With slots for
            one, a generation lasts as long as nothing ends it, and events wait for the next one.
    """
    members = len(topology.sources) + sum(operator.pool for operator in topology.operators)
    return generations * members + SPARE_SLOTS + feeds + outputs


def least_slots(topology: Topology, feeds: int = 0, outputs: int = 0) -> int:
    """How many task slots of a cluster are enough: for sources, minima and DataFrames."""
    minima = sum(operator.minimum for operator in topology.operators)
    return len(topology.sources) + minima + feeds + outputs


@dataclass(frozen=True, slots=True)
class Slots:
    """The task slots that a pipeline needs."""

    queries: int
    """For the queries of DataFrames at both ends."""
    enough: int
    """For two generations side by side, and all else."""
    needed: int
    """For one generation, and all else."""
    least: int
    """On a cluster."""

    @classmethod
    def of(cls, topology: Topology, feeds: int, outputs: int) -> Slots:
        """Those of a pipeline with this many DataFrames before and behind it."""
        return cls(
            feeds + outputs,
            slots_for(topology, feeds, outputs),
            slots_for(topology, feeds, outputs, generations=1),
            least_slots(topology, feeds, outputs),
        )


def check_sources(topology: Topology, sources: Mapping[str, Any]) -> None:
    """Every source of the topology is fed, and nothing else."""
    names = {source.name for source in topology.sources}
    missing = names - sources.keys()
    if missing:
        raise InvalidInputError(f"{topology}: nothing feeds the source {min(missing)!r}")
    for name in sources.keys() - names:
        raise UnknownNameError("source", name, names)


def check_columns(topology: Topology, sources: Mapping[str, EventSource]) -> None:
    """What sources make has the columns that the operators behind them need, if it is known."""
    for name, source in sources.items():
        columns = source.columns
        if columns is not None:
            for edge in topology.outgoing[name]:
                topology.by_name[edge.target].check_columns(columns, name)


def check_functions(chains: Chains) -> None:
    """Functions ask for events in a form that there is, and for a `Context` if they may."""
    for operator in chains.declared.operators:
        try:
            input_of(operator.function)
        except InvalidInputError as error:
            raise InvalidInputError(f"operator {operator.name!r}: {error}") from None
        asks = context_parameter(operator.function) is not None
        head = chains.declared.by_name[chains.head(operator.name)]
        if asks and head.router.replica_side(0) is not None:
            raise InvalidInputError(
                f"the operator {operator.name!r} asks for a Context, but the grouping of "
                f"{head.name!r} runs events value by value, not in units: choose another grouping"
            )


def checked_initial(topology: Topology, initial: Mapping[str, int]) -> dict[str, int]:
    """How many replicas a run begins with, where that is not the minimum."""
    for name, count in initial.items():
        if name not in topology.by_name:
            raise UnknownNameError("operator", name, topology.by_name)
        least, most = topology.by_name[name].minimum, topology.by_name[name].pool
        if not least <= count <= most:
            raise InvalidInputError(f"initial={count} replicas of {name!r}: give {least} to {most}")
    return dict(initial)


def check_outputs(topology: Topology, names: Iterable[str]) -> None:
    """Every output is that of an operator; this much is known without a session."""
    for name in names:
        if name not in topology.by_name:
            raise UnknownNameError("operator", name, topology.by_name)


def checked_outputs(
    topology: Topology, outputs: Mapping[str, str | StructType]
) -> dict[str, StructType]:
    """The schemas of the outputs, each of an operator of the topology."""
    check_outputs(topology, outputs)
    schemas: dict[str, StructType] = {}
    for name, schema in outputs.items():
        try:
            parsed = StructType.fromDDL(schema) if isinstance(schema, str) else schema
        except PySparkException as error:
            problem = str(error).strip().partition("\n")[0]
            raise InvalidInputError(
                f"the schema of the output {name!r} is {schema!r}: {problem}"
            ) from None
        if not isinstance(parsed, StructType):
            raise InvalidInputError(
                f"the schema of the output {name!r} is {schema!r}: write columns, as in "
                "'id long, label string'"
            )
        schemas[name] = parsed
    return schemas
