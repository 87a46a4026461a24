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
