import json
from dataclasses import replace

import pytest

from elastream import Pipeline
from elastream.core import metrics
from elastream.core.evaluation import evaluate
from elastream.core.stats import IntervalStats, Latency, OperatorStats, SourceStats

KEYS = [
    "saved_resources",
    "throughput_degradation",
    "processed_ratio",
    "latency_ms",
    "input_error",
    "replica_error",
    "replica_seconds",
    "executor_seconds",
    "rescales",
    "events_in",
    "events_out",
    "cost",
    "extra_cost",
    "cpu_seconds",
]


@pytest.fixture
def line():
    pipeline = Pipeline("line")
    pipeline.source("in")
    pipeline.add(len, name="a", after="in", pool=4)
    pipeline.add(len, name="b", after="a", pool=4)
    return pipeline.topology()


def interval(number, sent, a, b, active, held=0.0, latency=0.1, passed=None):
    """One interval of 10 s; `a` and `b` are what the operators processed, 0.01 s each."""
    passed = a if passed is None else passed
    return IntervalStats(
        number,
        10.0,
        {"in": SourceStats(sent, held)},
        {
            "a": OperatorStats(sent, a, a, sent - a, a * 0.01, active),
            "b": OperatorStats(passed, b, b, passed - b, b * 0.01, active),
        },
        {("in", "a"): sent, ("a", "b"): passed},
        Latency.of([latency], [b]) if b else None,
    )


def test_a_run_has_all_measures(line):
    run = [interval(0, 1000, 1000, 1000, 1), interval(1, 2000, 1000, 1000, 2, latency=0.3)]
    measured = evaluate(line, run, forecasts=[None, 1500])
    assert list(measured.as_dict()) == KEYS
    assert measured.saved_resources == 1 - 3 / 8
    assert measured.throughput_degradation == 0.25
    assert measured.processed_ratio == pytest.approx(2 / 3)
    assert measured.latency_ms.mean == pytest.approx(200)
    assert measured.latency_ms.p99 == pytest.approx(300, rel=0.01)
    assert measured.input_error == 0.25
    # In the second interval a needed 2 replicas and b needed 1; both had 2.
    assert measured.replica_error == pytest.approx(1 / 3)
    assert measured.replica_seconds == 60
    assert measured.rescales == 2
    assert (measured.events_in, measured.events_out) == (3000, 2000)
    assert measured.cost == 6 * 8000 + 2 * 5000 + 2 * 100
    # One replica of b too many, and both changes.
    assert measured.extra_cost == 8000 + 2 * 5000 + 2 * 100
    json.dumps(measured.as_dict(), allow_nan=False)


def test_replicas_that_are_turned_off_cost_until_they_have_finished(line):
    run = [interval(number, 1000, 1000, 1000, active) for number, active in enumerate([2, 1])]
    before = evaluate(line, run)
    work = replace(run[1].operators["a"], draining=1)
    late = replace(run[1], operators={**run[1].operators, "a": work})
    after = evaluate(line, [run[0], late])
    assert after.replica_seconds == before.replica_seconds + 10
    assert after.saved_resources == before.saved_resources - 1 / 16
    assert (after.cost > before.cost, after.extra_cost > before.extra_cost) == (True, True)
    assert after.rescales == before.rescales
    assert after.replica_error == before.replica_error


def test_throughput_is_compared_over_the_windows_that_are_given(line):
    late = [interval(0, 1000, 500, 500, 1), interval(1, 1000, 1500, 1500, 1)]
    assert (
        evaluate(line, [interval(0, 2000, 2000, 2000, 1)], windows=late).throughput_degradation
        == 0.5
    )


def test_events_held_back_have_arrived_and_a_filter_loses_nothing(line):
    run = [
        interval(0, 600, 600, 300, 1, held=400, passed=300),
        interval(1, 400, 400, 200, 1, 0, passed=200),
    ]
    measured = evaluate(line, run)
    assert measured.events_in == 1000
    assert measured.events_out == 500
    assert measured.processed_ratio == 1
    assert measured.throughput_degradation == 0.4


def test_a_run_without_events_or_without_intervals_has_measures_too(line):
    for run in ([], [interval(0, 0, 0, 0, 1)]):
        measured = evaluate(line, run)
        assert measured.latency_ms is None
        assert measured.input_error is None
        assert measured.processed_ratio == 1
        assert measured.throughput_degradation == 0
        json.dumps(measured.as_dict(), allow_nan=False)


def test_nothing_deployed_saves_nothing():
    assert metrics.saved_resources([], 8) == 0
    assert metrics.saved_resources([1, 2], 0) == 0
