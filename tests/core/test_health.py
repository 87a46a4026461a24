import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastream.core.health import (
    RUNNING,
    STARTING,
    Health,
    RestartPolicy,
    Restarts,
    State,
    worst,
)
from elastream.errors import InvalidInputError

POLICY = RestartPolicy(most=3, within=100.0, first_pause=1.0, longest_pause=5.0)


@pytest.mark.parametrize("state", [State.DEGRADED, State.WAITING, State.FAILED])
def test_what_is_wrong_has_a_reason(state):
    with pytest.raises(InvalidInputError, match=f"'{state}' needs a reason"):
        Health(state)


@pytest.mark.parametrize(
    ("state", "live", "ready"),
    [
        (State.STARTING, True, False),
        (State.RUNNING, True, True),
        (State.DEGRADED, True, True),
        (State.WAITING, True, False),
        (State.FAILED, False, False),
    ],
)
def test_who_is_live_and_who_is_ready(state, live, ready):
    health = Health(state, "a reason")
    assert (health.live, health.ready) == (live, ready)


states = st.builds(Health, st.sampled_from(State), st.sampled_from(["a", "b", "c"]))


@given(st.lists(states))
def test_the_worst_state_wins_and_keeps_its_reasons(parts):
    found = worst(*parts)
    assert all(list(State).index(part.state) <= list(State).index(found.state) for part in parts)
    for part in parts:
        assert (part.why in found.why.split("; ")) or part.state is not found.state
    assert worst(*reversed(parts)).state is found.state


def test_nothing_wrong_is_running():
    assert worst() == worst(RUNNING, RUNNING) == RUNNING
    assert worst(RUNNING, STARTING) == STARTING


def test_pauses_double_up_to_the_longest():
    restarts, pauses = Restarts(POLICY), []
    for _ in range(4):
        restarts = restarts.failed(10.0, "it died")
        pauses.append(restarts.due - 10.0)
    assert pauses == [1, 2, 4, 5]


def test_what_works_again_is_running_but_still_counts():
    restarts = Restarts(POLICY).failed(0.0, "it died").recovered()
    assert restarts.health == RUNNING
    assert str(restarts.failed(1.0, "it died").health) == "degraded: it died; restart 2 of 3"


def test_what_was_long_ago_no_longer_counts():
    restarts = Restarts(POLICY)
    for time in range(0, 1_000, 50):
        restarts = restarts.failed(float(time), "it died")
        assert restarts.health.state is State.DEGRADED
    assert len(restarts.failures) == 2


def test_one_failure_too_many_is_final():
    restarts = Restarts(POLICY)
    for time in range(4):
        restarts = restarts.failed(float(time), f"it died at {time}")
    assert str(restarts.health) == "failed: it died at 3; it has failed 4 times within 100 s"


@given(st.lists(st.floats(0, 60), min_size=1, max_size=60))
def test_there_are_never_more_restarts_than_the_policy_allows(gaps):
    now, restarts, restarted = 0.0, Restarts(POLICY), []
    for gap in gaps:
        now += gap
        restarts = restarts.failed(now, "it died")
        if restarts.exhausted:
            break
        now = restarts.due
        restarted.append(now)
        restarts = restarts.recovered()
    for first in restarted:
        # A restart follows its failure by a pause; the window is one of failures.
        counted = [time for time in restarted if first <= time < first + POLICY.within - 5]
        assert len(counted) <= POLICY.most
