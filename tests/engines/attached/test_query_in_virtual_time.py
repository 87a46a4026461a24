"""The whole loop over a query in virtual time: the real record, fleet, policies and guards."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from elastream.control import ControlLoop, Outcome
from elastream.core.decision import Plan
from elastream.policies import POLICIES, Policy
from elastream.policies.guards import LeadTimeWindow, TrustedBatches
from elastream.predictors import PREDICTORS
from support.micro_batches import MicroBatches

STEADY = np.full(200, 250.0)
STEP = np.concatenate([np.full(80, 100.0), np.full(160, 500.0)])
SPIKE = np.concatenate([np.full(60, 100.0), np.linspace(100, 550, 40), np.full(60, 550.0),
                        np.linspace(550, 100, 40), np.full(80, 100.0)])  # fmt: skip
STEPWISE = {"incremental", "reactive", "slots"}
"""Policies that need several intervals for several executors."""
SCALING = [name for name in POLICIES if name not in ("oracle", "static", "rlearning")]


def scaled(rates, policy="deadline", predictor="auto", guards=None, **query):
    engine = MicroBatches(rates, **{"target": 0.6, **query})
    around = (TrustedBatches(), LeadTimeWindow()) if guards is None else guards
    loop = ControlLoop(
        engine, POLICIES[policy](), PREDICTORS[predictor](), td=2.5, look_back=100, guards=around
    )
    return engine, list(loop.run(until=float(len(rates))))


@dataclass(frozen=True)
class ByTime(Policy):
    """As many as it is told for every moment."""

    count: Callable[[float], int]

    name = "by-time"
    paper = "-"

    def decide(self, context):
        return Plan({"query": self.count(context.now)})


def told(count, **query):
    engine = MicroBatches(np.full(40, 300.0), **query)
    loop = ControlLoop(engine, ByTime(count), PREDICTORS["basic"](), td=0.5)
    return engine, list(loop.run(until=40.0))


def test_executors_that_were_to_go_stay_if_they_are_needed_after_all():
    # All four are busy at 21.25 s: the tasks of a batch take 0.94 s each.
    engine, _ = told(lambda now: 2 if 20.9 < now < 21.4 else 4, start=4)
    assert min(engine.counts) == 4


def test_executors_that_have_not_come_are_not_awaited_if_nobody_needs_them():
    engine, _ = told(lambda now: 8 if 10 < now < 12 else 1, start=1, lead=5.0)
    assert max(engine.counts) == 1


def test_what_was_asked_for_is_asked_for_once():
    _, cycles = told(lambda now: 8 if now > 10 else 1, start=1, lead=5.0)
    assert [str(change) for cycle in cycles for change in cycle.changes] == ["query 1 -> 8"]


def test_the_model_finds_out_what_a_batch_costs():
    engine, _ = scaled(STEP)
    model = engine.record.model
    assert model.per_row == pytest.approx(0.01, rel=0.2)
    assert model.trust > 0.8
    assert model.seconds(2500, 8) == pytest.approx(0.4 + 2 * 2500 / 16 * 0.01, rel=0.2)


def test_the_rate_and_the_counts_are_those_of_the_source():
    engine, cycles = scaled(STEADY)
    assert engine.record.rate == pytest.approx(250, rel=0.02)
    processed = sum(cycle.stats.operators["query"].processed for cycle in cycles if cycle.stats)
    # What the last batches did is reported over one interval, so some of it is not yet.
    assert processed == pytest.approx(engine.committed, rel=0.04)
    flow = [cycle.stats.operators["query"].processed for cycle in cycles[40:]]
    assert np.quantile(flow, [0.1, 0.9]) == pytest.approx(250 * 2.5, rel=0.15)
    last = cycles[-1].stats
    assert last.latency is None or last.latency.p99 < 10


def test_what_a_batch_that_is_too_large_brings_is_known_when_it_begins():
    rates = np.concatenate([np.full(60, 50.0), np.full(20, 400.0)])
    engine = MicroBatches(rates, start=1)
    # The batch that began at 65 s takes 20 s; Spark tells of it at 85 s.
    engine.clock.sleep_until(65.5)
    assert engine.record.rate == pytest.approx(400, rel=0.05)
    engine.clock.sleep_until(75)
    late = engine.observe().operators["query"]
    assert late.batches.seconds == pytest.approx(10, abs=0.5)
    assert late.queued > 2000


def test_enough_executors_come_and_go_again():
    engine, cycles = scaled(SPIKE)
    counts = np.array(engine.counts).reshape(-1, 4).mean(axis=1)
    assert counts[100:160].mean() > 6
    assert counts[-20:].mean() < 3.5
    assert not [cycle.note for cycle in cycles if cycle.outcome is Outcome.FAILED]


def test_it_is_cheaper_than_the_maximum_and_not_slower_where_it_counts():
    most = MicroBatches(SPIKE, start=8)
    most.clock.sleep_until(float(len(SPIKE)))
    engine, _ = scaled(SPIKE, start=8)
    assert engine.executor_seconds < 0.8 * most.executor_seconds
    assert engine.quantile(0.99) < 1.1 * most.quantile(0.99)


@pytest.mark.parametrize(("lead", "start"), [(2.25, 2), (3.0, 2), (3.0, 3), (3.5, 2)])
def test_an_executor_that_comes_makes_no_batch_longer(lead, start):
    """Its first task takes longer than the rest of the batch, so it must not be one of these."""
    rising = np.concatenate([np.full(60, 100.0), np.linspace(100, 500, 240), np.full(60, 500.0)])
    query = {"lead": lead, "target": 0.65, "start": start}
    quick, _ = scaled(rising, warm_up=0.0, **query)
    slow, _ = scaled(rising, warm_up=3.0, **query)
    assert max(slow.counts) == max(quick.counts) >= 7
    assert max(slow.latencies) < max(quick.latencies) + 0.1


def test_forecasts_look_as_far_ahead_as_executors_take_to_come():
    for lead, intervals in ((2.5, 3), (15.0, 8)):
        _, cycles = scaled(STEP, lead=lead)
        last = [len(cycle.forecast.values) for cycle in cycles if cycle.forecast]
        assert last[-1] == pytest.approx(intervals, abs=1)


@pytest.mark.parametrize("name", SCALING)
def test_every_policy_scales_an_attached_query(name):
    engine, cycles = scaled(STEP, name, guards=[])
    assert not [cycle.note for cycle in cycles if cycle.outcome is Outcome.FAILED]
    assert all(1 <= count <= 8 for count in engine.counts)
    assert max(engine.counts) >= 4
    if name not in STEPWISE:
        # What three batches hold: nothing else waits.
        assert engine.rows_by(240.0) - engine.committed <= 500 * 16


def test_it_holds_still_while_it_knows_too_little():
    _, cycles = scaled(np.full(20, 50.0), start=4)
    first = [cycle for cycle in cycles if cycle.time <= 7.5]
    assert Outcome.CHANGED not in {cycle.outcome for cycle in first}
