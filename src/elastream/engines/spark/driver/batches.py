"""Sources that a Python iterable on the driver feeds, batch by batch."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from elastream.engines.spark.arrow_ipc import to_bytes
from elastream.engines.spark.backends.base import Backend
from elastream.engines.spark.backends.inbox import NOTHING_ADMITTED, Inbox
from elastream.engines.spark.dataframes.feeds import checkpoint_of, newest_batch
from elastream.engines.spark.dataframes.sink import FULL_SECONDS, PIECE
from elastream.engines.spark.worker.events import to_table
from elastream.errors import BackendUnavailableError, EngineError, InvalidInputError, described

log = logging.getLogger(__name__)

UNAVAILABLE_SECONDS = 0.5
STOP_SECONDS = 5.0
"""How long a stop waits for an iterable."""
END = object()
"""What an exhausted iterable yields."""


@dataclass(frozen=True)
class BatchSource:
    """Batches from a list, a generator or any other iterable; the source ends when it does.

    A batch is a `pyarrow.Table`, a `pandas.DataFrame` or a list of rows. It is let in as a whole,
    and once it is, it is safe. The iterable is not rewound: of what a killed run had taken from it
    and not let in, the next run knows nothing.
    """

    batches: Iterable[Any]

    @property
    def columns(self) -> None:
        """What its events have is not known before the first batch."""
        return


class BatchFeeds:
    """One thread for every iterable."""

    def __init__(
        self, backend: Backend, sources: Mapping[str, BatchSource], queue_size: int
    ) -> None:
        self._stop = threading.Event()
        self._errors: dict[str, str] = {}
        self._threads = [
            threading.Thread(
                target=self._run,
                args=(name, source, backend, queue_size),
                name=f"feed {name}",
                daemon=True,
            )
            for name, source in sources.items()
        ]
        for thread in self._threads:
            thread.start()

    @property
    def ended(self) -> bool:
        """Whether all of them have come to their end; one that has failed never does.

        A run that took it for its end could be over before anybody has looked for the error.
        """
        return not self._errors and not any(thread.is_alive() for thread in self._threads)

    def check(self) -> None:
        """An error if one of them has failed: what it has given is safe, but no more comes."""
        for name, error in self._errors.items():
            raise EngineError(f"the batches of the source {name!r} failed: {error}")

    def stop(self) -> None:
        """Let nothing more in, except a batch that was taken already."""
        # An iterable that waits for something cannot be woken, and gives nothing any more: it is
        # waited for once, and not by every drain and by the end again.
        patience = 0.0 if self._stop.is_set() else STOP_SECONDS
        self._stop.set()
        for thread in self._threads:
            thread.join(patience)

    def _run(self, name: str, source: BatchSource, backend: Backend, queue_size: int) -> None:
        try:
            with closing(backend.inbox(name)) as inbox:
                number, batches = inbox.admitted(), iter(source.batches)
                # Nothing is taken from the iterable that is not let in, unless it made us wait.
                while not self._stop.is_set():
                    batch = next(batches, END)
                    if batch is END or self._stop.is_set():
                        return
                    table = to_table(batch)
                    if table.num_rows:
                        _persistently(self._wait_for_room, inbox, queue_size)
                        number += 1
                        _persistently(_let_in, inbox, table, number)
        except Exception as error:
            self._errors[name] = described(error)

    def _wait_for_room(self, inbox: Inbox, queue_size: int) -> None:
        while inbox.waiting() >= queue_size and not self._stop.is_set():
            time.sleep(FULL_SECONDS)


def prepare_inbox(backend: Backend, source: str) -> None:
    """Forget what a run that was killed has not let in; an error if a DataFrame fed the source."""
    with closing(backend.inbox(source)) as inbox:
        fed_before = inbox.admitted() > NOTHING_ADMITTED
        named = backend.checkpoints
        if fed_before and named and newest_batch(checkpoint_of(backend, source)) is not None:
            raise InvalidInputError(
                f"in the state {backend.url} a DataFrame has fed the source {source!r}: "
                "feed it from one again, or name another state"
            )
        inbox.discard()


def _let_in(inbox: Inbox, table: pa.Table, number: int) -> None:
    name = uuid.uuid4().hex
    for start in range(0, table.num_rows, PIECE):
        piece = table.slice(start, PIECE)
        inbox.stage(name, piece.num_rows, to_bytes(piece))
    inbox.admit(number, {name: table.num_rows})


def _persistently(work: Callable[..., None], *arguments: Any) -> None:
    """Try again for as long as the backend can take nothing, for instance on a full disk."""
    while True:
        try:
            work(*arguments)
            return
        except BackendUnavailableError as error:
            log.warning("a batch waits: %s", error)
            time.sleep(UNAVAILABLE_SECONDS)
