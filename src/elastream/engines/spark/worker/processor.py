"""Takes events from lanes, runs a chain on them, and commits the results."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter
from time import perf_counter, process_time
from typing import Any

from elastream.core.context import Context
from elastream.engines.spark.backends.parcels import Taken
from elastream.engines.spark.worker.chain import Call, Chain, Cost, Unit, busy, joined
from elastream.engines.spark.worker.events import together
from elastream.engines.spark.worker.execution import events_of
from elastream.engines.spark.worker.member import Member
from elastream.engines.spark.worker.quarantine import DEATHS
from elastream.engines.spark.worker.unit_size import UnitSize

_EVENTS_OF, _DEATHS_OF = attrgetter("events"), attrgetter("deaths")


class Processor(Member):
    """A member that runs a chain on what waits in lanes.

    Args:
        chain: What it runs.
        execution_time: What an event is said to take, in seconds.
        member: As of every member.
    """

    def __init__(self, chain: Chain, execution_time: float | None, *member: Any) -> None:
        super().__init__(*member)
        self.chain = chain
        self._unit = UnitSize(execution_time)
        self._busy_since: float | None = None
        """When the unit before was done, if more waited by then."""

    def take_and_process(self, shared: bool = False) -> bool:
        """Process about a unit of events; returns whether there were any."""
        busy_since, self._busy_since = self._busy_since, None
        most = max(self._unit.most, self.chain.calls_at_once)
        most = min(most, self.pressure.allowance)
        taken = self.lanes.take(most, shared, self.chain.wants_context)
        if not taken:
            return False
        if max(map(_DEATHS_OF, taken)) < DEATHS:
            self._process(taken, busy_since)
            return True
        # What a quarantine takes is not what events usually cost. None may overtake another.
        for suspects, some in groupby(taken, lambda each: each.deaths >= DEATHS):
            self._process(list(some), None, in_quarantine=suspects)
        return True

    def idles(self) -> None:
        """Note that it waits for something other than events."""
        self._busy_since = None

    def _process(
        self, taken: Sequence[Taken], busy_since: float | None, in_quarantine: bool = False
    ) -> None:
        more_waits = self.lanes.more
        cpu, events = process_time(), sum(map(_EVENTS_OF, taken))
        unit = self.run_chain(taken, in_quarantine)
        seconds = busy(unit)
        self._unit.learn(events, seconds)
        # From one unit to the next: committing the one before and looking around are part of it. A
        # last unit, which takes what is left, would make an event look dearer than it is.
        done = perf_counter()
        saturated = done - busy_since if more_waits and busy_since else 0.0
        self._busy_since = done if more_waits else None
        cost = Cost(process_time() - cpu, saturated, seconds * seconds / events)
        results = self.chain.results(unit, cost)
        committed = self.commit(taken, results.parcels, results.counts, results.dead)
        self.processed(taken, committed, in_quarantine)

    def run_chain(self, taken: Sequence[Taken], in_quarantine: bool) -> Unit:
        """Run all of its operators; unit by unit, if one inside wants to know the units."""
        if not self.chain.wants_context_inside:
            return self.chain.run(self._calls(taken), in_quarantine)
        return joined(
            [
                self.chain.run(
                    [(events_of(each), self._contexts(each))],
                    in_quarantine,
                    partial(self._contexts_inside, each),
                )
                for each in taken
            ]
        )

    def processed(self, taken: Sequence[Taken], committed: bool, in_quarantine: bool) -> None:
        """Called after every commit; a refused one means that somebody else has the events."""

    def _calls(self, taken: Sequence[Taken]) -> list[Call]:
        """What to run at once: as much as possible, but units with names for batches one by one."""
        if not self.chain.wants_context:
            if len(taken) == 1:
                return [(events_of(taken[0]), ())]
            return [(part, ()) for part in together([events_of(each) for each in taken])]
        calls: list[Call] = [(events_of(each), self._contexts(each)) for each in taken]
        if len(calls) == 1 or self.chain.calls_with_batches:
            return calls
        parts = together([events for events, _ in calls])
        if len(parts) == len(calls):
            return calls
        contexts = [context for _, of_each in calls for context in of_each]
        return [(part, contexts) for part in parts]

    def _contexts(self, taken: Taken) -> list[Context]:
        """One for every event."""
        assert taken.unit is not None
        name, attempt, first = taken.unit.name, taken.unit.attempt, taken.unit.at or 0
        places = range(first, first + taken.events)
        return [Context(*self.name, name, attempt, place) for place in places]

    def _contexts_inside(
        self, taken: Taken, operator: str, first: int, events: int
    ) -> list[Context]:
        """Those of what an operator inside the chain gets: the unit's name, and its own.

        A part of a unit has a name of its own inside: nobody knows how many events the parts before
        it led to, and so which positions its own had.
        """
        assert taken.unit is not None
        unit = taken.unit
        part = "" if unit.at is None else f"/{unit.at}+{unit.events}"
        name = f"{unit.name}{part}.{operator}"
        return [
            Context(operator, self.name[1], name, unit.attempt, place)
            for place in range(first, first + events)
        ]
