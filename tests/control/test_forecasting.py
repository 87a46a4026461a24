"""Two clocks: samples have their own, whatever the length of an interval."""

from dataclasses import replace

import numpy as np
import pytest

from elastream.control import ControlLoop
from elastream.control.forecasting import Forecasting
from elastream.control.monitor import Monitor, Sampled
from elastream.core.stats import SourceStats
from elastream.engines.simulation import SimulationEngine, SimulationSettings
from elastream.policies.pa_sps import PaSps
from elastream.policies.slo import Slo
from elastream.predictors.basic import Basic
from elastream.predictors.fallback import WithFallback
from elastream.workloads.traces import evenly
from support.pipelines import interval, line

LINE = line("clean", pool=8, execution_time=0.001)


class Counting(Basic):
    """`basic`, and how often it was asked."""

    def __init__(self):
        self.asked = []

    def predict(self, history, horizon):
        self.asked.append((len(history), horizon))
        return super().predict(history, horizon)


def engine(rates, **settings):
    return SimulationEngine(
        LINE, evenly(np.asarray(rates, float)), settings=SimulationSettings(**settings)
    )


def test_a_forecast_is_made_once_per_sample_and_not_once_per_cycle():
    model = Counting()
    loop = ControlLoop(engine(100 * np.arange(1, 11)), Slo(), model, td=0.25)
    list(loop.run(40))
    # From the second window on, each time from one sample more.
    assert [length for length, _ in model.asked] == list(range(2, 11))


@pytest.mark.parametrize("seconds", [0.75, 1.0])
def test_a_clock_that_is_not_exact_causes_no_second_forecast(seconds):
    model, random = Counting(), np.random.default_rng(0)
    forecasting, now = Forecasting(model, look_back=100), 2.0
    while now < 20:
        sampled = Sampled(np.full(int(now), 100.0), int(now), length=1.0, open=now % 1)
        lasted = seconds + random.uniform(-0.01, 0.01)
        outlook = forecasting.outlook(sampled, lasted)
        added = forecasting.intervals(outlook, interval(LINE, 100, td=lasted), 1)
        assert added.values[0] == pytest.approx(100 * lasted)
        now += lasted
    lengths = [length for length, _ in model.asked]
    assert lengths == sorted(set(lengths))


def test_a_model_is_asked_for_the_windows_that_are_needed_and_no_more():
    """`basic` repeats as many samples as it is asked for: more of them would be older ones."""
    samples = Sampled(np.arange(10.0), 10, length=5.0, open=0.0)
    outlook = Forecasting(Basic(), look_back=12).outlook(samples, 15.0)
    assert outlook.forecast.values[:3].tolist() == [7.0, 8.0, 9.0]


@pytest.mark.parametrize("told", [True, False])
def test_windows_that_ran_late_do_not_shift_those_that_follow(told):
    body = type("Body", (), {})()
    body.clock = type("C", (), {"time": 0.0, "now": lambda self: self.time})()
    monitor, found = Monitor(body), []
    # The machine stalls for three seconds in the second window, and then keeps time again.
    ends = [0.5, 1.0, 1.5, 4.5, 5.0, 5.5, 6.0, 6.5]
    closed = {1.0: (1.0,), 4.5: (1.0,), 5.5: (1.0,), 6.5: (1.0,)}
    for before, now in zip([0.0, *ends], ends, strict=False):
        last = max([0.0, *(end for end in closed if end <= now)])
        stats = interval(LINE, 1, td=now - before, sample=1.0, open=now - last if told else None)
        body.observe = lambda stats=stats, now=now: replace(
            stats, sources={"in": SourceStats(1, 0.0, closed.get(now, ()))}
        )
        body.clock.time = now
        monitor.collect()
        found.append(monitor.sampled.open)
    assert found[:2] == [0.5, 0.0]
    # Who is not told knows only that a window closed at some time in the interval.
    assert found[5:] == ([0.0, 0.5, 0.0] if told else [0.5, 1.0, 0.5])


def test_a_cycle_in_which_no_window_closed_adds_no_sample():
    body = engine([100, 200, 300])
    monitor = Monitor(body)
    found = []
    for cycle in range(1, 13):
        body.clock.sleep_until(0.25 * cycle)
        monitor.collect()
        sampled = monitor.sampled
        found.append((sampled.count, round(sampled.open, 6)))
    assert found[:5] == [(0, 0.25), (0, 0.5), (0, 0.75), (1, 0.0), (1, 0.25)]
    assert monitor.sampled.values.tolist() == [100, 200, 300]


