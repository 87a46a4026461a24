"""Windows and intervals tell the same story, at whatever pace."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engines.simulation.support import engine, line, trace, watch

from elastream.core.decision import Plan
from elastream.core.joining import joined
from elastream.engines.simulation import PacedClock, SimulationEngine, SimulationSettings
from elastream.errors import InvalidInputError

LINE = line(0.004, 0.002)
RATES = trace(300 + 200 * np.sin(np.arange(60)))
AT_ONCE = 1e9


def counts(stats):
    return {
        name: (of.received, of.processed, of.emitted, of.queued, of.busy, of.active)
        for name, of in stats.operators.items()
    }


@pytest.mark.parametrize("ends", [(10, 20, 30), (2.5, 3.75, 30), (0.5, 30)])
def test_a_watched_interval_is_what_an_unwatched_one_is(ends):
    alone = watch(engine(LINE, RATES), *ends)
    running = engine(LINE, RATES)
    windows = []
    running.watch(windows.append)
    watched = watch(running, *ends)
    for one, other in zip(alone, watched, strict=True):
        assert one.interval == other.interval
        assert one.duration == pytest.approx(other.duration)
        for name, expected in counts(one).items():
            assert counts(other)[name] == pytest.approx(expected)
        assert other.sources["in"].samples == pytest.approx(one.sources["in"].samples)
        assert dict(other.edges) == pytest.approx(dict(one.edges))
    assert [window.duration for window in windows] == pytest.approx([1.0] * 30)


def test_windows_are_whole_where_an_interval_ends_in_their_middle():
    running, windows = engine(LINE, RATES), []
    running.watch(windows.append)
    watch(running, 1.5, 3.0)
    samples = [window.sources["in"].samples[0] for window in windows]
    assert samples == pytest.approx(RATES.values[:3])
    assert windows[1].operators["a"].received == pytest.approx(RATES.values[1])


@given(st.integers(1, 6))
def test_joining_windows_gives_their_interval(count):
    running, windows = engine(LINE, RATES), []
    running.watch(windows.append)
    (stats,) = watch(running, count)
    whole = joined(windows, stats.interval)
    assert counts(whole) == counts(stats)
    assert whole.latency.count == pytest.approx(stats.latency.count)
    assert whole.latency.p99 == stats.latency.p99
    assert whole.latency.mean == pytest.approx(stats.latency.mean)
    replicas = whole.operators["a"].replicas
    assert sum(of.busy for of in replicas.values()) == pytest.approx(whole.operators["a"].busy)


def test_a_paced_clock_is_where_it_was_sent_and_never_goes_back():
    clock = PacedClock(AT_ONCE)
    for time, expected in ((10.0, 10.0), (4.0, 10.0), (12.5, 12.5)):
        clock.sleep_until(time)
        assert clock.now() == expected


def test_a_paced_clock_comes_back_when_woken():
    clock = PacedClock(speed=0.001)
    clock.wake()
    clock.sleep_until(10.0)
    assert 0 <= clock.now() < 10


def test_a_pace_takes_its_time(monkeypatch):
    slept = []
    clock = PacedClock(speed=4.0)
    monkeypatch.setattr(clock._alarm, "wait", lambda seconds: slept.append(seconds))
    clock.sleep_until(8.0)
    assert slept == [pytest.approx(2.0, abs=0.1)]


def test_a_woken_simulation_goes_on_in_the_middle_of_a_window():
    running = SimulationEngine(LINE, RATES, clock=PacedClock(speed=20.0))
    windows = []
    running.watch(windows.append)
    running.clock.wake()
    running.clock.sleep_until(2.0)
    assert running.clock.now() < 1
    running.apply(Plan({"a": 2}))
    while running.clock.now() < 2.0:
        running.clock.sleep_until(2.0)
    assert running.observe().operators["a"].active == 2
    assert [window.duration for window in windows] == pytest.approx([1, 1])


@pytest.mark.parametrize("speed", [0.0, -1.0, float("inf"), float("nan")])
def test_a_speed_that_makes_no_sense_is_refused(speed):
    with pytest.raises(InvalidInputError, match="a speed of"):
        PacedClock(speed)


def test_windows_are_as_long_as_samples():
    running = SimulationEngine(LINE, RATES, settings=SimulationSettings(sample=5.0))
    windows = []
    running.watch(windows.append)
    watch(running, 20.0)
    assert [window.duration for window in windows] == pytest.approx([5] * 4)
