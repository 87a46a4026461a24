"""A backend for the threads of one process: a few dictionaries under one lock."""

import os
import time
import uuid
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Condition, RLock

import numpy as np

from elastream.core.latency import LatencyHistogram
from elastream.engines.spark.arrow_ipc import from_bytes, to_bytes
from elastream.engines.spark.backends.base import Backend, Connection, Ownership
from elastream.engines.spark.backends.board import NO_PLAN, Board
from elastream.engines.spark.backends.dead_letters import DeadLetters
from elastream.engines.spark.backends.inbox import NOTHING_ADMITTED, Inbox
from elastream.engines.spark.backends.kept import (
    Admitted,
    Counted,
    OutputBatch,
    OutputPosition,
    Waiting,
)
from elastream.engines.spark.backends.lanes import SHARED_LANE, Lanes
from elastream.engines.spark.backends.ledger import Counts, LaneState, Ledger, Totals
from elastream.engines.spark.backends.members import Attendance, SupersededError
from elastream.engines.spark.backends.moving import new_lanes, pieces
from elastream.engines.spark.backends.outbox import Outbox, is_output, output_of
from elastream.engines.spark.backends.parcels import Parcel, Place, Taken, Unit
from elastream.engines.spark.births import Births
from elastream.errors import EngineError, InvalidInputError

SLACK = 1.5
"""A batch that is so many times as large as what was asked for is cut."""
SUSPECTS = 8
"""So many batches at the head of a lane may have been taken by a process that died."""


@dataclass
class Batch:
    """Events of one lane that wait together: some rows of a parcel."""

    number: int
    parcel: Parcel
    rows: np.ndarray
    taken_by: str | None = None
    deaths: int = 0
    unit: Unit | None = None


@dataclass
class Lane:
    owner: int | None = None
    ownership: int = 0
    arrived: int = 0
    batches: list[Batch] = field(default_factory=list)

    @property
    def waiting(self):
        return sum(len(batch.rows) for batch in self.batches)

    def give(self, owner):
        self.owner = owner
        self.ownership += 1
        return self.ownership


@dataclass
class Role:
    worker: int | None = None
    ready: bool = False


class State:
    """What all ends of a backend share. Whoever reads or changes it has `changed`."""

    def __init__(self):
        self.changed = Condition(RLock())
        self.driver = self.pipeline = None
        self.layout = {}
        self.lanes = {}
        self.members = {}
        self.failures = {}
        self.signals = {}
        """By member: what it was woken for and has not seen, "work" or "news"."""
        self.plan = NO_PLAN
        self.roles = {}
        self.generation = self.started = 0
        self.feedback = {}
        self.counts = {}
        self.letters = {}
        self.staged = {}
        self.admitted = {}
        self.consumed = {}
        self._numbers = 0

    def number(self):
        self._numbers += 1
        return self._numbers

    def lane(self, operator, lane):
        return self.lanes.setdefault(operator, {}).setdefault(lane, Lane())

    def put(self, parcel):
        lane_of = parcel.lane_of
        if lane_of is None:
            lane_of = np.full(parcel.events, parcel.lane)
        for number in np.unique(lane_of).tolist():
            lane, rows = self.lane(parcel.operator, number), np.flatnonzero(lane_of == number)
            lane.batches.append(Batch(self.number(), parcel, rows))
            lane.arrived += len(rows)
            for name in self.members:
                if name[0] == parcel.operator and (number < 0 or name[1] == lane.owner):
                    self.wake(name, "work")

    def wake(self, name, why):
        self.signals.setdefault(name, set()).add(why)
        self.changed.notify_all()

    def count(self, name, counts):
        self.counts[name] = _sum(self.counts.get(name, Counts()), counts)
        for operator, of in counts.chained.items():
            self.count((operator, name[1]), of)

    def remove(self, name):
        if name in self.members:
            self.free_taken(self.members.pop(name).process)
        for lane in self.lanes.get(name[0], {}).values():
            if lane.owner == name[1]:
                lane.give(None)

    def note_death(self, name):
        for lane in self.lanes.get(name[0], {}).values():
            of_mine = [each for each in lane.batches if each.taken_by == self.members[name].process]
            for batch in lane.batches[:SUSPECTS] if lane.owner == name[1] else of_mine:
                batch.deaths += 1

    def free_taken(self, process):
        for lanes in self.lanes.values():
            for batch in lanes[SHARED_LANE].batches if SHARED_LANE in lanes else ():
                if batch.taken_by == process:
                    batch.taken_by = None


