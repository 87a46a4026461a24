"""Incidents: events that were set aside, and workers whose process was replaced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace

from elastream.core.stats import IntervalStats, OperatorStats
from elastream.engines.spark.backends.dead_letters import DeadLetters
from elastream.engines.spark.backends.members import Attendance, MemberName


class Incidents:
    """Counts what has gone wrong from one look to the next.

    Args:
        dead_letters: A connection's own; those that are there already do not count.
    """

    def __init__(self, dead_letters: DeadLetters) -> None:
        self._dead_letters = dead_letters
        self._newest, _ = dead_letters.errors(after=0)
        self._processes: dict[MemberName, Attendance] = {}

    def noted(
        self, stats: IntervalStats, members: Mapping[MemberName, Attendance]
    ) -> IntervalStats:
        """The statistics, with what has gone wrong since the last call."""
        self._newest, errors = self._dead_letters.errors(self._newest)
        restarted = self._restarted(members)
        operators = dict(stats.operators)
        for name, of in operators.items():
            if errors:
                inside = {each: _with(part, each, errors) for each, part in of.inside.items()}
                operators[name] = replace(_with(of, name, errors, of.inside), inside=inside)
            if restarted[name]:
                operators[name] = replace(operators[name], restarted=restarted[name])
        return replace(stats, operators=operators)

    def _restarted(self, members: Mapping[MemberName, Attendance]) -> Counter[str]:
        """How many members of each operator have another process of the same generation."""
        restarted: Counter[str] = Counter()
        for name, now in members.items():
            before = self._processes.get(name)
            if before and before.generation == now.generation and before.process != now.process:
                restarted[name[0]] += 1
        self._processes = dict(members)
        return restarted


def _with(
    of: OperatorStats,
    name: str,
    errors: Mapping[tuple[str, str], int],
    inside: Collection[str] = (),
) -> OperatorStats:
    """An operator with its errors; a chain with those of all operators inside."""
    mine: Counter[str] = Counter()
    for (operator, error), events in errors.items():
        if operator == name or operator in inside:
            mine[error] += events
    if not mine:
        return of
    return replace(
        of,
        set_aside=float(mine.total()),
        errors={error: float(events) for error, events in mine.items()},
    )
