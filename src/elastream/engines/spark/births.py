"""When events arrived at their source, for a whole batch of them.

A batch is cut, joined and filtered on its way, and still every event has its own time. Times are
kept as runs: a number of events, evenly spread between the first time and the last. A trace
makes one run per batch, and joining two batches makes two runs, so a batch rarely has more than a
few.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elastream.core.latency import LatencyHistogram, bin_of, bin_start

_RUN = struct.Struct("<Idd")


class Run(NamedTuple):
    """Events one after the other."""

    events: int
    first: float
    last: float

    def at(self, place: int) -> float:
        """When the event at this place arrived."""
        if self.events == 1:
            return self.first
        return self.first + (self.last - self.first) * place / (self.events - 1)


class Births:
    """The arrival of every event of a batch, in seconds since 1970.

    Most batches leave an operator as they came, so what was stored is decoded only if need be.

    >>> births = Births.evenly(4, 10.0, 13.0)
    >>> births.cut(1, 2).times().tolist()
    [11.0, 12.0]
    """

    __slots__ = ("_data", "_runs")

    def __init__(self, runs: tuple[Run, ...] | None, data: bytes | None = None) -> None:
        self._runs = runs
        self._data = data

    @property
    def runs(self) -> tuple[Run, ...]:
        """Events that arrived one after the other, evenly."""
        if self._runs is None:
            assert self._data is not None
            self._runs = tuple([Run._make(values) for values in _RUN.iter_unpack(self._data)])
        return self._runs

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Births) and self.runs == other.runs

    def __hash__(self) -> int:
        return hash(self.runs)

    def __repr__(self) -> str:
        return f"Births({self.runs})"

    @classmethod
    def evenly(cls, events: int, first: float, last: float | None = None) -> Births:
        """Events that arrived from one moment to another, or all at once."""
        return cls((Run(events, first, first if last is None else last),) if events else ())

    @classmethod
    def joined(cls, parts: Iterable[Births]) -> Births:
        """The births of batches that are put together."""
        return cls(tuple(run for part in parts for run in part.runs))

    @property
    def events(self) -> int:
        """How many there are."""
        return sum(run.events for run in self.runs)

    def times(self) -> NDArray[np.float64]:
        """One number per event."""
        if not self.runs:
            return np.empty(0)
        return np.concatenate([np.linspace(r.first, r.last, r.events) for r in self.runs])

    def cut(self, start: int, events: int) -> Births:
        """Those of some events in a row."""
        kept = []
        for run in self.runs:
            begin, end = max(start, 0), min(start + events, run.events)
            if begin < end:
                kept.append(Run(end - begin, run.at(begin), run.at(end - 1)))
            start -= run.events
        return Births(tuple(kept))

    def chosen(self, places: NDArray[np.intp]) -> Births:
        """Those of the events at these places."""
        if not len(places):
            return Births(())
        ends = np.cumsum([run.events for run in self.runs])
        run_of = np.searchsorted(ends, places, side="right")
        # Batches are small and many: of the chosen events, only the first and the last of every run
        # are looked at.
        starts = [0, *(np.flatnonzero(run_of[1:] != run_of[:-1]) + 1).tolist(), len(places)]
        kept = []
        for start, end in pairwise(starts):
            number = run_of[start]
            run = self.runs[number]
            before = int(ends[number]) - run.events
            first, last = run.at(int(places[start]) - before), run.at(int(places[end - 1]) - before)
            kept.append(Run(end - start, first, last))
        return Births(tuple(kept))

    def of_output(self, events: int) -> Births:
        """Those of what a function made of the batch.

        As many events as it got are taken to be the same ones in the same order. When there are
        more or fewer, each is taken to come from the input at the same relative place.
        """
        mine = self.events
        if events == mine:
            return self
        if not mine or not events:
            return Births(())
        return self.chosen(((np.arange(events) + 0.5) * mine / events).astype(np.intp))

    def latencies(self, now: float) -> LatencyHistogram:
        """How long ago the events arrived."""
        bins: Counter[int] = Counter()
        for run in self.runs:
            longest, shortest = now - run.first, now - run.last
            highest, lowest = bin_of(longest), bin_of(shortest)
            if highest - lowest >= run.events:
                bins.update(bin_of(now - run.at(place)) for place in range(run.events))
                continue
            # They fall evenly from the longest to the shortest: few bins hold them all.
            counted = 0
            for number in range(highest, lowest, -1):
                part = (longest - bin_start(number)) / (longest - shortest)
                reached = min(int(part * (run.events - 1)) + 1, run.events)
                bins[number] += reached - counted
                counted = reached
            bins[lowest] += run.events - counted
        return LatencyHistogram(+bins)

    def to_bytes(self) -> bytes:
        """As they are stored."""
        if self._data is None:
            self._data = b"".join([_RUN.pack(*run) for run in self.runs])
        return self._data

    @classmethod
    def from_bytes(cls, data: bytes) -> Births:
        """What `to_bytes` made."""
        return cls(None, data)