STATES = {}


@dataclass(frozen=True)
class MemoryBackend(Backend):
    """Gone with its process; two of the same name are the same."""

    name: str

    @property
    def state(self):
        return STATES.setdefault(self.name, State())

    @property
    def url(self):
        return f"memory:{self.name}"

    @property
    def exists(self):
        return self.name in STATES

    @property
    def checkpoints(self):
        return self.name

    @contextmanager
    def own(self):
        with self.state.changed:
            if self.state.driver:
                raise InvalidInputError(
                    f"the state {self.url} is in use by {self.state.driver}: stop it first"
                )
            self.state.driver = f"process {os.getpid()}"
        try:
            yield Ownership()
        finally:
            self.state.driver = None

    def prepare(self, pipeline, operators):
        with self.state.changed:
            known = self.state.pipeline = self.state.pipeline or pipeline
            if known != pipeline:
                raise InvalidInputError(
                    f"the state {self.url} belongs to another pipeline ({known}): name another"
                )
            for name, wanted in operators.items():
                if self.state.layout.get(name) != wanted:
                    self._lay_out(name, wanted)

    def _lay_out(self, operator, wanted):
        old = self.state.lanes.pop(operator, {})
        waiting = [(batch, lane) for lane, of in old.items() for batch in of.batches]
        numbers = [SHARED_LANE] if wanted.shared else range(wanted.lanes)
        after = max((lane.ownership for lane in old.values()), default=0) + 1
        self.state.lanes[operator] = {number: Lane(ownership=after) for number in numbers}
        self.state.layout[operator] = wanted
        for batch, lane in sorted(waiting, key=lambda each: each[0].number):
            table = from_bytes(batch.parcel.data).take(batch.rows)
            for piece in pieces(new_lanes(table, lane, wanted), batch.unit):
                rows = batch.rows[piece.first :][: piece.events]
                for number in np.unique(piece.lane_of).tolist():
                    mine = rows[piece.lane_of == number]
                    target = self.state.lanes[operator][number]
                    target.arrived += len(mine)
                    moved = Batch(self.state.number(), batch.parcel, mine)
                    moved.deaths, moved.unit = batch.deaths, piece.unit
                    target.batches.append(moved)

    def layout(self):
        return dict(self.state.layout)

    def connect(self):
        return MemoryConnection(self.state)

    def inbox(self, source):
        return MemoryInbox(self.state, source)

    def outbox(self, operator):
        return MemoryOutbox(self.state, operator)

    def clear(self, operator):
        with self.state.changed:
            dropped = 0
            for lane in self.state.lanes.get(operator, {}).values():
                dropped += lane.waiting
                lane.batches.clear()
                lane.ownership += 1
            self.state.count((operator, 0), Counts(dropped=dropped))
            return dropped

    def sweep(self):
        with self.state.changed:
            self.state.signals.clear()

    def described(self):
        return (self.state.pipeline, dict(self.state.layout)) if self.state.pipeline else None

    def kept(self):
        state = self.state
        outputs = {name for name in state.lanes if is_output(name)} | state.consumed.keys()
        for output in outputs:
            yield OutputPosition(output, state.consumed.get(output, 0), state.number())
        for source, number in state.admitted.items():
            yield Admitted(source, number)
        for member, counts in state.counts.items():
            yield Counted(member, counts)
        waiting = [
            (batch, operator, number)
            for operator, lanes in state.lanes.items()
            for number, lane in lanes.items()
            for batch in lane.batches
        ]
        for batch, operator, number in sorted(waiting, key=lambda each: each[0].number):
            parcel, rows = batch.parcel, batch.rows
            if is_output(operator):
                yield OutputBatch(operator, batch.number, len(rows), parcel.data)
                continue
            data = to_bytes(from_bytes(parcel.data).take(rows))
            births = parcel.births.chosen(rows)
            yield Waiting(operator, number, len(rows), births, data, batch.deaths, batch.unit)
        yield from state.letters.values()

    def restore(self, pipeline, operators, kept):
        if self.described() is not None:
            raise InvalidInputError(f"the state {self.url} is not empty: name another")
        state = State()
        for operator, wanted in operators.items():
            state.layout[operator] = wanted
            for number in [SHARED_LANE] if wanted.shared else range(wanted.lanes):
                state.lane(operator, number)
        for piece in kept:
            match piece:
                case OutputPosition(output, consumed, newest):
                    state.consumed[output] = consumed
                    state._numbers = max(state._numbers, newest)
                case Admitted(source, number):
                    state.admitted[source] = number
                case Counted(member, counts):
                    state.count(member, counts)
                case Waiting(operator, lane, events, births, data, deaths, unit):
                    state.put(Parcel(operator, lane, events, births, data))
                    batch = state.lanes[operator][lane].batches[-1]
                    batch.deaths, batch.unit = deaths, unit
                case OutputBatch(output, number, events, data):
                    state.put(Parcel(output, 0, events, Births.evenly(events, 0.0), data))
                    state.lanes[output][0].batches[-1].number = number
                case _:
                    state.letters[piece.number] = piece
                    state._numbers = max(state._numbers, piece.number)
        state.pipeline = pipeline
        STATES[self.name] = state

    def check_removable(self):
        with self.own():
            pass

    def remove(self):
        self.check_removable()
        del STATES[self.name]
        return [self.url]


