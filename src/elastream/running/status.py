"""The status of a run: events in, events out, events set aside, and events that wait."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from elastream.core.evaluation import events_out
from elastream.core.health import STARTING, Health, State
from elastream.core.stats import IntervalStats, Latency, OperatorStats
from elastream.core.topology import Topology


@dataclass(frozen=True, slots=True)
class Counted:
    """What intervals or sampling windows add up to."""

    emitted: float = 0.0
    """Events that the sources sent on."""
    events_out: float = 0.0
    """Events that operators without a successor have processed."""
    set_aside: Mapping[str, float] = field(default_factory=dict)
    """Events on which operators failed, by operator; operators without any are left out."""
    processed: Mapping[str, float] = field(default_factory=dict)
    """Events on which functions did not fail, by function: also those inside a chain."""
    failed: frozenset[str] = frozenset()
    """The functions that failed on any event."""
    newest: IntervalStats | None = None

    @property
    def events_in(self) -> float:
        """Events that arrived at the sources, also those that they hold back now."""
        held = self.newest.sources.values() if self.newest else ()
        return self.emitted + sum(source.queued for source in held)

    @property
    def useless(self) -> list[str]:
        """The functions that failed on every event that reached them."""
        return sorted(name for name in self.failed if not self.processed[name])

    def after(self, topology: Topology, stats: IntervalStats) -> Counted:
        """With one more of them."""
        set_aside = dict(self.set_aside)
        for name, of in stats.operators.items():
            if of.set_aside:
                set_aside[name] = set_aside.get(name, 0.0) + of.set_aside
        functions = _functions(stats)
        return replace(
            self,
            processed={
                name: self.processed.get(name, 0.0) + of.processed for name, of in functions.items()
            },
            failed=self.failed | {name for name, of in functions.items() if of.set_aside},
            emitted=self.emitted + stats.input,
            events_out=self.events_out + events_out(topology, stats),
            set_aside=set_aside,
            newest=stats,
        )


def _functions(stats: IntervalStats) -> dict[str, OperatorStats]:
    """Every operator; instead of a chain, those inside it."""
    found: dict[str, OperatorStats] = {}
    for name, of in stats.operators.items():
        found |= of.inside or {name: of}
    return found


@dataclass(frozen=True, slots=True)
class Status:
    """A run at one moment. `print(run.status())` shows it in one line.

    Examples:
        >>> print(Status("orders", Health(), True, 12.0, 2400, 2390, {"price": 10.0}))
        orders: running, 12 s, 2,400 events in, 2,390 out, 10 set aside
    """

    name: str
    """The name of the pipeline."""
    health: Health = STARTING
    """Its health, and why; after its end, the last one."""
    active: bool = True
    """Whether it is still running."""
    seconds: float = 0.0
    """How long it has been running."""
    events_in: float = 0.0
    """Events that arrived at the sources since this run started."""
    events_out: float = 0.0
    """Events that operators without a successor have processed."""
    set_aside: Mapping[str, float] = field(default_factory=dict)
    """Events on which operators failed, by operator. They are kept: `elastream dead-letters`."""
    waiting: Mapping[str, float] = field(default_factory=dict)
    """Events that wait for each operator."""
    replicas: Mapping[str, int] = field(default_factory=dict)
    """Active replicas of each operator."""
    executors: int | None = None
    """Executors of the cluster; None where there are none."""
    latency: Latency | None = None
    """From a source to the end of the pipeline, in the last sampling window."""

    def __str__(self) -> str:
        state = str(self.health)
        if not self.active:
            state = "ended" if self.health.state is State.RUNNING else f"ended ({state})"
        parts = [
            f"{self.name}: {state}",
            f"{self.seconds:,.0f} s",
            f"{self.events_in:,.0f} events in",
            f"{self.events_out:,.0f} out",
        ]
        aside = sum(self.set_aside.values())
        if aside:
            parts.append(f"{aside:,.0f} set aside")
        waiting = sum(self.waiting.values())
        if waiting:
            parts.append(f"{waiting:,.0f} waiting")
        if self.replicas:
            parts.append("replicas " + ", ".join(f"{n} {c}" for n, c in self.replicas.items()))
        if self.executors is not None:
            parts.append(f"{self.executors} executor{'' if self.executors == 1 else 's'}")
        return ", ".join(parts)
