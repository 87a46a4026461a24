from dataclasses import replace

import numpy as np
import pytest

from elastream.control.execution_time import ExecutionTimes, benchmark
from elastream.errors import InvalidInputError
from support.pipelines import interval, line


def test_what_was_declared_holds_until_something_is_measured():
    topology = line("work", execution_time=0.5)
    times = ExecutionTimes(topology)
    assert times.current == {"work": 0.5}
    times.update(interval(topology, 0))
    assert times.current == {"work": 0.5}
    times.update(interval(topology, 100, et=0.2))
    assert times.current == {"work": pytest.approx(0.2)}


def test_what_nobody_declared_is_unknown_at_first():
    assert ExecutionTimes(line("work")).current == {}


def test_a_few_intervals_that_are_far_off_do_not_matter():
    topology = line("work")
    times = ExecutionTimes(topology)
    for et in (0.2, 0.2, 90.0, 0.2, 0.2, 70.0, 0.2):
        times.update(interval(topology, 100, et=et))
    assert times.current == {"work": pytest.approx(0.2)}


def test_a_lasting_change_is_followed():
    topology = line("work")
    times = ExecutionTimes(topology)
    for et in [0.2] * 20 + [0.6] * 5:
        times.update(interval(topology, 100, et=et))
    assert times.current == {"work": pytest.approx(0.6)}


def test_a_benchmark_is_the_median_per_event_without_the_first_call():
    ticks = iter([0.0, 0.2, 1.0, 1.3, 2.0, 9.0])
    calls = []
    found = benchmark(calls.append, "batch", count=100, repeats=3, timer=lambda: next(ticks))
    assert found == pytest.approx(0.003)
    assert calls == ["batch"] * 4
    with pytest.raises(InvalidInputError, match="at least one event"):
        benchmark(len, [], count=0)


def timed(topology, units):
    """An interval with units of events, each given by the times of its events."""
    taken = [(len(times), sum(times)) for times in units]
    stats = interval(topology, sum(events for events, _ in taken))
    work = replace(
        stats.operators["work"],
        busy=sum(seconds for _, seconds in taken),
        units=len(taken),
        squares=sum(seconds**2 / events for events, seconds in taken),
    )
    return replace(stats, operators={"work": work})


@pytest.mark.parametrize("variation", [0.0, 0.5, 1.0, 2.0])
def test_how_much_times_vary_is_seen_from_units_of_many_events(variation):
    random, topology = np.random.default_rng(1), line("work")
    times = ExecutionTimes(topology)
    shape = 1 / max(variation, 1e-9) ** 2
    for _ in range(9):
        sizes = random.integers(1, 20, 60)
        drawn = [random.gamma(shape, 0.01 / shape, size) for size in sizes]
        times.update(timed(topology, drawn if variation else [[0.01] * size for size in sizes]))
    assert times.variations["work"] == pytest.approx(variation, rel=0.15, abs=1e-6)


def test_a_few_units_tell_nothing_and_add_up():
    topology = line("work")
    times = ExecutionTimes(topology)
    for seconds in [0.01, 0.03] * 10:
        times.update(timed(topology, [[seconds]]))
    assert not times.variations
    for seconds in [0.01, 0.03] * 5:
        times.update(timed(topology, [[seconds]]))
    assert times.variations["work"] == pytest.approx(0.5, rel=0.05)


def test_one_pause_is_no_spread():
    topology = line("work")
    times = ExecutionTimes(topology)
    for pause in (0.0, 0.0, 5.0, 0.0, 0.0):
        times.update(timed(topology, [[0.01] * 10] * 39 + [[0.01 + pause]]))
    assert times.variations["work"] == pytest.approx(0.0, abs=1e-6)


def test_events_that_fail_take_their_time_too():
    random, topology = np.random.default_rng(1), line("work")
    times = ExecutionTimes(topology)
    for failed in (0.0, 1.0, 0.5):
        stats = timed(topology, random.gamma(4.0, 0.0025, (900, 10)))
        work = stats.operators["work"]
        aside = failed * work.processed
        broken = replace(work, processed=work.processed - aside, set_aside=aside)
        times.update(replace(stats, operators={"work": broken}))
        assert times.variations["work"] == pytest.approx(0.5, rel=0.1)


def test_units_without_any_event_that_is_accounted_for_tell_nothing():
    """What was set aside is counted separately, and may be counted an interval later."""
    topology = line("work")
    times = ExecutionTimes(topology)
    stats = timed(topology, [[0.01]] * 40)
    lost = replace(stats.operators["work"], processed=0.0)
    times.update(replace(stats, operators={"work": lost}))
    assert not times.variations


def test_what_fails_within_a_chain_was_processed_by_its_first_operator():
    topology = line("work")
    times = ExecutionTimes(topology)
    stats = timed(topology, [[0.01], [0.03]] * 20)
    work = stats.operators["work"]
    inside = {"first": work, "second": replace(work, processed=0.0, set_aside=40.0)}
    chain = replace(work, set_aside=40.0, inside=inside)
    times.update(replace(stats, operators={"work": chain}))
    assert times.variations["work"] == pytest.approx(0.5, rel=0.05)