class MemoryConnection(Connection):
    def __init__(self, state):
        self.lanes = MemoryLanes(state)
        self.board = MemoryBoard(state)
        self.ledger = MemoryLedger(state)
        self.dead_letters = MemoryDeadLetters(state)

    def close(self):
        pass


class MemoryLanes(Lanes):
    def __init__(self, state):
        self._state = state
        self._name = None
        self._held = {}
        self.more = False
        self._process = f"{os.getpid()}:{uuid.uuid4().hex}"

    def join(self, name, generation):
        with self._state.changed:
            before = self._state.members.get(name)
            if before and before.generation > generation:
                raise SupersededError
            if before:
                if before.generation == generation:
                    self._state.note_death(name)
                self._state.free_taken(before.process)
            self._state.failures.get(generation, {}).pop(name, None)
            self._state.members[name] = Attendance(self._process, generation, 0, 0.0)
            self._state.wake(name, "news")  # Whoever is replaced may as well end at once.
            self._state.signals[name] = set()
            lanes = self._state.lanes.get(name[0], {})
            self._held = {
                number: lane.give(name[1])
                for number, lane in lanes.items()
                if lane.owner == name[1]
            }
            self._name = name

    def joined(self):
        with self._state.changed:
            attendance = self._state.members.get(self._name)
            return attendance is not None and attendance.process == self._process

    def hold(self, wanted, by_force=frozenset()):
        with self._state.changed:
            lanes, mine = self._state.lanes.get(self._name[0], {}), self._name[1]
            self._held = {n: of for n, of in self._held.items() if lanes[n].ownership == of}
            released = self._held.keys() - wanted
            for number in released:
                if lanes[number].ownership == self._held.pop(number):
                    lanes[number].give(None)
            for number in wanted - self._held.keys():
                if number in lanes and (number in by_force or lanes[number].owner in (None, mine)):
                    self._held[number] = lanes[number].give(mine)
                    self.more = True
            for name in self._state.members if released else ():
                if name[0] == self._name[0]:
                    self._state.wake(name, "news")
            return frozenset(self._held)

    def take(self, most, shared=False, named=False):
        with self._state.changed:
            if shared and not self.joined():
                self.more = False
                return []
            lanes = self._state.lanes.get(self._name[0], {})
            waiting = [
                (batch, number)
                for number in ([SHARED_LANE] if shared else self._held)
                if number in lanes and (shared or lanes[number].owner == self._name[1])
                for batch in lanes[number].batches
                if batch.taken_by is None
            ]
            taken, events, self.more = [], 0, False
            for batch, number in sorted(waiting, key=lambda each: each[0].number):
                rows = batch.rows
                known = batch.unit if named else None
                if known and not shared:
                    rows = rows[: known.events]
                elif not taken and not shared:
                    rows = rows[: _part(len(rows), most)]
                if taken and events + len(rows) > most:
                    self.more = True
                    break
                events += len(rows)
                if named:
                    unit = known or Unit(uuid.uuid4().hex, 0, len(rows), 0)
                    batch.unit = unit._replace(attempt=unit.attempt + 1)
                taken.append(_taken(batch, number, rows)._replace(unit=batch.unit))
                if shared:
                    batch.taken_by = self._process
                if len(rows) < len(batch.rows):
                    self.more = True
                    break
            return taken

    def commit(self, done, results, counts, dead=()):
        with self._state.changed:
            lanes = self._state.lanes.get(self._name[0], {})
            places = [place for taken in done for place in taken.places]
            if not self.joined() or not all(self._owns(lanes, place) for place in places):
                self._held = {
                    number: ownership
                    for number, ownership in self._held.items()
                    if lanes[number].ownership == ownership
                }
                return False
            for place in places:
                batch = _batch(lanes, place)
                batch.rows, batch.taken_by, batch.unit = batch.rows[place.events :], None, None
                if place.whole:
                    lanes[place.lane].batches.remove(batch)
            for parcel in results:
                self._state.put(parcel)
            self._state.count(self._name, counts)
            for letter in dead:
                number = self._state.number()
                kept = replace(letter, number=number, time=time.time())
                self._state.letters[number] = kept
            return True

    def _owns(self, lanes, place):
        if place.lane == SHARED_LANE:
            batch = _batch(lanes, place)
            return batch is not None and batch.taken_by == self._process
        return lanes[place.lane].ownership == self._held.get(place.lane)

    def lengths(self, operator):
        with self._state.changed:
            lanes = self._state.lanes.get(operator, {})
            return {number: lane.waiting for number, lane in lanes.items() if lane.arrived}

    def busy(self, name):
        operator, replica = name
        with self._state.changed:
            lanes = self._state.lanes.get(operator, {}).values()
            return any(lane.owner == replica and lane.waiting for lane in lanes)

    def begun(self, operator):
        with self._state.changed:
            lanes = self._state.lanes.get(operator, {}).values()
            return any(batch.unit for lane in lanes for batch in lane.batches)

    def wait(self, seconds):
        longest, self.more = 0.0 if self.more else seconds, False
        if self._name is None:
            time.sleep(longest)
            return False
        with self._state.changed:
            # Whoever joins later in our place is woken instead of us.
            signals = self._state.signals.setdefault(self._name, set())
            self._state.changed.wait_for(lambda: signals, longest)
            news = "news" in signals
            signals.clear()
            return news


