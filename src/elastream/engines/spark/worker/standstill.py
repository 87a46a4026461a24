"""What a member does that cannot go on: it says why, and keeps its place until it is dismissed.

If it ended, Spark would start it again and again, to the same end.
"""

from __future__ import annotations

from elastream.engines.spark.backends.base import ReplicaName, Transport

LOOK_SECONDS = 0.5


def stand_still(name: ReplicaName, transport: Transport, error: str) -> None:
    """Report the error, and come back when somebody else acts for this member, or nobody does."""
    transport.report_failure(name, error)
    while transport.owns():
        transport.wait(LOOK_SECONDS)
