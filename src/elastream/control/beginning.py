"""How many replicas a run begins with, before anything has been measured.

A run that resumes begins with the replicas that the earlier one ended with. Otherwise, where the
first input and the cost of an event are known, the policy decides once, as if that input had
already come for one interval. Where they are not known, an operator begins with half of its pool:
for one interval, too many replicas do less harm than too few.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from elastream.core.decision import Plan, Reason
from elastream.core.equations import pa_sps
from elastream.core.stats import (
    EdgeName,
    IntervalStats,
    OperatorStats,
    ReplicaStats,
    SourceStats,
)
from elastream.core.topology import Topology
from elastream.policies.base import Context, Policy
from elastream.policies.guards import Guard, guarded
from elastream.predictors.base import Forecast

REASON = Reason("beginning", {}, "nothing measured yet")


@dataclass(frozen=True)
class Beginning:
    """What is known before the first interval."""

    topology: Topology
    shares: Mapping[EdgeName, float]
    """θ_i^p of every edge, as declared."""
    execution_times: Mapping[str, float]
    """In seconds per event, of the operators that say so."""
    td: float
    """The length of an interval, in seconds."""
    rates: Mapping[str, float] = field(default_factory=dict)
    """What the sources will send in the first interval, in events per second, where known."""
    earlier: Mapping[str, int] = field(default_factory=dict)
    """The replicas that an earlier run ended with."""

    def replicas(self, policy: Policy, guards: Sequence[Guard] = ()) -> dict[str, int]:
        """The active replicas of every operator in the first interval."""
        fixed = policy.before(self.topology, self.shares, self.execution_times, self.td)
        counts = {name: fixed.get(name, count) for name, count in self._needed.items()}
        context = self._context(policy, counts)
        if not fixed and self._open:
            try:
                wanted = policy.decide(context).replicas
            except Exception:  # The loop asks it again soon, and says what is wrong with it.
                wanted = {}
            counts |= {name: wanted[name] for name in self._open if name in wanted}
        plan = Plan(counts, dict.fromkeys(counts, (REASON,)))
        return dict(guarded(plan, context, guards).replicas)

    @cached_property
    def _received(self) -> dict[str, float]:
        """Events per second at every node, or nothing unless all sources are known."""
        found: dict[str, float] = {}
        if self.rates.keys() != {source.name for source in self.topology.sources}:
            return found
        for name in self.topology.order:
            incoming = self.topology.incoming[name]
            parts = (self.shares[edge.origin, name] * found[edge.origin] for edge in incoming)
            found[name] = self.rates[name] if name in self.rates else sum(parts)
        return found

    @property
    def _open(self) -> list[str]:
        """The operators that the policy decides about: their input and cost are known."""
        known = self.execution_times.keys() & self._received.keys()
        return [name for name in self.topology.by_name if name in known - self.earlier.keys()]

    @cached_property
    def _needed(self) -> dict[str, int]:
        """As many as in the earlier run, or by PA-SPS equation 2, or half of the pool."""
        found = {}
        for name, of in self.topology.by_name.items():
            if name in self._open:
                rate, each = self._received[name], self.execution_times[name]
                found[name] = pa_sps.replicas(rate, each, 1.0, of.minimum, of.pool)
            else:
                wanted = self.earlier.get(name, math.ceil(of.pool / 2))
                found[name] = min(max(wanted, of.minimum), of.pool)
        return found

    def _context(self, policy: Policy, counts: Mapping[str, int]) -> Context:
        """As if the first interval had already gone by once, with these replicas."""
        events = {name: self.td * rate for name, rate in self._received.items()}
        names = [source.name for source in self.topology.sources]
        stats = IntervalStats(
            interval=-1,
            duration=self.td,
            sources={name: SourceStats(events.get(name, 0.0), 0.0) for name in names},
            operators={
                name: self._operator(name, events.get(name, 0.0), count)
                for name, count in counts.items()
            },
            edges={edge: share * events.get(edge[0], 0.0) for edge, share in self.shares.items()},
        )
        ahead, each = policy.horizon_after(stats), policy.operator_horizon
        return Context(
            topology=self.topology,
            past=(stats,),
            execution_times=self.execution_times,
            shares=self.shares,
            forecast=_constant(stats.input, ahead) if ahead else None,
            operator_forecasts={
                name: _constant(of.received, each) for name, of in stats.operators.items() if each
            },
        )

    def _operator(self, name: str, events: float, count: int) -> OperatorStats:
        """Everything was processed, by equally busy replicas."""
        busy = min(events * self.execution_times.get(name, 0.0), count * self.td)
        one = ReplicaStats(events / count, busy / count, cpu=busy / count / self.td)
        replicas = dict.fromkeys(range(count), one)
        return OperatorStats(events, events, events, 0.0, busy, count, replicas=replicas)


def _constant(events: float, intervals: int) -> Forecast:
    return Forecast(np.full(intervals, events), "the first input again")