class MemoryBoard(Board):
    def __init__(self, state):
        self._state = state

    def plan(self, known=NO_PLAN):
        newest = self._state.plan
        return newest if newest.version > known.version else known

    def publish(self, plan):
        with self._state.changed:
            self._state.plan = replace(plan, version=self._state.plan.version + 1)
            self._wake_all()

    def new_generation(self, roles):
        with self._state.changed:
            self._state.generation += 1
            self._state.roles[self._state.generation] = {role: Role() for role in roles}
            return self._state.generation

    def take_role(self, generation, worker):
        with self._state.changed:
            roles = self._state.roles.get(generation, {})
            for wanted in (worker, None):
                for name, role in roles.items():
                    if role.worker == wanted:
                        role.worker = worker
                        return name
            return None

    def report_ready(self, generation, role):
        with self._state.changed:
            if role in self._state.roles.get(generation, {}):
                self._state.roles[generation][role].ready = True

    def ready(self, generation):
        with self._state.changed:
            roles = self._state.roles.get(generation, {})
            return frozenset(name for name, role in roles.items() if role.ready)

    def start(self, generation):
        with self._state.changed:
            self._state.started = generation
            self._state.roles = {generation: self._state.roles.get(generation, {})}
            self._state.failures = {generation: self._state.failures.get(generation, {})}

    def may_begin(self, generation, role):
        with self._state.changed:
            if role not in self._state.roles.get(generation, {}):
                return None
            return self._state.started == generation

    def abandon(self, generation):
        with self._state.changed:
            self._state.roles.pop(generation, None)
            self._state.failures.pop(generation, None)

    def reassign(self, role, to):
        with self._state.changed:
            roles = self._state.roles.get(self._state.started, {})
            leaving, free = roles.get(role, Role()), roles.get(to)
            if leaving.worker is None or free is None or free.worker is not None:
                return False
            roles[to] = Role(leaving.worker)
            self.vacate([role])
            return True

    def roles(self):
        with self._state.changed:
            roles = self._state.roles.get(self._state.started, {})
            return {name: role.worker for name, role in roles.items()}

    def vacate(self, names):
        with self._state.changed:
            for name in names:
                self._state.roles[self._state.started][name] = Role()
                self._state.remove(name)
                self._state.wake(name, "news")

    def report_deaths(self, dead):
        with self._state.changed:
            for name, process in dead.items():
                if name in self._state.members and self._state.members[name].process == process:
                    self._state.note_death(name)
                    self._state.remove(name)
            self._wake_all()

    def members(self):
        with self._state.changed:
            return dict(self._state.members)

    def dismiss(self, names=None):
        with self._state.changed:
            for name in list(self._state.members) if names is None else names:
                self._state.remove(name)
            if names is None:
                self._state.roles.clear()
                self._state.failures.clear()
                self._state.feedback.clear()
            self._wake_all()

    def _wake_all(self):
        for name in list(self._state.signals):
            self._state.wake(name, "news")

    def beat(self, name, busy_for=0.0):
        with self._state.changed:
            if known := self._state.members.get(name):
                beaten = replace(known, heartbeat=known.heartbeat + 1, busy_for=busy_for)
                self._state.members[name] = beaten

    def probe(self):
        pass

    def report_failure(self, generation, name, error):
        with self._state.changed:
            self._state.failures.setdefault(generation, {})[name] = error

    def failures(self, generation=None):
        with self._state.changed:
            asked = self._state.started if generation is None else generation
            return dict(self._state.failures.get(asked, {}))

    def post(self, sender, feedback, producers=None):
        with self._state.changed:
            for producer in [None] if producers is None else producers:
                key = producer, sender, type(feedback)
                self._state.feedback[key] = self._state.number(), feedback

    def feedback(self, producer, operators, after):
        with self._state.changed:
            found = sorted(
                (number, sender[0], feedback)
                for (whom, sender, _), (number, feedback) in self._state.feedback.items()
                if number > after and whom in (None, producer) and sender[0] in operators
            )
            newest = found[-1][0] if found else after
            return newest, [(operator, feedback) for _, operator, feedback in found]


