"""What every worker has to know; it travels inside the Spark task."""

from __future__ import annotations

from base64 import b64decode, b64encode
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any

from pyspark import cloudpickle

from elastream.core.chains import Chains
from elastream.core.lanes import lane_count
from elastream.core.topology import Operator, Topology
from elastream.engines.spark.backends.base import Backend, Connection
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.backends.members import MemberName
from elastream.engines.spark.backends.outbox import output_of
from elastream.engines.spark.options import Options
from elastream.engines.spark.worker.back_pressure import BackPressure
from elastream.engines.spark.worker.member import HAND_OVER_SECONDS, Member
from elastream.engines.spark.worker.relay import Relay
from elastream.engines.spark.worker.replica import Replica
from elastream.engines.spark.worker.routing import Router
from elastream.engines.spark.worker.trace_player import TracePlayer, TraceSource
from elastream.errors import InvalidInputError, described


@dataclass(frozen=True)
class Deployment:
    """The pipeline, where its events come from, where its state lives, and how it treats errors."""

    topology: Topology
    traces: dict[str, TraceSource]
    """The sources that play a trace; DataFrames feed the others."""
    options: Options
    backend: Backend
    outputs: frozenset[str] = frozenset()
    """The operators whose output can be read as a DataFrame."""
    chosen: Chains | None = None
    """Which operators share replicas; those that the topology asks for unless given."""

    @cached_property
    def chains(self) -> Chains:
        """Which operators share replicas."""
        return self.chosen or Chains.planned(self.topology)

    def to_text(self) -> str:
        """As an option of Spark's data source can carry it."""
        try:
            pickled: bytes = cloudpickle.dumps(self)  # type: ignore[no-untyped-call]
        except Exception as error:
            raise InvalidInputError(
                f"{self._stuck} cannot be sent to replicas: {described(error)}; what cannot be "
                "pickled, such as a lock or a connection, belongs in setup, which runs in every "
                "replica"
            ) from error
        return b64encode(pickled).decode()

    @property
    def _stuck(self) -> str:
        """Which of the user's functions cannot be pickled."""
        for operator in self.topology.operators:
            for part in ("function", "setup", "teardown"):
                if not _travels(getattr(operator, part)):
                    return f"the {part} of the operator {operator.name!r}"
        for edge in self.topology.edges:
            if not _travels(edge.when):
                return f"when= of the edge from {edge.origin!r} to {edge.target!r}"
        for name, trace in self.traces.items():
            if not _travels(trace.make):
                return f"make(first, count) of the source {name!r}"
        return f"the pipeline {self.topology.name!r}"

    @staticmethod
    def from_text(text: str) -> Deployment:
        """What `to_text` made, in a worker of the same run."""
        deployment: Deployment = cloudpickle.loads(b64decode(text))
        return deployment

    @property
    def members(self) -> list[MemberName]:
        """Every source and every replica; those that the minimum needs come first."""
        topology = self.chains.topology
        sources = [(source.name, 0) for source in topology.sources]
        replicas = [
            (operator.name, number)
            for operator in topology.operators
            for number in range(operator.pool)
        ]
        return [*sources, *sorted(replicas, key=lambda one: not self._in_minimum(one))]

    @property
    def required(self) -> list[MemberName]:
        """Of the members, the sources and the minimum: without them, events do not flow."""
        by_name = self.chains.topology.by_name
        return [one for one in self.members if one[0] not in by_name or self._in_minimum(one)]

    def _in_minimum(self, replica: MemberName) -> bool:
        return replica[1] < self.chains.topology.by_name[replica[0]].minimum

    @property
    def layout(self) -> dict[str, OperatorLanes]:
        """The lanes of every operator and source; one inside a chain needs only one."""
        sources = {source.name: OperatorLanes(1) for source in self.topology.sources}
        chained = self.chains.chained
        return sources | {
            name: OperatorLanes(1, chained_to=chained[name]) if name in chained else _lanes_of(op)
            for name, op in self.topology.by_name.items()
        }

    def member(self, name: MemberName, connection: Connection, generation: int) -> Member:
        """One of them, ready to run."""
        node, number = name
        by_name, chained = self.topology.by_name, self.chains.chained
        inside = self.chains.members(node) if node in by_name else (node,)
        edges = [edge for each in inside for edge in self.topology.outgoing[each]]
        targets = list(dict.fromkeys(edge.target for edge in edges if edge.target not in chained))
        keyed = [target for target in targets if by_name[target].router.key_is_lane]
        outputs = [output_of(each) for each in inside if each in self.outputs]
        seed = f"{node}.{number}"
        pressure = BackPressure(connection.lanes, targets, keyed, outputs, self.options, seed)
        routers = {
            each: Router((each, number), self.topology, pressure, each in self.outputs, chained)
            for each in inside
        }
        timeouts = [by_name[each].timeout or 0.0 for each in inside if each in by_name]
        hand_over = max(sum(timeouts), HAND_OVER_SECONDS)
        common: tuple[Any, ...] = (name, generation, connection, list(routers.values()))
        common = (*common, pressure, hand_over)
        if node in self.traces:
            return TracePlayer(self.traces[node], *common)
        if node not in by_name:
            return Relay(*common)
        return Replica(self.chains, self.options.on_error, self.backend, routers, *common)


def _travels(function: object) -> bool:
    try:
        cloudpickle.dumps(function)  # type: ignore[no-untyped-call]
    except Exception:
        return False
    return True


def _lanes_of(operator: Operator) -> OperatorLanes:
    grouping = operator.router
    return OperatorLanes(
        lanes=lane_count(operator.pool, operator.lanes),
        key=operator.key if grouping.key_is_lane else None,
        shared=grouping.shared_queue,
    )


def send_by_value(module: ModuleType) -> None:
    """Pickle a module's functions by value: workers cannot import what is not installed."""
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
