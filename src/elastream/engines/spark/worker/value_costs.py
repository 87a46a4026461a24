"""The replica's side of a grouping that wants to know what values cost, such as `osg`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elastream.core.groupings.base import ReplicaSide, SyncReply, SyncRequest
from elastream.core.hashing import fingerprints
from elastream.core.topology import Operator, Topology
from elastream.engines.spark.backends.board import Board
from elastream.engines.spark.backends.members import MemberName
from elastream.engines.spark.backends.parcels import Taken
from elastream.engines.spark.keys import key_values
from elastream.engines.spark.worker.events import Events


class ValueCosts:
    """Runs the function value by value, and tells producers what values cost this replica."""

    def __init__(
        self, side: ReplicaSide, operator: Operator, name: MemberName, board: Board
    ) -> None:
        assert operator.key is not None
        self._side = side
        self._key = operator.key
        self._name = name
        self._board = board
        self._done: list[tuple[Any, NDArray[np.float64]]] = []

    @classmethod
    def wanted(cls, topology: Topology, name: MemberName, board: Board) -> ValueCosts | None:
        """For a replica whose grouping asks for it; None for all others."""
        operator = topology.by_name[name[0]]
        side = operator.router.replica_side(name[1])
        return None if side is None else cls(side, operator, name, board)

    def run(self, events: Events, execute: Callable[[Events], float]) -> None:
        """Run events value by value, the only way to see what a value costs.

        Args:
            events: On which.
            execute: Runs it, and says how long it took.
        """
        keys = key_values(events.table.column(self._key))
        seconds = np.zeros(len(keys))
        _, groups = np.unique(fingerprints(keys), return_inverse=True)
        for group in range(groups.max() + 1):
            places = np.flatnonzero(groups == group)
            seconds[places] = execute(events.chosen(places)) / len(places)
        self._done.append((keys, seconds))

    def report(self, taken: Sequence[Taken], committed: bool) -> None:
        """Learn from what was run for these events, and report it to producers.

        What was not committed is another's to report.
        """
        done, self._done = self._done, []
        if not committed:
            return
        keys = [key for keys, _ in done for key in keys]
        seconds = np.concatenate([seconds for _, seconds in done])
        asked = list(_asked(taken, self._name[1]))
        self._side, told = self._side.execute(keys, seconds, [request for _, request in asked])
        replies = [feedback for feedback in told if isinstance(feedback, SyncReply)]
        for (producer, _), reply in zip(asked, replies, strict=True):
            self._board.post(self._name, reply, [producer])
        for feedback in told:
            if not isinstance(feedback, SyncReply):
                self._board.post(self._name, feedback)


def _asked(taken: Sequence[Taken], number: int) -> Iterator[tuple[MemberName, SyncRequest]]:
    """The requests to this replica, with the positions of their events among all of them.

    A request names its replica: when the events have come to another with their lane, it is not for
    that one, and the producer will ask again.
    """
    before = 0
    for each in taken:
        first = 0 if each.chosen is None else int(each.chosen[0])
        if each.requests:
            for request in each.requests.asked:
                place = request.position - first
                if request.replica == number and 0 <= place < each.events:
                    yield each.requests.producer, replace(request, position=before + place)
        before += each.events