class MemoryLedger(Ledger):
    def __init__(self, state):
        self._state = state

    def totals(self):
        with self._state.changed:
            return Totals(dict(self._state.counts), self.lanes())

    def lanes(self):
        with self._state.changed:
            return {
                operator: {
                    number: LaneState(lane.arrived, lane.waiting, lane.owner)
                    for number, lane in of.items()
                }
                for operator, of in self._state.lanes.items()
            }

    def counts(self, name):
        with self._state.changed:
            return self._state.counts.get(name, Counts())


class MemoryDeadLetters(DeadLetters):
    def __init__(self, state):
        self._state = state

    def read(self, operator=None):
        with self._state.changed:
            letters = list(self._state.letters.values())
        return (each for each in reversed(letters) if operator in (None, each.operator))

    def errors(self, after):
        with self._state.changed:
            new = [each for number, each in self._state.letters.items() if number > after]
            events = Counter()
            for letter in new:
                events[letter.operator, letter.error] += letter.events
            return max((letter.number for letter in new), default=after), dict(events)

    def retry(self, letters):
        with self._state.changed:
            there = [each for each in letters if self._state.letters.pop(each.number, None)]
            for letter in there:
                layout = self._state.layout.get(letter.operator)
                lane = letter.lane if layout is None else layout.lane_again(letter)
                births = Births.evenly(letter.events, time.time())
                self._state.put(Parcel(letter.operator, lane, letter.events, births, letter.data))
            return len(there)


