"""Telling producers how loaded the replicas of their successors are, for groupings that ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from elastream.core.chains import Chains
from elastream.core.groupings.base import ReplicaLoads, Utilization
from elastream.core.topology import Topology
from elastream.engines.spark.backends.board import Board
from elastream.engines.spark.backends.ledger import Totals
from elastream.engines.spark.backends.members import Attendance, MemberName
from elastream.engines.spark.driver.condition import Condition
from elastream.engines.spark.driver.statistics import Samples, interval_stats

LOADS_SECONDS = 1.0
"""How often, at least, groupings that need it hear what waits for replicas, in seconds."""

_LOADS = frozenset({ReplicaLoads, Utilization})


def wanted_by(topology: Topology) -> bool:
    """Whether any grouping listens to it."""
    return any(operator.router.listens_to & _LOADS for operator in topology.operators)


class LoadReports:
    """Posts what every operator's grouping listens to, at the end of every window.

    Args:
        chains: What runs.
        board: Where to post it; nobody else uses its connection.
        before: What was counted when the first window began.
        condition: The condition of these members.
    """

    def __init__(
        self,
        chains: Chains,
        board: Board,
        before: Totals,
        condition: Callable[[Mapping[MemberName, Attendance]], Condition],
    ) -> None:
        self._chains = chains
        self._board = board
        self._before = before
        self._condition = condition

    def post(self, duration: float, totals: Totals, samples: Samples) -> None:
        """Let groupings know how loaded replicas were in a window."""
        before, self._before = self._before, totals
        condition = self._condition(self._board.members())
        stats = interval_stats(self._chains, 0, duration, before, totals, condition, samples)
        for name, operator in self._chains.topology.by_name.items():
            wanted, pool = operator.router.listens_to, operator.pool
            of = stats.operators[name]
            if ReplicaLoads in wanted:
                self._board.post((name, 0), ReplicaLoads.of(of, pool, stats.duration))
            if Utilization in wanted and of.execution_time is not None:
                busy = stats.utilization(name)
                levels = tuple(busy.get(number, 0.0) for number in range(pool))
                utilization = Utilization(levels, of.execution_time / stats.duration)
                self._board.post((name, 0), utilization)
