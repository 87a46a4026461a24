"""The backend on a Kafka cluster.

Everything that members must agree on is in one journal, whose order decides; events are records of
their own, which a commit in the journal names. So a commit is one record: all of it counts, or
nothing, and neither transactions nor fencing by the broker are needed for that.
"""

from __future__ import annotations

import logging
import os
import socket
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from elastream.engines.spark.backends.base import Backend, Connection, Ownership
from elastream.engines.spark.backends.checkpoints import folder_of
from elastream.engines.spark.backends.inbox import Inbox
from elastream.engines.spark.backends.kafka import savepoint, topics
from elastream.engines.spark.backends.kafka.blobs import Blobs
from elastream.engines.spark.backends.kafka.board import KafkaBoard
from elastream.engines.spark.backends.kafka.clients import Place
from elastream.engines.spark.backends.kafka.dataframes import KafkaInbox, KafkaOutbox
from elastream.engines.spark.backends.kafka.dead_letters import KafkaDeadLetters
from elastream.engines.spark.backends.kafka.housekeeping import RENEW_SECONDS, Housekeeping
from elastream.engines.spark.backends.kafka.journal import Journal
from elastream.engines.spark.backends.kafka.lanes import KafkaLanes
from elastream.engines.spark.backends.kafka.layout import lay_out
from elastream.engines.spark.backends.kafka.ledger import KafkaLedger
from elastream.engines.spark.backends.kept import Kept
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.backends.outbox import Outbox
from elastream.errors import BackendUnavailableError, InvalidInputError

log = logging.getLogger(__name__)

LEASE_SECONDS = 4 * RENEW_SECONDS
"""A driver that has given no sign of life for this long is gone."""


