"""Dead letters: what is known of them is in the journal, their events are in a topic."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from elastream.engines.spark.backends.dead_letters import DeadLetter, DeadLetters
from elastream.engines.spark.backends.kafka.blobs import AT_ONCE, Blobs
from elastream.engines.spark.backends.kafka.journal import Journal


class KafkaDeadLetters(DeadLetters):
    """Their events are in a topic of their own, everything else is in the journal."""

    def __init__(self, journal: Journal, blobs: Blobs) -> None:
        self._journal = journal
        self._blobs = blobs

    def read(self, operator: str | None = None) -> Iterator[DeadLetter]:
        """A few at a time."""
        found = [
            (number, letter)
            for number, letter in sorted(self._journal.sync().letters.items(), reverse=True)
            if operator in (None, letter.operator)
        ]
        for first in range(0, len(found), AT_ONCE):
            some = found[first : first + AT_ONCE]
            stored = self._blobs.read(letter.blob for _, letter in some)
            for number, of in some:
                data = stored[of.blob].data
                yield DeadLetter(of.operator, of.events, of.error, data, of.lane, of.time, number)

    def errors(self, after: int) -> tuple[int, Mapping[tuple[str, str], int]]:
        """Count those with higher numbers."""
        news = {n: of for n, of in self._journal.sync().letters.items() if n > after}
        errors: Counter[tuple[str, str]] = Counter()
        for letter in news.values():
            errors[letter.operator, letter.error] += letter.events
        return max(news, default=after), dict(errors)

    def retry(self, letters: Sequence[DeadLetter]) -> int:
        """Append their numbers: those that are gone already come to nothing."""
        layout = self._journal.sync().layout
        lanes = [
            layout[each.operator].lane_again(each) if each.operator in layout else each.lane
            for each in letters
        ]
        numbers = [letter.number for letter in letters]
        again: int = self._journal.append("retry", numbers=numbers, lanes=lanes, time=time.time())
        return again
