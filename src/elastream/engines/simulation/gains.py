"""Where events go, and how many they become."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from elastream.core.behaviour import Behaviour
from elastream.core.topology import Topology


@dataclass(frozen=True, slots=True)
class Gains:
    """What one processed event of an origin sends down each of its edges."""

    targets: Mapping[str, Mapping[str, float]]

    @classmethod
    def of(cls, topology: Topology, behaviour: Behaviour) -> Gains:
        """Selectivity times the share of each edge."""
        found: dict[str, dict[str, float]] = {}
        for name, edges in topology.outgoing.items():
            alpha = behaviour.of(topology, name).selectivity if name in topology.by_name else 1.0
            found[name] = {edge.target: alpha * behaviour.share(edge) for edge in edges}
        return cls(found)