@dataclass(frozen=True)
class KafkaBackend(Backend):
    """Topics that begin with one name."""

    place: Place
    checkpoints: str = ""

    @classmethod
    def parse(cls, text: str, checkpoint: str = "") -> KafkaBackend:
        """What follows `kafka:` in a URL, and where checkpoints are."""
        return cls(Place.parse(text), checkpoint)

    @property
    def url(self) -> str:
        """The place; secrets are in the file that it names."""
        return f"kafka:{self.place}"

    @property
    def local_folder(self) -> Path:
        """Where checkpoints are, if that is a folder, or else next to where the driver started."""
        return folder_of(self.checkpoints) or Path(f"elastream-{self.place.name}").absolute()

    @property
    def exists(self) -> bool:
        """Whether a pipeline has claimed the topics."""
        if self.place.topic(topics.JOURNAL) not in topics.existing(self.place):
            return False
        with closing(Journal(self.place)) as journal:
            return journal.sync().pipeline is not None

    @contextmanager
    def own(self) -> Iterator[Ownership]:
        """Append who we are, give signs of life, and tidy up."""
        topics.make(self.place, {})
        process = uuid.uuid4().hex
        with closing(Journal(self.place)) as journal:
            self._become_driver(journal, process)
            ownership = Ownership()
            housekeeping = Housekeeping(self.place, process, ownership)
            housekeeping.start()
            try:
                yield ownership
            finally:
                housekeeping.stop()
                self._release(journal, process)

    def _release(self, journal: Journal, process: str) -> None:
        """Let the next driver begin at once; if the cluster is away, it waits for the lease."""
        try:
            journal.append("disown", process=process)
        except BackendUnavailableError as error:
            log.warning(
                "%s could not be released, so the next run with it starts %g s later: %s",
                self.url,
                LEASE_SECONDS,
                error,
            )

    def _become_driver(self, journal: Journal, process: str) -> None:
        started = time.strftime("%Y-%m-%d %H:%M:%S")
        who = f"process {os.getpid()} on {socket.gethostname()}, since {started}"
        other = journal.append("own", process=process, who=who, instead_of=None)
        ends = time.monotonic() + LEASE_SECONDS
        while other is not None and time.monotonic() < ends:
            journal.follow(0.1)
            driver = journal.state.driver
            if driver is not None and driver.beat != other[2]:
                raise InvalidInputError(
                    f"the state {self.url} is in use by {driver.who}: "
                    "stop it first, or name another state"
                )
            if driver is None:
                other = journal.append("own", process=process, who=who, instead_of=None)
        if other is not None:
            seen = [other[0], other[2]]
            if journal.append("own", process=process, who=who, instead_of=seen) is not None:
                raise InvalidInputError(f"the state {self.url} was taken over by another driver")

    def prepare(self, pipeline: str, operators: Mapping[str, OperatorLanes]) -> None:
        """Make the topics, claim them, and lay out the lanes."""
        topics.make(self.place, {name: of.lanes for name, of in operators.items()})
        with closing(Journal(self.place)) as journal:
            owner = journal.append("claim", pipeline=pipeline)
            if owner != pipeline:
                raise InvalidInputError(
                    f"the state {self.url} belongs to another pipeline ({owner}): "
                    "name another, or remove it with 'elastream clean'"
                )
            for name, wanted in operators.items():
                lay_out(journal, self.place, name, wanted)

    def layout(self) -> Mapping[str, OperatorLanes]:
        """As the journal has it."""
        if not self.exists:
            return {}
        with closing(Journal(self.place)) as journal:
            return dict(journal.sync().layout)

    def connect(self) -> KafkaConnection:
        """Clients of its own."""
        return KafkaConnection(self.place)

    def inbox(self, source: str) -> Inbox:
        """On a journal of its own."""
        return KafkaInbox(self.place, source)

    def outbox(self, operator: str) -> Outbox:
        """On a journal of its own."""
        return KafkaOutbox(self.place, operator)

    def clear(self, operator: str) -> int:
        """Append it."""
        with closing(Journal(self.place)) as journal:
            dropped: int = journal.append("clear", operator=operator)
            return dropped

    def sweep(self) -> None:
        """Members leave nothing behind but what the journal knows."""

    def described(self) -> tuple[str, Mapping[str, OperatorLanes]] | None:
        """Read to the end, and look."""
        if not self.exists:
            return None
        with closing(Journal(self.place)) as journal:
            state = journal.sync()
            return None if state.pipeline is None else (state.pipeline, dict(state.layout))

    def kept(self) -> Iterator[Kept]:
        """Read everything that the journal names."""
        with closing(Journal(self.place)) as journal, closing(Blobs(self.place)) as blobs:
            yield from savepoint.kept(journal.sync(), blobs)

    def restore(
        self, pipeline: str, operators: Mapping[str, OperatorLanes], kept: Iterable[Kept]
    ) -> None:
        """Claim the state for nobody, fill it, and hand it over."""
        topics.make(self.place, {name: of.lanes for name, of in operators.items()})
        with closing(Journal(self.place)) as journal:
            if not savepoint.restore(journal, self.place, pipeline, operators, kept):
                raise InvalidInputError(
                    f"the state {self.url} is not empty: name another, or remove it with "
                    "'elastream clean'"
                )

    def check_removable(self) -> None:
        """Become its driver for a moment: one that has died is waited for here."""
        if self.exists:
            with closing(Journal(self.place)) as journal:
                process = uuid.uuid4().hex
                self._become_driver(journal, process)
                self._release(journal, process)

    def remove(self) -> list[str]:
        """Delete all topics of the state; their names."""
        if self.exists:
            with closing(Journal(self.place)) as journal:
                self._become_driver(journal, uuid.uuid4().hex)
        return topics.remove(self.place)


class KafkaConnection(Connection):
    """The ports on one journal."""

    def __init__(self, place: Place) -> None:
        self.lanes: KafkaLanes = KafkaLanes(place)
        self.board: KafkaBoard = KafkaBoard(self.lanes.journal)
        self.ledger: KafkaLedger = KafkaLedger(self.lanes.journal)
        self.dead_letters: KafkaDeadLetters = KafkaDeadLetters(self.lanes.journal, self.lanes.blobs)

    def close(self) -> None:
        """Let go of the clients."""
        self.lanes.close()
