"""The paths of a pipeline, as `slo` sees them: how long they take, and where more replicas help."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from elastream.core.slowest_path import SlowestPaths
from elastream.core.stats import EdgeName
from elastream.core.topology import Topology
from elastream.policies.slo.load import OperatorLoad


@dataclass(frozen=True)
class Raised:
    """Replicas that keep a latency, as far as any do."""

    counts: Mapping[str, int]
    fed: Mapping[str, float]
    """What then reaches every operator, in events per second."""
    paths: SlowestPaths


@dataclass(frozen=True)
class LoadedPaths:
    """The operators of a pipeline, with what each has to do."""

    topology: Topology
    loads: Mapping[str, OperatorLoad]
    shares: Mapping[EdgeName, float]

    def with_full_pools(self) -> dict[str, float]:
        """How long events take at every operator with all replicas of all pools, in seconds."""
        pools = {name: self.topology.by_name[name].pool for name in self.loads}
        fed = self._fed(pools)
        return {name: load.latency(pools[name], fed[name]) for name, load in self.loads.items()}

    def raised(
        self,
        counts: Mapping[str, int],
        most: Mapping[str, int],
        goal: float,
        hopeless: Set[str],
    ) -> Raised:
        """Add replicas where they help most, until the slowest path keeps the goal.

        Hopeless operators get as many as they may have, and do not count in the paths.
        """
        found = {**counts, **{name: most[name] for name in hopeless}}
        fed = self._fed(found)
        times = {
            name: load.latency(found[name], fed[name])
            for name, load in self.loads.items()
            if name not in hopeless
        }
        paths = SlowestPaths(self.topology, times)

        def best_of(names: Iterable[str]) -> str | None:
            gains = {}
            for name in names:
                if name in found and found[name] < most[name]:
                    load, count, rate = self.loads[name], found[name], fed[name]
                    gains[name] = load.latency(count, rate) - load.latency(count + 1, rate)
            best = max(gains, key=lambda name: gains[name], default=None)
            return best if best is not None and gains[best] > 0 else None

        while paths.longest > goal:
            # Where the slowest path gains no more, another one that is too slow may.
            best = best_of(paths.slowest()) or best_of(
                name for name in found if paths.through(name) > goal
            )
            if best is None:
                break
            found[best] += 1
            before, fed = fed, self._fed(found)
            changed = [name for name in times if name == best or fed[name] != before[name]]
            paths.change(self._latencies(changed, found, fed))
        paths.change(self._latencies(hopeless, found, fed))
        return Raised(found, fed, paths)

    def _latencies(
        self, names: Iterable[str], counts: Mapping[str, int], fed: Mapping[str, float]
    ) -> dict[str, float]:
        return {name: self.loads[name].latency(counts[name], fed[name]) for name in names}

    def _fed(self, counts: Mapping[str, int]) -> dict[str, float]:
        """What reaches every operator with these replicas, in events per second.

        What waits at one operator cannot wait at the next: only the first that has too few replicas
        falls behind.
        """
        fed: dict[str, float] = {}
        kept_back: dict[str, float] = {}
        for name in self.topology.order:
            if name in self.loads:
                load = self.loads[name]
                missing = [
                    self.shares[edge.origin, name] * kept_back[edge.origin]
                    for edge in self.topology.incoming[name]
                    if edge.origin in kept_back
                ]
                fed[name] = max(load.rate - sum(missing), 0.0)
                most = counts[name] / load.cost if load.cost > 0 else math.inf
                kept_back[name] = load.rate - min(fed[name], most)
        return fed


def reach(
    topology: Topology, times: Mapping[str, float], shares: Mapping[EdgeName, float]
) -> dict[str, float]:
    """What full pools can pass on to every node at most, in events per second."""
    found: dict[str, float] = {}
    passed: dict[str, float] = {}
    for name in topology.order:
        parts = [
            shares[edge.origin, name] * passed[edge.origin]
            for edge in topology.incoming[name]
            if shares[edge.origin, name] > 0
        ]
        found[name] = sum(parts) if topology.incoming[name] else math.inf
        cost = times.get(name, 0.0)
        passed[name] = min(found[name], topology.by_name[name].pool / cost if cost else math.inf)
    return found
