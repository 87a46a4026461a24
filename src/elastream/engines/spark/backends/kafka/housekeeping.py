"""What the driver does besides: signs of life, snapshots, and deleting what nobody needs."""

from __future__ import annotations

import logging
import threading
from contextlib import ExitStack, closing

from elastream.engines.spark.backends.base import Ownership
from elastream.engines.spark.backends.kafka.clients import Place
from elastream.engines.spark.backends.kafka.journal import Journal
from elastream.engines.spark.backends.kafka.state import Driver
from elastream.engines.spark.backends.kafka.topics import JOURNAL, delete_records
from elastream.errors import BackendUnavailableError

log = logging.getLogger(__name__)

RENEW_SECONDS = 1.5
TIDY_SECONDS = 15.0
RECORDS_PER_SNAPSHOT = 2_000
"""A snapshot is written after this many records: a newcomer has about as many to read."""


class Housekeeping(threading.Thread):
    """Runs beside the driver, on clients of its own."""

    def __init__(self, place: Place, process: str, ownership: Ownership) -> None:
        super().__init__(name="kafka housekeeping", daemon=True)
        self._place = place
        self._process = process
        self._ownership = ownership
        self._over = threading.Event()
        self._snapshots: list[int] = []
        """Up to which offset of the journal the newest ones reach."""
        self._unneeded: dict[tuple[str, int], int] = {}

    def stop(self) -> None:
        """End it."""
        self._over.set()
        self.join()

    def run(self) -> None:
        """Renew often, tidy up now and then; the cluster may be away for a while."""
        with ExitStack() as opened:
            journal: Journal | None = None
            rounds = 0
            while not self._over.wait(RENEW_SECONDS):
                rounds += 1
                try:
                    journal = journal or opened.enter_context(closing(Journal(self._place)))
                    if not journal.append("renew", process=self._process):
                        self._ownership.lost = _taken_over(journal.state.driver, self._place)
                        log.error("%s", self._ownership.lost)
                        return
                    if rounds % round(TIDY_SECONDS / RENEW_SECONDS) == 0:
                        self.tidy(journal)
                except BackendUnavailableError as error:
                    log.warning("the state on Kafka cannot be tidied now: %s", error)
                except Exception:  # Without signs of life, another driver would take over.
                    log.exception("the state on Kafka cannot be tidied now")

    def tidy(self, journal: Journal) -> None:
        """Delete what was consumed, and what a snapshot has made superfluous.

        What became unneeded since the last time is left for the next: a commit that is under way
        may name a record that was stored before others that are consumed already.
        """
        unneeded = journal.sync().unneeded()
        agreed = {
            key: min(offset, unneeded[key])
            for key, offset in self._unneeded.items()
            if key in unneeded
        }
        self._unneeded = unneeded
        if agreed:
            journal.append("trim", upto=[(*key, offset) for key, offset in agreed.items()])
            delete_records(self._place, agreed)
        if journal.position - (self._snapshots or [0])[-1] >= RECORDS_PER_SNAPSHOT:
            self._snapshots = [*self._snapshots[-1:], journal.snapshot()]
            # Whoever has just read the snapshot before still finds what follows it.
            if len(self._snapshots) > 1:
                delete_records(self._place, {(self._place.topic(JOURNAL), 0): self._snapshots[0]})


def _taken_over(driver: Driver | None, place: Place) -> str:
    by = driver.who if driver else "one that has ended since"
    return (
        f"another driver has taken over the state kafka:{place}, because this one gave no sign of "
        f"life for too long: {by}"
    )
