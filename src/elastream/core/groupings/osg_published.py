"""`osg-published`: the scheduler of online shuffle grouping as printed (DABS-Storm section 5).

For one scheduler and replicas that are never idle, as in the paper. `osg` says what goes wrong with
more, and does without it. The replicas' side, which makes the sketches and answers the requests, is
`osg_replica`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from heapq import heapify, heapreplace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elastream.core.groupings.base import (
    Batch,
    Feedback,
    Grouping,
    Indices,
    Routing,
    SketchReport,
    SyncReply,
    SyncRequest,
    checked_active,
    checked_keys,
    in_turn,
)
from elastream.core.groupings.osg_replica import OsgReplica, sketched_costs
from elastream.core.sketches import HashFamily

Floats = NDArray[np.float64]


class Phase(Enum):
    """The states of the scheduler (figure 7a)."""

    ROUND_ROBIN = "round robin"
    SEND_ALL = "send all"
    WAIT_ALL = "wait all"
    RUN = "run"


@dataclass(frozen=True)
class OsgPublishedState:
    """What the scheduler knows. Arrays have one entry per replica of the pool."""

    frequency: Floats
    """Φ, flattened: how often a replica saw the values of a cell."""
    time: Floats
    """Ω, flattened: what the values of a cell cost it, in seconds."""
    work: Floats
    """Ĉ: estimated execution time of all that a replica was given, in seconds."""
    head_start: Floats
    """Added to Ĉ when replicas are compared: one that joins late has no past to catch up with."""
    phase: Phase = Phase.ROUND_ROBIN
    turn: int = 0
    round_number: int = 0
    """How often it has asked all replicas."""
    members: frozenset[int] = frozenset()
    """The replicas that were active at the last batch."""
    to_ask: tuple[int, ...] = ()
    replies: tuple[SyncReply, ...] = ()

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """Which replicas have reported their matrices."""
        return np.asarray(self.frequency.any(axis=1))


@dataclass(frozen=True)
class OsgPublished(Grouping[OsgPublishedState]):
    """Gives every event to the replica with the least estimated work (greedy online scheduler).

    Round robin until every active replica has reported its sketches; then the scheduler
    synchronises its estimates with the replicas and runs greedily, and synchronises again whenever
    a replica reports new sketches. A value costs Ω/Φ at its least used cell, where it shares
    least; a value never seen costs the replica's mean.

    DABS-Storm redeploys to change parallelism, and starts from nothing. Here replicas come and
    go: one that joins starts level with the least loaded, and until it reports for itself its
    costs are those of all others together, as sketches of one family can be added.
    """

    epsilon: float = 0.05
    delta: float = 0.05
    seed: int = 0

    name = "osg-published"
    needs_key = True
    listens_to = frozenset({SketchReport, SyncReply})

    @cached_property
    def family(self) -> HashFamily:
        """The hash functions that scheduler and replicas share."""
        return HashFamily.sized(self.epsilon, self.delta, self.seed)

    def replica_side(self, replica: int) -> OsgReplica:
        """The sketches of that replica, which also answers requests."""
        return OsgReplica.start(replica, self.family)

    def start(self, pool: int, producer: int = 0) -> OsgPublishedState:
        """No replica has reported yet."""
        table = np.zeros((pool, self.family.rows * self.family.columns))
        return OsgPublishedState(table, table.copy(), np.zeros(pool), np.zeros(pool), turn=producer)

    def route(
        self, state: OsgPublishedState, batch: Batch, active: ArrayLike
    ) -> Routing[OsgPublishedState]:
        """Schedule a batch as the current phase says."""
        keys = checked_keys(batch, self.name)
        replicas = checked_active(active)
        state = _with_members(state, replicas)
        if state.phase is Phase.ROUND_ROBIN:
            turn = (state.turn + batch.count) % len(replicas)
            rotation = in_turn(replicas, state.turn, batch.count)
            return Routing(rotation, replace(state, turn=turn))
        costs = self._costs(state, keys, replicas)
        work = dict(zip(replicas.tolist(), state.work[replicas].tolist(), strict=True))
        asked, requests = _ask(state, costs, replicas, work)
        chosen = asked + _greedily(costs, replicas, work, state.head_start, len(asked))
        state = _after(state, work, asked)
        return Routing(np.asarray(chosen, dtype=np.intp), state, requests)

    def learn(self, state: OsgPublishedState, feedback: Feedback) -> OsgPublishedState:
        """Take in a replica's sketches, or its answer to a request."""
        if isinstance(feedback, SketchReport):
            return self._with_sketches(state, feedback)
        if isinstance(feedback, SyncReply) and feedback.round_number == state.round_number:
            return _synchronised(replace(state, replies=(*state.replies, feedback)))
        return state

    def after_a_move(self, state: OsgPublishedState) -> OsgPublishedState:
        """Ask again those that have not answered: a new owner of a lane answers no requests."""
        return _asking_the_silent(state)

    def _with_sketches(self, state: OsgPublishedState, report: SketchReport) -> OsgPublishedState:
        frequency, time = state.frequency.copy(), state.time.copy()
        frequency[report.replica] = report.frequency.ravel()
        time[report.replica] = report.time.ravel()
        state = replace(state, frequency=frequency, time=time)
        missing = [replica for replica in state.members if not state.known[replica]]
        if state.phase is Phase.ROUND_ROBIN and (missing or not state.members):
            return state
        return replace(
            state,
            phase=Phase.SEND_ALL,
            round_number=state.round_number + 1,
            to_ask=tuple(sorted(state.members)),
            replies=(),
        )

    def _costs(self, state: OsgPublishedState, keys: ArrayLike, active: Indices) -> Floats:
        """ŵ: what each event would cost on each active replica, in seconds: (replicas, events)."""
        known = state.known[active]
        return sketched_costs(self.family, state.frequency, state.time, known, active, keys)


