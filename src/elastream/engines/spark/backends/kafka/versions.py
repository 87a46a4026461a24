"""The versions of what is written to Kafka: commands in the journal, and snapshots of the state."""

from __future__ import annotations

from typing import Any

from elastream.errors import InvalidInputError

NEWEST = 6
"""Grows whenever commands or snapshots change.

1: they do not say their version. 2: dead letters that are tried again name their lanes. 3: drivers
report deaths. 4: commits carry their counts as text. 5: what is restored is chained as it was, and
units keep their names when lanes change. 6: failures are of a generation, feedback is forgotten
when everybody is dismissed, and lanes are taken by force one by one.
"""
VERSION = "version"


def check_version(written: dict[str, Any]) -> int:
    """The version of a command or a snapshot; an error if it is from a later elastream."""
    version = written.get(VERSION, 1)
    if version not in range(1, NEWEST + 1):
        raise InvalidInputError(
            f"the state on Kafka has version {version}, and this elastream knows versions 1 to "
            f"{NEWEST}: use the elastream that made it, or name another state"
        )
    return int(version)