class MemoryInbox(Inbox):
    def __init__(self, state, source):
        self._state = state
        self._source = source

    def stage(self, name, events, data):
        with self._state.changed:
            self._staged.setdefault(name, []).append((events, data))

    def admit(self, number, staged):
        with self._state.changed:
            if number <= self.admitted():
                for name in staged:
                    self._staged.pop(name, None)
                return False
            for name, events in staged.items():
                found = sum(count for count, _ in self._staged.get(name, ()))
                if found != events:
                    raise EngineError(
                        f"source {self._source!r}: {events} events were staged, and {found} are "
                        "there"
                    )
            now = time.time()
            for name in staged:
                for count, data in self._staged.get(name, ()):
                    births = Births.evenly(count, now)
                    self._state.put(Parcel(self._source, 0, count, births, data))
            self._state.count((self._source, 0), Counts(processed=sum(staged.values())))
            self._state.admitted[self._source] = number
            self._staged.clear()
            self._state.wake((self._source, 0), "work")
            return True

    def admitted(self):
        return self._state.admitted.get(self._source, NOTHING_ADMITTED)

    def discard(self):
        with self._state.changed:
            self._staged.clear()

    def waiting(self):
        with self._state.changed:
            return sum(lane.waiting for lane in self._state.lanes.get(self._source, {}).values())

    def close(self):
        pass

    @property
    def _staged(self):
        return self._state.staged.setdefault(self._source, {})


class MemoryOutbox(Outbox):
    def __init__(self, state, operator):
        self._state = state
        self._operator = output_of(operator)

    def newest(self):
        with self._state.changed:
            batches = self._state.lane(self._operator, 0).batches
            return batches[-1].number if batches else self.consumed()

    def read(self, after, upto):
        with self._state.changed:
            batches = list(self._state.lane(self._operator, 0).batches)
        return (each.parcel.data for each in batches if after < each.number <= upto)

    def consume(self, upto):
        with self._state.changed:
            lane = self._state.lane(self._operator, 0)
            lane.batches = [each for each in lane.batches if each.number > upto]
            self._state.consumed[self._operator] = max(upto, self.consumed())

    def consumed(self):
        return self._state.consumed.get(self._operator, 0)

    def close(self):
        pass


def _batch(lanes, place):
    found = (each for each in lanes[place.lane].batches if each.number == place.number)
    return next(found, None)


def _part(events, most):
    """All of a batch, or one of the equal parts that it is cut into."""
    parts = 1 if events <= SLACK * most else -(-events // most)
    return -(-events // parts)


def _taken(batch, lane, rows):
    parcel = batch.parcel
    place = Place(batch.number, lane, len(rows), len(rows) == len(batch.rows))
    if len(rows) == parcel.events:
        births, chosen = parcel.births, None
    else:
        births, chosen = parcel.births.chosen(rows), rows
    return Taken(parcel.data, len(rows), births, (place,), chosen, parcel.requests, batch.deaths)


def _sum(left, right):
    parts = [each.latency for each in (left, right) if each.latency]
    return Counts(
        *(getattr(left, name) + getattr(right, name) for name in Counts._fields[:5]),
        sent=dict(Counter(left.sent) + Counter(right.sent)),
        lost=dict(Counter(left.lost) + Counter(right.lost)),
        latency=LatencyHistogram.sum(parts) if parts else None,
        saturated=left.saturated + right.saturated,
        saturated_events=left.saturated_events + right.saturated_events,
        units=left.units + right.units,
        squares=left.squares + right.squares,
    )