@pytest.mark.parametrize(("td", "intervals"), [(0.1, 600), (0.25, 500), (1.0, 500)])
def test_a_minute_is_remembered_however_short_intervals_are(td, intervals):
    body = engine([100] * 1000)
    monitor = Monitor(body)
    for cycle in range(1, 701):
        body.clock.sleep_until(td * cycle)
        monitor.collect()
    assert len(monitor.past) == pytest.approx(intervals, abs=1)
    assert sum(stats.duration for stats in monitor.past) >= 60


def test_the_forecast_of_a_short_interval_is_its_part_of_a_window():
    loop = ControlLoop(engine([400] * 10), PaSps(), Basic(), td=0.25)
    cycles = [cycle for cycle in loop.run(40) if cycle.forecast]
    assert [cycle.forecast.values[0] for cycle in cycles] == pytest.approx([100] * len(cycles))


def test_a_window_that_has_not_closed_in_time_does_not_lower_the_forecast():
    forecasting = Forecasting(Basic(), look_back=10)
    sampled = Sampled(np.full(7, 25.0), count=7, length=0.25, open=0.25)
    outlook = forecasting.outlook(sampled, seconds=1.0)
    added = forecasting.intervals(outlook, interval(LINE, 100, td=1.0), 1)
    assert added.values.tolist() == [100.0]


def test_no_horizon_is_too_long_for_the_model():
    sampled = Sampled(np.full(10, 25.0), count=10, length=1.0, open=0.0)
    outlook = Forecasting(Basic(), look_back=10).outlook(sampled, seconds=20_000.0)
    assert outlook.forecast.fallback is None
    assert outlook.highest_rate(0.95, 20_000.0) == 25.0


@pytest.mark.parametrize("silent", [0, 2])
def test_an_engine_that_does_not_say_how_long_a_window_is_shows_it(silent):
    body = type("Body", (), {})()
    whole = interval(LINE, 90, td=30.0)
    # At first, none may have closed.
    none = replace(whole, sources={"in": SourceStats(90, 0.0)})
    script = iter([none] * silent + [whole, whole])
    body.clock = type("C", (), {"time": 0.0, "now": lambda self: self.time})()
    body.observe = lambda: next(script)
    monitor = Monitor(body)
    for number in range(silent + 2):
        body.clock.time = 30.0 * (number + 1)
        monitor.collect()
    assert (monitor.sampled.length, monitor.sampled.open) == (10.0, 0.0)


def test_forecasts_carry_quantiles_once_errors_are_known():
    random = np.random.default_rng(0)
    loop = ControlLoop(engine(random.uniform(500, 1500, 200)), PaSps(), Basic(), td=1.0)
    last = list(loop.run(200))[-1].forecast
    assert last.quantiles[0.05][0] < last.values[0] < last.quantiles[0.95][0]


def test_an_interval_defaults_to_what_the_policy_is_made_for():
    assert ControlLoop(engine([1, 2]), Slo(), Basic()).steering.settings.td == 0.25
    assert ControlLoop(engine([1, 2]), PaSps(), Basic()).steering.settings.td == 30.0


def banded(forecasting, td, count, input_of, held=0.0):
    """The last forecast of an interval, after so many of this length."""
    for number in range(count):
        sampled = Sampled(np.full(50, 100.0), 50, length=1.0, open=0.0)
        of = interval(LINE, input_of(number), td=td)
        sources = {"in": SourceStats(of.input, held(number) if held else 0.0)}
        outlook = forecasting.outlook(sampled, td)
        found = forecasting.intervals(outlook, replace(of, sources=sources), 1)
    return found


def test_intervals_of_another_length_have_errors_of_their_own():
    forecasting, random = Forecasting(Basic(), look_back=10), np.random.default_rng(0)
    banded(forecasting, 30.0, 100, lambda number: random.normal(3000, 300))
    narrow = banded(forecasting, 1.0, 40, lambda number: random.normal(100, 5))
    low, high = (float(narrow.quantiles[level][0]) for level in (0.05, 0.95))
    assert 80 < low < 100 < high < 120


def test_what_sources_hold_back_is_no_error_of_the_forecast():
    """100 events arrive in every interval; in every other, only 20 of them are sent."""
    forecasting = Forecasting(Basic(), look_back=10)
    found = banded(
        forecasting,
        1.0,
        60,
        lambda number: 20.0 if number % 2 else 180.0,
        held=lambda number: 80.0 if number % 2 else 0.0,
    )
    assert found.quantiles[0.95][0] < 110


def test_another_time_out_is_no_other_model():
    model = Basic()
    assert Forecasting(WithFallback(model, 1.0), 10).is_by(WithFallback(model, 5.0))
    assert Forecasting(model, 10).is_by(model)
    assert not Forecasting(WithFallback(model, 1.0), 10).is_by(WithFallback(Basic(), 1.0))
