"""`next-free`: round robin, past replicas that are busy while another is free."""

from __future__ import annotations

from dataclasses import dataclass

from elastream.core.groupings.shuffle import Shuffle


@dataclass(frozen=True)
class NextFree(Shuffle):
    """The next in turn that is free; if none is, the next in turn.

    Producers that go round on their own happen to be in step: they send to the same replica at the
    same moment, and again every round, while another replica has nothing to do. Where an engine
    does not know who is free, this is `shuffle`.

    >>> from elastream.core.groupings.base import Batch
    >>> NextFree().route(0, Batch(5), active=[0, 1, 3]).replicas
    array([0, 1, 3, 0, 1])
    """

    name = "next-free"
    prefers_free = True
