"""The ledger: what the commits in the journal add up to."""

from __future__ import annotations

from elastream.engines.spark.backends.kafka.journal import Journal
from elastream.engines.spark.backends.ledger import Counts, LaneStates, Ledger, Totals
from elastream.engines.spark.backends.members import MemberName


class KafkaLedger(Ledger):
    """What the journal's commits add up to."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def totals(self) -> Totals:
        """All of one moment."""
        state = self._journal.count()
        counts = {name: of.counts for name, of in state.counted.items()}
        return Totals(counts, state.lane_states())

    def lanes(self) -> LaneStates:
        """Of the same moment."""
        return self._journal.count().lane_states()

    def counts(self, name: MemberName) -> Counts:
        """One member's."""
        found = self._journal.count().counted.get(name)
        return Counts() if found is None else found.counts
