"""The lanes as one member sees them: what belongs together happens in one transaction."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from elastream.engines.spark.backends.dead_letters import DeadLetter
from elastream.engines.spark.backends.lanes import SHARED_LANE, Lanes
from elastream.engines.spark.backends.ledger import Counts
from elastream.engines.spark.backends.members import MemberName, SupersededError, this_process
from elastream.engines.spark.backends.parcels import Parcel, Place, Taken
from elastream.engines.spark.backends.sqlite.busy import BusyFlags
from elastream.engines.spark.backends.sqlite.database import Turn, reading, writing
from elastream.engines.spark.backends.sqlite.dead_letters import SqliteDeadLetters
from elastream.engines.spark.backends.sqlite.ledger import SqliteLedger
from elastream.engines.spark.backends.sqlite.storage import EVERYBODY, Storage
from elastream.engines.spark.backends.sqlite.waiting import Waiting, WaitingEvents
from elastream.engines.spark.backends.sqlite.wakeup import NEWS, Sleeper, Waker

CONSUME = (
    "UPDATE lanes SET consumed = consumed + ?1, "
    "done_of_first = CASE WHEN ?2 THEN 0 ELSE done_of_first + ?3 END, "
    "head = CASE WHEN NOT ?2 THEN head "
    f"WHEN arrived = consumed + ?1 OR lane = {SHARED_LANE} THEN NULL "
    "ELSE (SELECT min(number) FROM batches WHERE operator = ?4 AND lane = ?5 "
    "AND taken_by IS NULL AND number > ?7 AND follows) END "
    f"WHERE operator = ?4 AND lane = ?5 AND (ownership = ?6 OR lane = {SHARED_LANE})"
)
"""Count events of a lane as consumed, and find its next batch, if it is still ours."""
Take = Callable[[Iterable[Waiting], int], tuple[list[Taken], bool]]
"""Takes about so many of the events that wait, and says whether there are more."""


class _NotOursError(Exception):
    """Somebody else acts for this member, or has its lanes."""


class SqliteLanes(Lanes):
    """One end of the lanes, for one process or thread."""

    def __init__(
        self,
        folder: Path,
        db: sqlite3.Connection,
        storage: Storage,
        ledger: SqliteLedger,
        dead_letters: SqliteDeadLetters,
        waker: Waker,
        turn: Turn,
    ) -> None:
        self._folder = folder
        self._db = db
        self._writing = writing(db, turn)
        self._storage = storage
        self._waiting = WaitingEvents(db)
        self._ledger = ledger
        self._dead_letters = dead_letters
        self._waker = waker
        self._sleeper: Sleeper | None = None
        self._flags = BusyFlags()
        self._member: MemberName = ("", -1)
        """Whom it acts for, once it has joined."""
        self._held: dict[int, int] = {}
        """The ownership numbers of the lanes that are held."""
        self._first_lane = self._next_lane = 0
        """Where to look first now, and after the next commit; 0 if the last `take` left nothing."""
        self.more = False
        self._process = this_process()

    def join(self, name: MemberName, generation: int) -> None:
        """Raise the ownership of all lanes of the member; what its last process took is free."""
        with self._writing:
            row = self._db.execute(
                "SELECT process, generation FROM members WHERE operator = ? AND replica = ?", name
            ).fetchone()
            if row and row[1] > generation:
                raise SupersededError
            if row:
                if row[1] == generation:
                    self._storage.note_death(name, row[0])
                free_taken(self._db, row[0])
            self._db.execute(
                "DELETE FROM failures WHERE generation = ? AND operator = ? AND replica = ?",
                (generation, *name),
            )
            self._db.execute(
                "INSERT OR REPLACE INTO members (operator, replica, process, generation) "
                "VALUES (?, ?, ?, ?)",
                (*name, self._process, generation),
            )
            rows = self._db.execute(
                "UPDATE lanes SET ownership = ownership + 1 WHERE operator = ? AND replica = ? "
                "RETURNING lane, ownership",
                name,
            ).fetchall()
        self._held = dict(rows)
        self._member = name
        self._ledger.forget()
        if self._sleeper:
            self._sleeper.close()
        self._sleeper = Sleeper(self._folder, name)
        self._flags.open(self._folder)

    def joined(self) -> bool:
        """Look the process up."""
        row = self._db.execute(
            "SELECT 1 FROM members WHERE operator = ? AND replica = ? AND process = ?",
            (*self._member, self._process),
        ).fetchone()
        return row is not None

    def hold(
        self, wanted: frozenset[int], by_force: frozenset[int] = frozenset()
    ) -> frozenset[int]:
        """Change the owners of the lanes, and wake those that may want released ones."""
        operator, replica = self._member
        # One that was taken by force, and released since, would be nobody's.
        self._forget_lost_lanes()
        released = self._held.keys() - wanted
        missing = wanted - self._held.keys()
        if not released and not missing:
            return wanted
        with self._writing:
            for lane in released:
                self._db.execute(
                    "UPDATE lanes SET replica = NULL, ownership = ownership + 1 "
                    "WHERE operator = ? AND lane = ? AND ownership = ?",
                    (operator, lane, self._held[lane]),
                )
            gained = {}
            # A replaced member must not take anything from its successor.
            for lane in missing if self.joined() else ():
                row = self._db.execute(
                    "UPDATE lanes SET replica = ?1, ownership = ownership + 1 "
                    "WHERE operator = ?2 AND lane = ?3 AND (coalesce(replica, ?1) = ?1 OR ?4) "
                    "RETURNING ownership",
                    (replica, operator, lane, lane in by_force),
                ).fetchone()
                if row:
                    gained[lane] = row[0]
        for lane in released:
            del self._held[lane]
        self._held |= gained
        self.more = self.more or bool(gained)
        if released:
            self._waker.wake_all(operator, NEWS)
        return frozenset(self._held)

    def take(self, most: int, shared: bool = False, named: bool = False) -> list[Taken]:
        """Read the heads of the lanes; in the shared one, what is read is marked as taken."""
        if shared:
            return self._take_shared(self._member[0], most, named)
        if named:
            with self._writing:
                taken = self._take(self._waiting.take_units, self._still_owned(), most)
        else:
            # If a lane changes hands meanwhile, the commit is refused.
            taken = self._take_unnamed(most)
        # A unit of work may not reach all lanes: let each be first in turn.
        self._next_lane = taken[-1].places[-1].lane + 1 if taken and self.more else 0
        return taken

    def _take_unnamed(self, most: int) -> list[Taken]:
        if not self._next_lane:  # The last one left nothing: more than one batch is rare.
            taken = self._waiting.all_in_lanes(self._member, self._held, most)
            if taken is not None:
                self.more = False
                return taken
        with reading(self._db):
            return self._take(self._waiting.take, self._held, most)

    def _take(self, take: Take, lanes: Container[int], most: int) -> list[Taken]:
        waiting = self._waiting.in_lanes(self._member, lanes, self._first_lane, most)
        try:
            taken, self.more = take(waiting, most)
        finally:
            waiting.close()
        return taken

    def _still_owned(self) -> set[int]:
        """Of the lanes that are held, those that have not changed hands."""
        operator, _ = self._member
        rows = self._db.execute("SELECT lane, ownership FROM lanes WHERE operator = ?", (operator,))
        return {lane for lane, ownership in rows if self._held.get(lane) == ownership}

    def _take_shared(self, operator: str, most: int, named: bool) -> list[Taken]:
        if not self._waiting.anything_for_all(operator):
            self.more = False
            return []
        take = self._waiting.take_units if named else self._waiting.take
        with self._writing:
            if not self.joined():
                # Nobody would free what one that was replaced takes and does not finish.
                self.more = False
                return []
            with closing(self._waiting.for_all(operator)) as waiting:
                taken, self.more = take(waiting, most)
            self._db.executemany(
                "UPDATE batches SET taken_by = ? WHERE number = ?",
                [(self._process, place.number) for each in taken for place in each.places],
            )
        return taken

    def commit(
        self,
        done: Sequence[Taken],
        results: Sequence[Parcel],
        counts: Counts,
        dead: Sequence[DeadLetter] = (),
    ) -> bool:
        """One transaction: a member that has lost a lane rolls back."""
        try:
            with self._writing:
                if done:
                    self._consume(done)
                elif not self.joined():
                    raise _NotOursError
                owners = self._storage.put(results, instead_of=done)
                self._ledger.add(self._member, counts)
                if dead:
                    self._dead_letters.add(dead)
        except _NotOursError:
            self._ledger.forget()
            self._forget_lost_lanes()
            return False
        except BaseException:
            self._ledger.forget()
            raise
        self._first_lane = self._next_lane
        for operator, owner in owners:
            if owner == EVERYBODY:
                self._waker.wake_all(operator)
            elif owner is not None:
                self._flags.note((operator, owner), True)
                self._waker.wake((operator, owner))
        return True

    def _consume(self, done: Sequence[Taken]) -> None:
        """Count the events as consumed, if every lane is still ours."""
        operator, _ = self._member
        places = done[0].places if len(done) == 1 else [p for taken in done for p in taken.places]
        for last, events in _by_lane(places):
            lane = last.lane
            if lane == SHARED_LANE:
                self._check_taken(places)
            ownership = self._held.get(lane, -1)
            counted = self._db.execute(
                CONSUME,
                (events, last.whole, last.events, operator, lane, ownership, last.number),
            )
            if counted.rowcount != 1:
                raise _NotOursError

    def _check_taken(self, places: Sequence[Place]) -> None:
        for place in places:
            row = self._db.execute(
                "SELECT 1 FROM batches WHERE number = ? AND taken_by = ?",
                (place.number, self._process),
            ).fetchone()
            if row is None:
                raise _NotOursError

    def _forget_lost_lanes(self) -> None:
        operator, replica = self._member
        ours = dict(
            self._db.execute(
                "SELECT lane, ownership FROM lanes WHERE operator = ? AND replica = ?",
                (operator, replica),
            ).fetchall()
        )
        self._held = {lane: n for lane, n in self._held.items() if ours.get(lane) == n}

    def lengths(self, operator: str) -> Mapping[int, int]:
        """Read them."""
        return self._waiting.lengths(operator)

    def busy(self, name: MemberName) -> bool:
        """Look at its flag."""
        return self._flags.busy(name)

    def begun(self, operator: str) -> bool:
        """Look at the heads of the lanes."""
        return self._waiting.begun(operator)

    def wait(self, seconds: float) -> bool:
        """Sleep by the member's own socket; a process that has not joined just sleeps."""
        longest = 0.0 if self.more else seconds
        self._flags.note(self._member, self.more)
        self.more = False
        if self._sleeper:
            return self._sleeper.wait(longest)
        time.sleep(longest)
        return False

    def close(self) -> None:
        """Close the socket."""
        if self._sleeper:
            self._sleeper.close()
        self._flags.close()


def _by_lane(places: Sequence[Place]) -> Iterable[tuple[Place, int]]:
    """Of every lane, the last place, and how many events all of them hold."""
    if len(places) == 1:
        return [(places[0], places[0].events)]
    found: dict[int, tuple[Place, int]] = {}
    for place in places:
        _, events = found.get(place.lane, (place, 0))
        found[place.lane] = place, events + place.events
    return found.values()


def free_taken(db: sqlite3.Connection, process: str) -> None:
    """What a process took from shared lanes is there for others again."""
    db.execute("UPDATE batches SET taken_by = NULL WHERE taken_by = ?", (process,))
