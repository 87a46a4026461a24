"""What every replica has to know, as a file in the state folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from pyspark import cloudpickle

from elastream.core.topology import Topology
from elastream.engines.spark.backends.base import ReplicaName, Transport
from elastream.engines.spark.options import Handling
from elastream.engines.spark.worker.outlet import Outlet
from elastream.engines.spark.worker.relay import Relay
from elastream.engines.spark.worker.replica import Replica
from elastream.engines.spark.worker.trace_player import Source, SourceRunner

PIPELINE_FILE = "pipeline.pickle"


@dataclass(frozen=True)
class Deployment:
    """The pipeline, where its events come from, and how long its queues may be."""

    topology: Topology
    sources: dict[str, Source]
    """Those that play a trace; DataFrames feed the others."""
    handling: Handling
    outputs: frozenset[str] = frozenset()
    """The operators whose output can be read as a DataFrame."""

    def save(self, folder: Path) -> None:
        """Write it where replicas look for it."""
        (folder / PIPELINE_FILE).write_bytes(cloudpickle.dumps(self))  # type: ignore[no-untyped-call]

    @staticmethod
    def load(folder: Path) -> Deployment:
        """What `save` wrote."""
        deployment: Deployment = cloudpickle.loads((folder / PIPELINE_FILE).read_bytes())
        return deployment

    @property
    def members(self) -> list[ReplicaName]:
        """Every source, and every replica of every pool."""
        replicas = [
            (operator.name, number)
            for operator in self.topology.operators
            for number in range(operator.pool)
        ]
        return [*((source.name, 0) for source in self.topology.sources), *replicas]

    def member(
        self, name: str, number: int, transport: Transport
    ) -> SourceRunner | Relay | Replica:
        """One of them, ready to run."""
        put_out = name in self.outputs
        outlet = Outlet((name, number), self.topology, transport, self.handling, put_out)
        if name in self.sources:
            return SourceRunner(name, self.sources[name], outlet, transport)
        if name not in self.topology.by_name:
            return Relay(name, outlet, transport)
        return Replica(self.topology, name, number, outlet, transport, self.handling.on_error)


def send_by_value(module: ModuleType) -> None:
    """Let a module's functions travel as they are: workers cannot import what is not installed."""
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
