"""The four functions on Bytewax: `python -m bytewax.run on_bytewax:flow -w WORKERS`.

Every worker reads its part of the events and maps them one by one; nothing is redistributed.
Environment variables: RATE, NOTES (a folder), STARTED (when events began to come).
"""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition

sys.path.insert(0, str(Path(__file__).parent))
from feed import due, note, step

RATE, NOTES = float(os.environ["RATE"]), os.environ["NOTES"]
STARTED = float(os.environ["STARTED"])
WAKE = timedelta(milliseconds=1)


class Part(StatelessSourcePartition[Any]):
    """Every so manieth event."""

    def __init__(self, index: int, count: int) -> None:
        self._index, self._count = index, count
        self._sent = len(due(RATE, STARTED, 0))

    def next_batch(self) -> list[Any]:
        """What has come since the last call."""
        events = due(RATE, STARTED, self._sent)
        self._sent += len(events)
        return [event for event in events if event[0] % self._count == self._index]

    def next_awake(self) -> datetime:
        """Look again soon: the shortest wait keeps latencies low."""
        return datetime.now(UTC) + WAKE


class Events(DynamicSource[Any]):
    """All events, shared among workers."""

    def build(self, step_id: str, worker_index: int, worker_count: int) -> Part:
        """One part for each."""
        return Part(worker_index, worker_count)


class NotePart(StatelessSinkPartition[Any]):
    """Notes what a worker has done."""

    def write_batch(self, items: list[Any]) -> None:
        """One line for each event."""
        for item in items:
            note(item, NOTES)


class Notes(DynamicSink[Any]):
    """Notes everything."""

    def build(self, step_id: str, worker_index: int, worker_count: int) -> NotePart:
        """One part for each worker."""
        return NotePart()


flow = Dataflow("peers")
stream = op.input("events", flow, Events())
for number in range(4):
    stream = op.map(f"step{number}", stream, step)
op.output("notes", stream, Notes())
