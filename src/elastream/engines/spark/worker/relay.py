"""The relay: passes events from a source's inbox on to the source's successors."""

from __future__ import annotations

from elastream.engines.spark.backends.ledger import Counts
from elastream.engines.spark.backends.parcels import Taken
from elastream.engines.spark.worker.execution import events_of
from elastream.engines.spark.worker.member import CannotGoOnError, Member
from elastream.errors import described

LOOK_SECONDS = 0.1
FULL_SECONDS = 0.02
MOST_EVENTS = 2_000
ONLY_LANE = frozenset({0})


class Relay(Member):
    """Works for one source, from where it stopped before."""

    def step(self) -> float:
        """Pass on what waits, as far as there is room."""
        if not self.plan.active or not self.hold(ONLY_LANE):
            return LOOK_SECONDS
        if not self.pressure.is_open():
            return FULL_SECONDS
        if taken := self.lanes.take(MOST_EVENTS):
            self._hand_on(taken)
        return LOOK_SECONDS

    def _hand_on(self, taken: list[Taken]) -> None:
        try:
            divided = [self.router.divide(events_of(each)) for each in taken]
        except Exception as error:  # A condition on an edge, which is the user's code.
            raise CannotGoOnError(described(error)) from error
        emission = self.router.emission(divided)
        # They were counted as arrived when they were admitted.
        emitted = sum(each.events for each in taken)
        counts = Counts(emitted=emitted, sent=emission.sent, lost=emission.lost)
        self.commit(taken, emission.parcels, counts)
