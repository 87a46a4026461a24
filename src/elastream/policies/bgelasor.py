"""`srea`, `spea` and `cba`: the elasticity algorithms of BGElasor (sections 3.3 and 4.3).

They keep an operator's capacity at or above its input: λ_o·n ≥ in, with λ_o = td/et events per
interval, which the paper calls an epoch. The paper's engine discards what waits; here nothing is
lost, so queued events count as input of the next interval.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

from elastream.core.decision import Plan, Reason
from elastream.core.equations import pa_sps
from elastream.core.equations.bgelasor import Prices
from elastream.core.schedules import balanced_schedule, proactive_schedule
from elastream.policies.base import Context, Policy, checked_count, unknown_cost


@dataclass(frozen=True)
class _PerOperator(Policy):
    """Decides for every operator from its own load, current and forecast."""

    paper = "BGElasor, section 4.3"

    def decide(self, context: Context) -> Plan:
        """Each operator by itself."""
        counts: dict[str, int] = dict(context.active)
        reasons: dict[str, tuple[Reason, ...]] = {}
        for name, active in context.active.items():
            if name not in context.execution_times:
                reasons[name] = (unknown_cost(),)
                continue
            loads = self._loads(context, name)
            need = [_need(context, name, load) for load in loads]
            counts[name] = self._replicas(active, need)
            rates = [load / context.td for load in loads]
            facts: dict[str, float | str] = {
                "rates": ", ".join(f"{rate:,.0f}" for rate in rates),
                "needs": ", ".join(map(str, need)),
            }
            reasons[name] = (Reason("load", facts, in_words(rates, need)),)
        return Plan(counts, reasons)

    def _loads(self, context: Context, name: str) -> Sequence[float]:
        """Events of the current interval and of the coming ones."""
        stats = context.stats.operators[name]
        if not self.operator_horizon:
            return [stats.received + stats.queued]
        ahead = context.operator_forecasts[name].values[: self.operator_horizon].tolist()
        return [stats.received, ahead[0] + stats.queued, *ahead[1:]]

    @abstractmethod
    def _replicas(self, active: int, need: Sequence[int]) -> int:
        """Replicas in the next interval, given what the operator needs in each."""


@dataclass(frozen=True)
class Srea(_PerOperator):
    """Standard reactive elasticity: what the current load needs."""

    name = "srea"

    def _replicas(self, active: int, need: Sequence[int]) -> int:
        return need[0]


@dataclass(frozen=True)
class Spea(_PerOperator):
    """Simple proactive elasticity: what this or the next interval needs, whichever is more."""

    name = "spea"

    @property
    def operator_horizon(self) -> int:
        """The next interval."""
        return 1

    def _replicas(self, active: int, need: Sequence[int]) -> int:
        return int(proactive_schedule(active, need)[1])


@dataclass(frozen=True)
class Cba(_PerOperator):
    """Cost balance: the first step of a cheaper schedule over a horizon."""

    ahead: int = 6
    """How many intervals it looks ahead."""
    prices: Prices = field(default_factory=Prices)

    name = "cba"
    paper = "BGElasor, algorithm 1"

    def __post_init__(self) -> None:
        checked_count("ahead", self.ahead)

    @property
    def operator_horizon(self) -> int:
        """As many intervals as the schedule covers."""
        return self.ahead

    def _replicas(self, active: int, need: Sequence[int]) -> int:
        return int(balanced_schedule(active, need, self.prices)[1])


def in_words(rates: Sequence[float], need: Sequence[int]) -> str:
    """The load of the current and the coming intervals, and the replicas it needs.

    >>> in_words([120.0], [2])
    '120 events/s now need 2'
    >>> in_words([120.0, 130.0, 90.0], [3, 3, 2])
    '120 events/s now need 3; 130 expected next need 3; then 90 need 2'
    >>> in_words([120.0, 130.0, 90.0, 250.0], [3, 3, 2, 5])
    '120 events/s now need 3; 130 expected next need 3; then 90 to 250 need 2 to 5'
    """
    parts = [f"{rates[0]:,.0f} events/s now need {need[0]}"]
    if len(rates) > 1:
        parts.append(f"{rates[1]:,.0f} expected next need {need[1]}")
    if len(rates) > 2:
        later = _between(rates[2:]), _between(need[2:])
        parts.append(f"then {later[0]} need {later[1]}")
    return "; ".join(parts)


def _between(values: Sequence[float]) -> str:
    least, most = f"{min(values):,.0f}", f"{max(values):,.0f}"
    return least if least == most else f"{least} to {most}"


def _need(context: Context, name: str, load: float) -> int:
    limits = context.topology.by_name[name]
    et = context.execution_times[name]
    return pa_sps.replicas(load, et, context.td, limits.minimum, limits.pool)
