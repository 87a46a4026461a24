"""A chain in one replica: its operators' functions, each passing its output to the next.

An operator that is in no chain is a chain of one. What fails does so for one operator: the events
that it got become its dead letters, and what went before is not done again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from time import time
from types import MappingProxyType
from typing import NamedTuple

from elastream.core.context import Context
from elastream.engines.spark.backends.dead_letters import DeadLetter
from elastream.engines.spark.backends.ledger import Counts
from elastream.engines.spark.backends.parcels import Parcel
from elastream.engines.spark.births import Births
from elastream.engines.spark.worker.events import Events, together
from elastream.engines.spark.worker.execution import Execution, Work
from elastream.engines.spark.worker.routing import Emission, Router


@dataclass(frozen=True)
class Stage:
    """One operator of a chain."""

    name: str
    execution: Execution
    router: Router
    after: str | None
    """The operator of the chain that hands it events; None for the first."""
    measures_latency: bool
    """Whether events leave the pipeline here."""


Unit = dict[str, Work]
"""By operator, from the first of the chain to the last."""
Call = tuple[Events, Sequence[Context]]
"""Events to run at once, and a context for each if the function wants one."""
NewContexts = Callable[[str, int, int], Sequence[Context]]
"""For an operator inside the chain: contexts for this many events from this position on."""


def no_contexts(operator: str, first: int, events: int) -> Sequence[Context]:
    """Nobody inside the chain wants any."""
    return ()


class Cost(NamedTuple):
    """What a unit has cost the replica as a whole."""

    cpu: float
    """Seconds of processor time."""
    saturated: float
    """Seconds since the unit before it, if events waited all the time; else 0."""
    square: float
    """The square of its seconds in functions, by its events."""
    units: int = 1


NOTHING = Cost(0.0, 0.0, 0.0, 0)
NOBODY: Mapping[str, Counts] = MappingProxyType({})


class Results(NamedTuple):
    """What is ready to be committed."""

    parcels: Sequence[Parcel]
    counts: Counts
    """Those of the first operator, with those that are chained to it."""
    dead: Sequence[DeadLetter]


class Chain:
    """The operators that a replica runs, from the first to the last."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        self._stages = stages
        self.routers = [stage.router for stage in stages]
        functions = [stage.execution for stage in stages]
        self.calls_at_once = max(function.calls_at_once for function in functions)
        """How many events a function of it can work on at the same time."""
        self.wants_context = any(function.wants_context for function in functions)
        """Whether any function asks for a `Context`."""
        self.wants_context_inside = any(function.wants_context for function in functions[1:])
        """Whether any function but the first does."""
        self.calls_with_batches = not functions[0].takes_rows
        """Whether the first function is called with all events of a call at once."""

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Set up all functions, and tear them down at the end."""
        with ExitStack() as undo:
            for stage in self._stages:
                undo.enter_context(stage.execution.ready())
            yield

    def beginning_at(self, operator: str) -> Chain:
        """The part of it that events run through if they enter at this operator."""
        kept: list[Stage] = []
        for stage in self._stages:
            if stage.name == operator or stage.after in {each.name for each in kept}:
                kept.append(stage)
        return Chain(kept)

    def run(
        self,
        calls: Sequence[Call],
        in_quarantine: bool = False,
        contexts: NewContexts = no_contexts,
    ) -> Unit:
        """Run events through all operators, each on all of them before the next one begins.

        Args:
            calls: What the first operator is called with.
            in_quarantine: Whether the events may kill the process.
            contexts: Makes the contexts of operators inside the chain.
        """
        unit: Unit = {}
        for stage in self._stages:
            work = unit[stage.name] = Work()
            if len(unit) > 1:
                calls = _handed(stage, unit, contexts)
            run = stage.execution.run_in_quarantine if in_quarantine else stage.execution.run
            for part, of_each in calls:
                work.received += part.table.num_rows
                work.births.append(part.births)
                run(part, work, of_each)
        return unit

    def results(self, unit: Unit, cost: Cost) -> Results:
        """Find the lanes of what leaves the chain, and count."""
        parcels: list[Parcel] = []
        dead: list[DeadLetter] = []
        own: Counts | None = None
        inside: dict[str, Counts] = {}
        now = time()
        for stage in self._stages:
            work = unit[stage.name]
            emission = stage.router.emission(work.divided)
            parcels += emission.parcels
            dead += work.dead
            if own is None:
                own = _counted(stage, work, emission, now, cost, inside)
            else:
                inside[stage.name] = _counted(stage, work, emission, now)
        assert own is not None
        return Results(parcels, own, dead)


def _counted(
    stage: Stage,
    work: Work,
    emission: Emission,
    now: float,
    cost: Cost = NOTHING,
    chained: Mapping[str, Counts] = NOBODY,
) -> Counts:
    latency = None
    if stage.measures_latency and work.births:
        latency = Births.joined(work.births).latencies(now)
    processed = work.received
    for letter in work.dead:
        processed -= letter.events
    return Counts(
        processed=processed,
        emitted=work.emitted,
        busy=work.busy,
        cpu=cost.cpu,
        sent=emission.sent,
        lost=emission.lost,
        latency=latency,
        saturated=cost.saturated,
        saturated_events=processed if cost.saturated else 0,
        units=cost.units,
        squares=cost.square,
        chained=chained,
    )


def _handed(stage: Stage, unit: Unit, contexts: NewContexts) -> list[Call]:
    assert stage.after is not None
    parts = (divided[stage.name] for divided in unit[stage.after].divided)
    calls: list[Call] = []
    first = 0
    for part in together([part for part in parts if part.table.num_rows]):
        rows = part.table.num_rows
        wanted = stage.execution.wants_context
        calls.append((part, contexts(stage.name, first, rows) if wanted else ()))
        first += rows
    return calls


def busy(unit: Unit) -> float:
    """Seconds in all functions."""
    seconds = 0.0
    for work in unit.values():
        seconds += work.busy
    return seconds


def joined(units: Sequence[Unit]) -> Unit:
    """What was run in several parts, as one."""
    whole = units[0]
    for unit in units[1:]:
        for operator, work in unit.items():
            into = whole[operator]
            into.received += work.received
            into.births += work.births
            into.busy += work.busy
            into.emitted += work.emitted
            into.divided += work.divided
            into.dead += work.dead
    return whole
