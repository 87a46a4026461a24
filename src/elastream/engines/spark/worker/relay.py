"""The relay: hands what waits in a source's inbox on to the source's successors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from elastream.engines.spark.arrow_ipc import from_bytes
from elastream.engines.spark.backends.base import Counts, StoredBatch, Transport, mean_birth
from elastream.engines.spark.worker.outlet import Outlet
from elastream.engines.spark.worker.standstill import stand_still
from elastream.errors import described

LOOK_SECONDS = 0.1
FULL_SECONDS = 0.02
MOST_EVENTS = 2_000


class Relay:
    """Works for one source, from where it stopped before."""

    def __init__(self, name: str, outlet: Outlet, transport: Transport) -> None:
        self._name = name
        self._outlet = outlet
        self._transport = transport

    def run(self) -> None:
        """Hand on, until another process takes this one's place, or all are dismissed."""
        self._transport.join((self._name, 0))
        while self._outlet.look():
            if not self._outlet.room():
                self._outlet.wait(FULL_SECONDS)
            elif batches := self._transport.take(MOST_EVENTS, shared=False):
                try:
                    divided = [self._outlet.divide(from_bytes(batch.data)) for batch in batches]
                except Exception as error:  # A condition on an edge, which is the user's code.
                    stand_still((self._name, 0), self._transport, described(error))
                    return
                self._hand_on(batches, divided)
            else:
                self._outlet.wait(LOOK_SECONDS)

    def _hand_on(
        self, batches: list[StoredBatch], divided: Sequence[Mapping[str, pa.Table]]
    ) -> None:
        emission = self._outlet.emission(divided, mean_birth(batches))
        # They were counted as arrived when they were admitted.
        events = sum(batch.events for batch in batches)
        counts = Counts(emitted=events, sent=emission.sent, lost=emission.lost)
        self._transport.commit(batches, emission.batches, counts)
