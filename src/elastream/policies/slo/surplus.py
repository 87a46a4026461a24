"""When `slo` lets surplus replicas go: what keeping them costs, and whether chance needs them."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace

from elastream.core.demand import recent_intervals
from elastream.core.lead_time import LeadTime
from elastream.policies.base import REMEMBERED_INTERVALS, REMEMBERED_SECONDS, Context
from elastream.policies.slo.load import OperatorLoad
from elastream.policies.slo.paths import LoadedPaths

HOLD_SECONDS = REMEMBERED_SECONDS
"""On an unchanged input, how long a surplus that chance explains is kept after a change."""
SELDOM = 0.99997
"""The quantile that a surplus is kept for: with four looks a second, anything rarer is seen once in
140 minutes."""
KEYED = 5.0
"""How many times as much a change costs at an operator with a key."""


def pays(context: Context, load: OperatorLoad, enough: int, change_cost: float) -> bool:
    """Whether keeping the surplus replicas has cost as much as removing them would."""
    keyed = context.topology.by_name[load.operator].router.needs_key
    price, idle = change_cost * (KEYED if keyed else 1.0), 0.0
    # The last replica goes first. If it was slow to come, it would cost that much time again.
    leads = context.lead_times.get(load.operator, LeadTime())
    price += leads.of(context.active[load.operator])
    for stats in reversed(context.past):
        of = stats.operators[load.operator]
        # Not what it received: that may be a backlog which others had, and which is gone.
        used = stats.input * load.share * load.cost / stats.duration
        if of.planned != context.active[load.operator] or used > enough:
            return False
        idle += stats.duration
        if idle >= price:
            return True
    # However high the price, what has been idle for as long as anybody remembers goes.
    return len(context.past) >= REMEMBERED_INTERVALS


def lasts(context: Context, load: OperatorLoad, enough: int) -> bool:
    """Whether so many replicas would have been enough for a minute in which none came or went."""
    behind = 0.0
    for stats in reversed(recent_intervals(context.past, HOLD_SECONDS)):
        of = stats.operators[load.operator]
        behind = max(behind + of.received * load.cost - enough * stats.duration, 0.0)
        if of.planned != context.active[load.operator] or behind > load.calm * enough:
            return False
    return True


def kept(
    context: Context,
    paths: LoadedPaths,
    counts: Mapping[str, int],
    goal: float,
    hopeless: Set[str],
) -> Mapping[str, int]:
    """The same, with those surplus replicas that chance alone would soon call for again.

    The rate may be the highest within its spread, and seldom more events than that come together.
    """
    now = {name: max(context.active[name], count) for name, count in counts.items()}
    if now == counts:
        return counts
    worst = {
        name: replace(load, rate=load.high, quantile=SELDOM) for name, load in paths.loads.items()
    }
    return replace(paths, loads=worst).raised(counts, now, goal, hopeless).counts
