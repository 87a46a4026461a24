"""Which operators share replicas in a run: as requested, or as the state was left.

Events that wait inside a chain-to-be, or at an entrance of one, would be overtaken if the chains
changed around them. So a state keeps its chains until these lanes are empty. It also keeps a chain
until the units are done that somebody has begun: an operator inside names its own after them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from elastream.core.chains import NOTHING_KNOWN, Chains, Costs
from elastream.core.topology import Topology
from elastream.engines.spark.backends.base import Backend
from elastream.engines.spark.backends.ledger import Totals
from elastream.errors import InvalidTopologyError

log = logging.getLogger(__name__)

LEAST_EVENTS = 1_000
"""The cost of fewer events than this says little about the next ones."""


def chosen_chains(
    topology: Topology,
    backend: Backend,
    measured: Costs = NOTHING_KNOWN,
    say: Callable[[str], object] = log.info,
) -> Chains:
    """The chains of a run, with a message about each.

    Args:
        topology: As declared.
        backend: The state that it resumes, with the measured cost of operators.
        measured: What operators cost elsewhere, for those that did nothing there.
        say: Told which operators are chained, and why.

    Raises:
        InvalidTopologyError: The state's chains must be kept, and do not fit what is declared.
    """
    before = backend.layout()
    if not before:
        return _announced(Chains.planned(topology, measured), say)
    kept = {name: of.chained_to for name, of in before.items() if of.chained_to is not None}
    with backend.connect() as connection:
        totals = connection.ledger.totals()
        wanted = Chains.planned(topology, {**measured, **_costs(topology, totals)})
        changing = {
            name
            for name in topology.by_name
            if name in before and kept.get(name) != wanted.chained.get(name)
        }
        heads = {_head(name, kept) for name in changing if name in kept}
        held_up = {name for name in changing if totals.waiting(name)}
        held_up |= {name for name in heads if connection.lanes.begun(name)}
    if not held_up:
        return _announced(wanted, say)
    return _announced(_kept(topology, kept, sorted(held_up)), say)


def _head(name: str, chained: Mapping[str, str]) -> str:
    """The first operator of a chain: the one whose lanes it works on."""
    while name in chained:
        name = chained[name]
    return name


def _kept(topology: Topology, kept: Mapping[str, str], held_up: list[str]) -> Chains:
    waiting = ", ".join(map(repr, held_up))
    log.warning(
        "the chains of %s stay as the state has them: events wait at %s. "
        "Drain the run, and the next one has the new chains",
        topology,
        waiting,
    )
    try:
        return Chains.kept(topology, kept, f"kept, as events wait at {waiting}")
    except InvalidTopologyError as error:
        raise InvalidTopologyError(
            f"{error}. Run the pipeline as it was until these events are through (drain it), "
            "and then as it is now"
        ) from None


def _costs(topology: Topology, totals: Totals) -> dict[str, float]:
    """Seconds per event of every operator that has processed enough of them."""
    found = {}
    for name in topology.by_name:
        mine = [of for (operator, _), of in totals.counts.items() if operator == name]
        events = sum(of.processed for of in mine)
        if events >= LEAST_EVENTS:
            found[name] = sum(of.busy for of in mine) / events
    return found


def _announced(chains: Chains, say: Callable[[str], object]) -> Chains:
    for link in chains.links:
        if link.chained:
            say(str(link))
    return chains
