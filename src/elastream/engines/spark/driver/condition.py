"""The condition of replicas: who is there, who is busy for too long, and who has fallen silent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property

from elastream.core.health import Health, State
from elastream.core.stats import IntervalStats
from elastream.engines.spark.backends.board import LanePlan
from elastream.engines.spark.backends.ledger import Totals
from elastream.engines.spark.backends.members import Attendance, MemberName
from elastream.engines.spark.backends.outbox import output_of

SILENT_SECONDS = 15.0
"""A member that has been silent for this long counts as dead. Busy ones beat every 4.5 s, idle ones
every 5 s, or 9 if they are woken just before."""
STALLED_SECONDS = 10.0
"""A replica that has been busy with one unit for this long may be stalled, ..."""
STALLED_UNITS = 20.0
"""... and is, if that is this many times what a unit usually takes."""


class Heartbeats:
    """Notices members that have gone silent, by a clock that nobody can set back."""

    def __init__(self) -> None:
        self._seen: dict[MemberName, tuple[Attendance, float]] = {}

    def silent(self, members: Mapping[MemberName, Attendance], now: float) -> frozenset[MemberName]:
        """Those whose heart has not beaten for too long.

        >>> heartbeats, member = Heartbeats(), ("work", 0)
        >>> before = {member: Attendance("1:a", 1, heartbeat=5, busy_for=0.0)}
        >>> heartbeats.silent(before, now=0.0), heartbeats.silent(before, now=60.0)
        (frozenset(), frozenset({('work', 0)}))
        """
        for name, attendance in members.items():
            if self._seen.get(name, (None, 0.0))[0] != attendance:
                self._seen[name] = attendance, now
        return frozenset(name for name in members if now - self._seen[name][1] > SILENT_SECONDS)


class Condition:
    """Who of an operator's replicas is active, draining, pending, dead or stalled."""

    def __init__(
        self,
        plan: LanePlan,
        wanted: Mapping[str, int],
        members: Mapping[MemberName, Attendance],
        silent: frozenset[MemberName],
    ) -> None:
        self._plan = plan
        self._wanted = wanted
        self._members = members
        self._silent = silent
        self._busy: defaultdict[str, dict[int, float]] = defaultdict(dict)
        """By operator: how long functions had been running at the last heartbeat of replicas."""
        for (operator, number), attendance in members.items():
            if attendance.busy_for and (operator, number) not in silent:
                self._busy[operator][number] = attendance.busy_for

    def active(self, operator: str) -> list[int]:
        """Those that the plan names and that are there."""
        return [
            number
            for number in self._plan.active.get(operator, ())
            if (operator, number) in self._members and (operator, number) not in self._silent
        ]

    @cached_property
    def cores(self) -> dict[MemberName, int]:
        """The core of every active replica whose machine is known.

        A system moves processes from core to core. So that they share as they do on average,
        those of a machine are dealt out to its cores in turn.
        """
        found: dict[MemberName, int] = {}
        first: dict[tuple[str, int], int] = {}
        dealt: defaultdict[tuple[str, int], int] = defaultdict(int)
        for operator in self._plan.active:
            for number in self.active(operator):
                machine = self._members[operator, number].machine
                if machine is None:
                    continue
                before = sum(cores for _, cores in first)
                found[operator, number] = first.setdefault(machine, before) + (
                    dealt[machine] % machine[1]
                )
                dealt[machine] += 1
        return found

    def dead(self, operator: str) -> int:
        """How many of them have gone silent."""
        planned = self._plan.active.get(operator, ())
        return sum((operator, number) in self._silent for number in planned)

    def pending(self, operator: str) -> int:
        """How many are wanted and not there."""
        return max(self._wanted[operator] - len(self.active(operator)) - self.dead(operator), 0)

    def draining(self, operator: str, totals: Totals) -> int:
        """How many the plan does not name that still hold lanes, or are busy with a unit.

        Those that take from a shared queue hold none.
        """
        there: set[int | None] = {lane.owner for lane in totals.lanes.get(operator, {}).values()}
        there |= self._busy[operator].keys()
        silent = {number for name, number in self._silent if name == operator}
        return len(there - set(self._plan.active.get(operator, ())) - silent - {None})

    def busy_for_long(self, operator: str) -> dict[int, float]:
        """Those that have been busy with one unit for so long that they may be stalled."""
        return {
            number: seconds
            for number, seconds in self._busy[operator].items()
            if seconds > STALLED_SECONDS
        }


def stalls(stats: IntervalStats) -> list[Health]:
    """What stalled replicas mean for the health of a run."""
    return [
        Health(
            State.DEGRADED,
            f"replica {name}/{number} has been busy with one unit for {seconds:,.0f} s",
        )
        for name, of in stats.operators.items()
        for number, seconds in of.stalled.items()
    ]


def absences(stats: IntervalStats) -> list[Health]:
    """What operators without any replica mean for the health of a run: their events wait."""
    return [
        Health(State.WAITING, f"no replica of {name!r} is there: its workers wait for task slots")
        for name, of in stats.operators.items()
        if of.pending and not of.active
    ]


def unread(
    operators: Iterable[str], queue_size: int, before: Totals, after: Totals
) -> list[Health]:
    """What outputs that stay full mean for the health of a run: their replicas wait for readers."""
    return [
        Health(
            State.WAITING,
            f"the output of {name!r} is full, with {after.waiting(output_of(name)):,} events: "
            "is the query running that reads it?",
        )
        for name in operators
        if min(before.waiting(output_of(name)), after.waiting(output_of(name))) >= queue_size
    ]
