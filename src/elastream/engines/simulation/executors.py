"""Simulated executors: each brings task slots, some time after it was asked for."""

from __future__ import annotations

from dataclasses import dataclass

from elastream.core.stats import ExecutorStats
from elastream.errors import InvalidInputError


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorSettings:
    """A cluster whose executors follow plans."""

    slots: int
    """How many tasks an executor runs at once."""
    lead: float
    """How long it takes to come, in seconds."""
    limits: tuple[int, int]
    """How few and how many there may be; a run begins with the fewest."""

    def __post_init__(self) -> None:
        least, most = self.limits
        if self.slots < 1 or not 0 <= self.lead < float("inf") or not 1 <= least <= most:
            raise InvalidInputError(
                f"executors with {self.slots} slots that come after {self.lead:g} s, {least} to "
                f"{most}: give 1 slot or more, 0 s or more, and a minimum from 1 to the maximum"
            )


class ExecutorSchedule:
    """How many executors there are over time.

    >>> schedule = ExecutorSchedule(ExecutorSettings(slots=4, lead=5.0, limits=(1, 3)), sources=1)
    >>> schedule.want(3, now=0.0)
    >>> schedule.rooms
    [(0.0, 3), (5.0, 11)]
    >>> schedule.pass_to(10.0)
    >>> schedule.collect()  # One for 5 s, then three.
    ExecutorStats(present=3, seconds=20.0, slots=4, beside=1, wanted=3, lead=5.0, limits=(1, 3))
    """

    def __init__(self, settings: ExecutorSettings, sources: int) -> None:
        self._settings = settings
        self._sources = sources
        self._present = self._wanted = settings.limits[0]
        self._due: list[tuple[float, int]] = []
        """When more come, and how many there are then."""
        self._passed = self._seconds = 0.0

    @property
    def rooms(self) -> list[tuple[float, int]]:
        """From when on there are how many slots for replicas, from now on."""
        counts = [(self._passed, self._present), *self._due]
        return [(time, count * self._settings.slots - self._sources) for time, count in counts]

    def want(self, count: int, now: float) -> None:
        """Ask for this many in total; those that are too many go at once."""
        least, most = self._settings.limits
        if not least <= count <= most:
            raise InvalidInputError(f"{count} executors: {least} to {most} are allowed")
        self._present = min(self._present, count)
        due = [(time, min(there, count)) for time, there in self._due if self._present < count]
        if count > max([self._present, *(there for _, there in due)]):
            due.append((now + self._settings.lead, count))
        self._due, self._wanted = due, count

    def pass_to(self, time: float) -> None:
        """Let those come that are due by then."""
        while self._due and self._due[0][0] <= time:
            at, count = self._due.pop(0)
            self._pay_until(at)
            self._present = count
        self._pay_until(time)

    def collect(self) -> ExecutorStats:
        """What there is to know about the time since the last call."""
        seconds, self._seconds = self._seconds, 0.0
        return ExecutorStats(
            present=self._present,
            seconds=seconds,
            slots=self._settings.slots,
            beside=self._sources,
            wanted=self._wanted,
            lead=self._settings.lead,
            limits=self._settings.limits,
        )

    def _pay_until(self, time: float) -> None:
        self._seconds += self._present * (time - self._passed)
        self._passed = time
