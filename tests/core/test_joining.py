"""Consecutive stretches of time as one."""

from dataclasses import fields

import pytest

from elastream.core.joining import joined
from elastream.core.latency import LatencyHistogram
from elastream.core.stats import IntervalStats, Latency, OperatorStats, ReplicaStats, SourceStats


def part(received, heaviest_lane):
    of = OperatorStats(
        received,
        processed=4.0,
        emitted=4.0,
        queued=2.0,
        busy=0.5,
        active=2,
        dropped=1.0,
        draining=1,
        pending=1,
        dead=1,
        stalled={1: 12.0},
        set_aside=1.0,
        errors={"ValueError": 1.0},
        restarted=1.0,
        saturated=0.2,
        saturated_events=3.0,
        heaviest_lane=heaviest_lane,
        units=2.0,
        squares=0.1,
        replicas={0: ReplicaStats(4.0, 0.5)},
        inside={"work": OperatorStats(1.0, 1.0, 1.0, 0.0, 0.1, 1)},
    )
    latency = Latency.from_histogram(LatencyHistogram.of([0.1]))
    source = SourceStats(received, 0.0)
    return IntervalStats(0, 1.0, {"in": source}, {"work": of}, {("in", "work"): received}, latency)


def test_nothing_that_an_operator_measures_is_left_out():
    of = joined([part(10.0, 0.5), part(10.0, 0.5)], 0).operators["work"]
    # Engines that work in batches have no parts to join.
    left_out = [
        field.name
        for field in fields(of)
        if field.name != "batches" and not getattr(of, field.name)
    ]
    assert left_out == []


def test_the_heaviest_lane_counts_by_what_was_received():
    whole = joined([part(30.0, 0.2), part(10.0, 0.6)], 0).operators["work"]
    assert whole.heaviest_lane == pytest.approx(0.3)
    assert joined([part(0.0, 0.0), part(0.0, 0.0)], 0).operators["work"].heaviest_lane == 0
