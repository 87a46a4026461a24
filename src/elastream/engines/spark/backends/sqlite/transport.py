"""The transport in a state folder: what belongs together happens in one transaction."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from elastream.core.groupings import SHARED_QUEUE
from elastream.core.groupings.base import Feedback
from elastream.engines.spark.backends.base import (
    NO_PLAN,
    ActivePlan,
    Counts,
    DeadLetter,
    ReplicaName,
    StoredBatch,
    SupersededError,
    Totals,
    Transport,
)
from elastream.engines.spark.backends.sqlite import (
    dead_letters as dead_letters_table,
)
from elastream.engines.spark.backends.sqlite import (
    feedback as feedback_table,
)
from elastream.engines.spark.backends.sqlite import (
    plans,
)
from elastream.engines.spark.backends.sqlite.database import FILE, opened
from elastream.engines.spark.backends.sqlite.lanes import Queues
from elastream.engines.spark.backends.sqlite.ledger import Tally
from elastream.engines.spark.backends.sqlite.membership import Membership
from elastream.engines.spark.backends.sqlite.wakeup import (
    NEWS,
    Bell,
    Ringer,
    bell_name,
    remove_bells,
)
from elastream.errors import InvalidInputError
from elastream.transactions import transaction


class _NotOursError(Exception):
    """Somebody else acts for this replica, or has its batches."""


class SqliteTransport(Transport):
    """One end of the transport, for one process or thread.

    Args:
        folder: The state folder.
        generation: A higher number is a later generation.
    """

    def __init__(self, folder: Path, generation: int = 0) -> None:
        self.folder = folder
        self._generation = generation
        self._db = opened(folder)
        self._queues = Queues(self._db)
        self._membership = Membership(self._db)
        self._tally = Tally(self._db)
        self._ringer = Ringer(folder)
        self._bell: Bell | None = None
        self._name: ReplicaName | None = None
        self._left = False
        """Whether the last `take` left something."""
        self._owner = f"{os.getpid()}:{uuid.uuid4().hex}"

    @staticmethod
    def existing(folder: Path) -> SqliteTransport:
        """The transport of a folder that a run has used; nothing is made where there is none."""
        if not (folder / FILE).is_file():
            raise InvalidInputError(f"{folder} is no state folder: it has no {FILE}")
        return SqliteTransport(folder)

    def claim(self, pipeline: str) -> None:
        """Write the pipeline down, or compare."""
        with transaction(self._db):
            self._db.execute("INSERT OR IGNORE INTO meta VALUES ('pipeline', ?)", (pipeline,))
        (owner,) = self._db.execute("SELECT value FROM meta WHERE name = 'pipeline'").fetchone()
        if owner != pipeline:
            raise InvalidInputError(
                f"the state folder {self.folder} belongs to another pipeline ({owner}): "
                "name another folder, or remove it"
            )

    def join(self, name: ReplicaName) -> None:
        """Become the owner; batches of the shared queue that the last owner took are free again."""
        with transaction(self._db):
            if self._membership.generation(name) > self._generation:
                raise SupersededError
            self._release(name)
            self._membership.add(name, self._owner, self._generation)
        self._name = name
        self._bell = Bell(self.folder, bell_name(*name))

    def members(self) -> Mapping[ReplicaName, str]:
        """Read their names and owners."""
        return self._membership.owners()

    def dismiss(self, names: Sequence[ReplicaName] | None = None) -> None:
        """Forget the owners, and what they had taken."""
        with transaction(self._db):
            for name in self.members() if names is None else names:
                self._release(name)
            if names is None:
                self._membership.forget_failures()
        self._ringer.ring_all(what=NEWS)

    def _release(self, name: ReplicaName) -> None:
        """What its owner had taken from the shared queue is free again."""
        owner = self._membership.remove(name)
        if owner:
            self._queues.release(owner)

    def report_failure(self, name: ReplicaName, error: str) -> None:
        """Write the newest error down."""
        with transaction(self._db):
            self._membership.report_failure(name, error)

    def failures(self) -> Mapping[ReplicaName, str]:
        """Read the newest errors."""
        return self._membership.failures()

    def owns(self) -> bool:
        """Look the owner up."""
        return self._membership.owned(self._joined, self._owner)

    def take(self, most: int, shared: bool) -> list[StoredBatch]:
        """Nobody else reads the own queue; from the shared one batches are taken by name."""
        operator, _ = self._joined
        if not shared:
            batches, self._left = self._queues.head(self._joined, most)
            return batches
        queue = operator, SHARED_QUEUE
        if not self._queues.any_free(queue):
            self._left = False
            return []
        with transaction(self._db):
            batches, self._left = self._queues.head(queue, most)
            self._queues.mark_taken(batches, self._owner)
        return batches

    def commit(
        self,
        done: Sequence[StoredBatch],
        results: Sequence[StoredBatch],
        counts: Counts,
        dead: Sequence[DeadLetter] = (),
    ) -> bool:
        """One transaction: whoever is not the owner any more rolls back."""
        try:
            with transaction(self._db):
                self._remove(done)
                self._queues.add(results)
                self._tally.add(self._joined, counts)
                if dead:
                    dead_letters_table.add(self._db, dead, queue=done[0].replica if done else 0)
        except _NotOursError:
            return False
        self._wake({(batch.operator, batch.replica) for batch in results})
        return True

    def _remove(self, done: Sequence[StoredBatch]) -> None:
        """Remove the batches if every one is still ours."""
        ours = all(self._queues.remove(batch, self._owner) for batch in done)
        if not (ours if done else self.owns()):
            raise _NotOursError

    def share_out(self, operator: str, active: Sequence[int]) -> None:
        """Move the batches, and wake all replicas of the operator."""
        with transaction(self._db):
            self._queues.share_out(operator, active)
        self._ringer.ring_all(bell_name(operator, ""))

    def gather(self, operator: str, queues: Sequence[int]) -> None:
        """Move the batches."""
        with transaction(self._db):
            self._queues.gather(operator, queues)

    def tell(self, producers: Iterable[ReplicaName], feedback: Feedback) -> None:
        """Write it down; producers look when they look for a plan."""
        with transaction(self._db):
            feedback_table.leave(self._db, producers, self._joined, feedback)

    def hear(self) -> list[tuple[str, Feedback]]:
        """Take what there is."""
        if not feedback_table.any_for(self._db, self._joined):
            return []
        with transaction(self._db):
            return feedback_table.collect(self._db, self._joined)

    def waiting(self, operator: str) -> int:
        """Add the operator's queues up."""
        return self._queues.waiting(operator)

    def plan(self, known: ActivePlan = NO_PLAN) -> ActivePlan:
        """Read the newest one."""
        return plans.newest(self._db, known)

    def publish(self, plan: ActivePlan) -> None:
        """Write the plan, and ring all bells."""
        with transaction(self._db):
            plans.replace(self._db, plan)
        self._ringer.ring_all(what=NEWS)

    def totals(self) -> Totals:
        """Read everything in one snapshot."""
        with transaction(self._db, "DEFERRED"):
            return Totals(self._tally.read(), self._queues.lengths())

    def dead_letters(self, operator: str | None = None) -> Iterator[DeadLetter]:
        """Read them one by one."""
        return dead_letters_table.read(self._db, operator)

    def retry(self, dead: Sequence[DeadLetter]) -> int:
        """Move those that are still there, all in one transaction."""
        with transaction(self._db):
            queues = [
                queue for letter in dead if (queue := dead_letters_table.put_back(self._db, letter))
            ]
        self._wake(set(queues))
        return len(queues)

    def wait(self, seconds: float) -> bool:
        """Sleep by the own bell; a process that has not joined just sleeps."""
        longest = 0.0 if self._left else seconds
        self._left = False
        if self._bell:
            return self._bell.wait(longest)
        time.sleep(longest)
        return False

    def sweep(self) -> None:
        """Take all bells down."""
        remove_bells(self.folder)

    def close(self) -> None:
        """Close the file and the sockets."""
        self._db.close()
        self._ringer.close()
        if self._bell:
            self._bell.close()

    @property
    def _joined(self) -> ReplicaName:
        assert self._name is not None, "join first"
        return self._name

    def _wake(self, queues: set[ReplicaName]) -> None:
        """Ring for whoever reads these queues."""
        for operator, replica in queues:
            if replica == SHARED_QUEUE:
                self._ringer.ring_all(bell_name(operator, ""))
            else:
                self._ringer.ring(bell_name(operator, replica))