def _with_members(state: OsgPublishedState, active: Indices) -> OsgPublishedState:
    """The state for these active replicas: those that left owe no answer, new ones start level."""
    members = frozenset(active.tolist())
    if members == state.members:
        return state
    head_start = state.head_start.copy()
    stayed = sorted(members & state.members)
    joined = sorted(members - state.members)
    if stayed and joined:
        level = (state.work + state.head_start)[stayed].min()
        head_start[joined] = level - state.work[joined]
    return _asking_the_silent(replace(state, members=members, head_start=head_start))


def _asking_the_silent(state: OsgPublishedState) -> OsgPublishedState:
    """While waiting for answers: ask, or ask again, those that have not answered."""
    if state.phase not in (Phase.SEND_ALL, Phase.WAIT_ALL):
        return state
    silent = state.members - {reply.replica for reply in state.replies}
    phase = Phase.SEND_ALL if silent else Phase.WAIT_ALL
    return _synchronised(replace(state, phase=phase, to_ask=tuple(sorted(silent))))


def _ask(
    state: OsgPublishedState, costs: Floats, active: Indices, work: dict[int, float]
) -> tuple[list[int], tuple[SyncRequest, ...]]:
    """SEND ALL: the next events go to the replicas that are still to be asked, one to each."""
    asked = list(state.to_ask[: costs.shape[1]])
    row = {replica: index for index, replica in enumerate(active.tolist())}
    requests = []
    for position, replica in enumerate(asked):
        work[replica] += float(costs[row[replica], position])
        requests.append(SyncRequest(position, replica, state.round_number, work[replica]))
    return asked, tuple(requests)


def _greedily(
    costs: Floats, active: Indices, work: dict[int, float], head_start: Floats, first: int
) -> list[int]:
    """Each event from the `first` on to the least loaded replica; adds what it costs to `work`."""
    replicas = active.tolist()
    heap = [(work[r] + float(head_start[r]), row) for row, r in enumerate(replicas)]
    heapify(heap)
    chosen = []
    for cost in costs[:, first:].T.tolist():
        load, row = heap[0]
        heapreplace(heap, (load + cost[row], row))
        chosen.append(row)
    for load, row in heap:
        work[replicas[row]] = load - float(head_start[replicas[row]])
    return [replicas[row] for row in chosen]


def _after(state: OsgPublishedState, work: dict[int, float], asked: list[int]) -> OsgPublishedState:
    total = state.work.copy()
    total[list(work)] = list(work.values())
    state = replace(state, work=total, to_ask=state.to_ask[len(asked) :])
    if state.phase is Phase.SEND_ALL and not state.to_ask:
        state = replace(state, phase=Phase.WAIT_ALL)
    return _synchronised(state)


def _synchronised(state: OsgPublishedState) -> OsgPublishedState:
    """WAIT ALL ends when every member has answered: Ĉ becomes what replicas really did, and RUN."""
    answered = {reply.replica: reply.difference for reply in state.replies}
    if state.phase is not Phase.WAIT_ALL or not state.members <= answered.keys():
        return state
    work = state.work.copy()
    for replica in state.members:
        work[replica] += answered[replica]
    return replace(state, phase=Phase.RUN, work=work, replies=())
