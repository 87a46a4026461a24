import math
from datetime import datetime, time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastream.core.decision import Plan
from elastream.errors import InvalidInputError
from elastream.policies.guards import (
    Bounds,
    Cooldown,
    ExcludedPeriods,
    MostChanges,
    Pause,
    ScaleDownWindow,
    TotalCap,
    guarded,
)
from elastream.policies.guards.limits import shared_out
from support.pipelines import context, interval, line

LINE = line("a", "b", "c", minimum=2, pool=8)


def after(*active, **more):
    """A context after intervals of 30 s with these active replicas of every operator."""
    return context(LINE, *(interval(LINE, 10, i, active=n) for i, n in enumerate(active)), **more)


def plan(a, b=4, c=4):
    return Plan({"a": a, "b": b, "c": c})


def allowed(wanted, *guards, at=None):
    return tuple(guarded(wanted, at or after(4), guards).replicas.values())


def test_minimum_and_pool_always_hold():
    assert allowed(plan(99, 0, 4)) == (8, 2, 4)
    reasons = guarded(plan(99), after(4)).reasons["a"]
    assert str(reasons[0]) == "99 wanted, and 8 is the bound"


def test_bounds_per_operator():
    assert allowed(plan(8, 2, 4), Bounds(least={"b": 3}, most={"a": 5})) == (5, 3, 4)
    with pytest.raises(InvalidInputError, match="bounds of 'a': at least 4 is above at most 3"):
        Bounds(least={"a": 4}, most={"a": 3})


def test_a_total_cap_cuts_what_is_asked_beyond_the_minimum_in_proportion():
    assert allowed(plan(8, 4, 2), TotalCap(10)) == (5, 3, 2)
    assert allowed(plan(8, 8, 8), TotalCap(3)) == (2, 2, 2)
    assert allowed(plan(3, 3, 3), TotalCap(10)) == (3, 3, 3)


@given(st.integers(0, 60), st.lists(st.integers(0, 30), min_size=1, max_size=6))
def test_nothing_is_left_over_and_nobody_gets_more_than_asked(total, asked):
    shares = shared_out(total, dict(enumerate(asked)))
    assert sum(shares.values()) == min(total, sum(asked))
    assert all(0 <= share <= asked[i] for i, share in shares.items())


def test_a_cooldown_waits_before_it_adds_or_removes():
    recently = after(3, 4, 4)
    assert allowed(plan(6), Cooldown(up=90), at=recently) == (4, 4, 4)
    assert allowed(plan(6), Cooldown(up=60), at=recently) == (6, 4, 4)
    assert allowed(plan(2), Cooldown(up=90), at=recently) == (2, 4, 4)
    assert allowed(plan(2), Cooldown(down=90), at=recently) == (4, 4, 4)
    assert allowed(plan(6), Cooldown(up=1e6)) == (6, 4, 4)


def test_replicas_go_only_when_nothing_needed_them_lately():
    before = after(4, proposals=(plan(8), plan(3), plan(2)))
    assert allowed(plan(2), ScaleDownWindow(60), at=before) == (3, 4, 4)
    assert allowed(plan(2), ScaleDownWindow(90), at=before) == (4, 4, 4)
    assert allowed(plan(2), ScaleDownWindow(10), at=before) == (2, 4, 4)
    assert allowed(plan(6), ScaleDownWindow(90), at=before) == (6, 4, 4)
    # Intervals of 30 s are never quite that long on a real engine.
    assert allowed(plan(2), ScaleDownWindow(89.9), at=before) == (4, 4, 4)
    (reason,) = guarded(plan(2), before, [ScaleDownWindow(3600)]).reasons["a"]
    assert str(reason) == "8 were needed in the last 3600 s"


def test_only_so_many_operators_change_at_once_growth_first():
    assert allowed(plan(8, 5, 2), MostChanges(1)) == (8, 4, 4)
    assert allowed(plan(8, 5, 2), MostChanges(2)) == (8, 5, 4)


@pytest.mark.parametrize(
    ("hour", "changes"), [(21, True), (22, False), (23, False), (5, False), (6, True), (12, False)]
)
def test_excluded_periods_of_the_day(hour, changes):
    guard = ExcludedPeriods(
        [(time(22), time(6)), (time(12), time(13))], started=datetime(2024, 1, 1)
    )
    found = allowed(plan(8), guard, at=after(4, now=hour * 3600.0))
    assert found == ((8, 4, 4) if changes else (4, 4, 4))


def test_a_pause_leaves_everything_as_it_is_and_says_so():
    paused = guarded(plan(8), after(4), [Pause()])
    assert paused.changes(after(4).active) == ()
    assert [reason.rule for reason in paused.reasons["a"]] == ["paused"]


@pytest.mark.parametrize("guard", [Cooldown, ScaleDownWindow])
def test_times_must_make_sense(guard):
    with pytest.raises(InvalidInputError, match="must be a number of seconds"):
        guard(-1)
    with pytest.raises(InvalidInputError, match="must be a number of seconds"):
        guard(math.nan)
