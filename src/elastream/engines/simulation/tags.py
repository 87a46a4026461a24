"""Tagged events: a few that stand for all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST_TAGS = 4096
"""How many tags may wait at one place; in a longer queue each stands for more events."""


@dataclass(frozen=True, slots=True)
class Tags:
    """Tagged events that are at the same place."""

    born: Floats
    """When they arrived at their source."""
    time: Floats
    """When they came here; for those that leave, when they leave."""
    weight: Floats
    """How many events each stands for."""
    place: Floats
    """Their number in the queue; for one of several queues, when their turn comes; else NaN."""

    @classmethod
    def new(cls, born: Floats, time: Floats, weight: Floats) -> Tags:
        """Tags that have no place yet."""
        return cls(born, time, weight, np.full(len(born), np.nan))

    @classmethod
    def together(cls, parts: list[Tags]) -> Tags:
        """All of them, in this order."""
        if len(parts) < 2:
            return parts[0] if parts else NONE
        fields = ("born", "time", "weight", "place")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in fields))

    def where(self, chosen: NDArray[np.bool_]) -> Tags:
        """Some of them."""
        return Tags(self.born[chosen], self.time[chosen], self.weight[chosen], self.place[chosen])


NONE = Tags(*(np.empty(0) for _ in range(4)))


def divided(tags: Tags, chosen: NDArray[np.bool_]) -> tuple[Tags, Tags]:
    """Those that are chosen, and the others."""
    return (tags, NONE) if chosen.all() else (tags.where(chosen), tags.where(~chosen))


def thinned(tags: Tags, random: np.random.Generator) -> Tags:
    """At most `MOST_TAGS`: of every two neighbours one, drawn at random, stands for both."""
    if len(tags.born) <= MOST_TAGS:
        return tags
    pairs = len(tags.born) // 2
    first = 2 * np.arange(pairs)
    kept = first + random.integers(0, 2, pairs)
    weight = tags.weight[first] + tags.weight[first + 1]
    half = Tags(tags.born[kept], tags.time[kept], weight, tags.place[kept])
    odd = np.arange(len(tags.born)) >= 2 * pairs
    return Tags.together([half, tags.where(odd)])
