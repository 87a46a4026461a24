"""How a driver takes over a state, whatever the run before it has left."""

from __future__ import annotations

from collections.abc import Mapping

from elastream.engines.spark.backends.base import Backend
from elastream.engines.spark.backends.layout import OperatorLanes


def take_over(backend: Backend, pipeline: str, operators: Mapping[str, OperatorLanes]) -> None:
    """Let nobody of an earlier run act on a state any more, then lay out its lanes."""
    if backend.exists:
        # Before lanes move, and nobody knows any more who was working on what.
        with backend.connect() as connection:
            connection.board.dismiss_after_a_death()
    backend.prepare(pipeline, operators)
