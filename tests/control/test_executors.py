"""How many executors a plan needs, now and soon."""

from dataclasses import replace

import numpy as np
import pytest

from elastream.control.executors import LEAST_KEPT_SECONDS, ExecutorLevel, work_per_event
from elastream.control.loop import ControlLoop
from elastream.control.plan import Planner
from elastream.control.settings import Course, Settings
from elastream.core.decision import EXECUTORS, Plan
from elastream.core.pipeline import Pipeline
from elastream.core.stats import ExecutorStats, SourceStats
from elastream.policies.base import Outlook
from elastream.policies.guards import Bounds
from elastream.policies.static import Static
from elastream.predictors import Forecast
from elastream.predictors.basic import Basic
from support.pipelines import context, interval, line, same

COSTS = {"parse": 0.05, "model": 0.1, "check": 0.075, "store": 0.025}
"""In the proportions 50 : 100 : 75 : 25."""
UNEQUAL = line(*COSTS, pool=8)


def executors(present=1, slots=6, limits=(1, 4), lead=8.0, wanted=1, beside=1):
    return ExecutorStats(present, float(present), slots, beside, wanted, lead, limits)


def after(now, upper=(), of=None):
    """What is known at a time, and the upper quantile of the input of each second that comes."""
    stats = interval(UNEQUAL, 8.0, td=1.0, executors=of or executors())
    values = np.array(upper, dtype=float)
    made = Forecast(values / 2, "lr", quantiles={0.95: values})
    outlook = Outlook(made, window=1.0) if len(upper) else None
    known = context(UNEQUAL, stats, outlook=outlook, now=now)
    return replace(known, execution_times=COSTS)


def planned(now=0.0, replicas=1, level=None, **more):
    plan = Plan(dict.fromkeys(COSTS, replicas))
    return (level or ExecutorLevel()).added_to(plan, after(now, **more))


def test_sources_and_replicas_need_a_slot_each_and_one_is_to_spare():
    assert planned(replicas=1).executors == 1, "6 slots"
    assert planned(replicas=2).executors == 2, "10 slots"
    assert planned(replicas=3).executors == 3, "14 slots"


def test_they_come_ahead_of_what_the_upper_quantile_of_the_forecast_needs_within_their_lead_time():
    """At 40 events/s, 2 + 4 + 3 + 1 replicas."""
    soon = planned(upper=[8.0] * 5 + [40.0] * 5)
    assert soon.executors == 2
    assert planned(upper=[8.0] * 20 + [40.0] * 5).executors == 1, "another would come in time"
    (why,) = soon.reasons[EXECUTORS]
    assert str(why) == "12 task slots for up to 40 events/s within 8 s, 6 on each"


def test_sources_that_take_turns_share_the_work():
    pipeline = Pipeline("two-sources")
    for name, source in (("left", "a"), ("right", "b")):
        pipeline.add(same, name=name, after=pipeline.source(source))
    topology, past = pipeline.topology(), []
    for sent in ({"a": 30.0, "b": 0.0}, {"a": 0.0, "b": 10.0}) * 2:
        sources = {name: SourceStats(events, 0.0) for name, events in sent.items()}
        edges = {("a", "left"): sent["a"], ("b", "right"): sent["b"]}
        past.append(replace(interval(topology, 20.0, td=1.0), sources=sources, edges=edges))
    assert work_per_event(context(topology, *past, et=0.1)) == pytest.approx(
        {"left": 0.075, "right": 0.025}
    )


def test_there_are_never_fewer_than_the_minimum_nor_more_than_the_maximum():
    assert planned(of=executors(limits=(3, 4))).executors == 3
    assert planned(replicas=8).executors == 4


def test_what_the_policy_has_to_spare_now_it_will_want_then_too():
    """At 8 events/s, one replica of each would do; at 40, 2 + 4 + 3 + 1."""
    assert planned(replicas=2, upper=[40.0] * 10).executors == 3, "3 + 5 + 4 + 2, and 2 more"


def test_what_is_needed_for_a_moment_is_no_reason():
    level = ExecutorLevel()
    wanted = [1, 1, 1, 1, 3, 1, 1, 1, 3, 3, 3, 3]
    found = [planned(0.25 * place, replicas, level) for place, replicas in enumerate(wanted)]
    assert [plan.executors for plan in found] == [1] * 9 + [3] * 3
    slots = [plan.reasons[EXECUTORS][0].facts["slots"] for plan in found]
    assert slots == [6] * 9 + [14] * 3, "the reason is that of the decision"


def test_one_that_is_not_needed_any_more_is_kept_for_as_long_as_another_would_take():
    level, lead = ExecutorLevel(), 30.0
    of = executors(lead=lead)
    assert planned(0.0, 3, level, of=of).executors == 3
    kept = planned(lead - 1, 1, level, of=of)
    assert kept.executors == 3
    assert "1 would do, but 3 were needed a moment ago" in str(kept.reasons[EXECUTORS][0])
    assert planned(lead + 1, 1, level, of=of).executors == 1


def test_however_quickly_they_come_they_do_not_go_at_once():
    level, of = ExecutorLevel(), executors(lead=0.5)
    planned(0.0, 3, level, of=of)
    assert planned(LEAST_KEPT_SECONDS - 1, 1, level, of=of).executors == 3
    assert planned(LEAST_KEPT_SECONDS + 1, 1, level, of=of).executors == 1


def test_what_a_run_begins_with_may_be_needed_soon():
    level, of = ExecutorLevel(), executors(present=4, wanted=4, lead=1.0)
    assert planned(0.0, 1, level, of=of).executors == 4
    assert planned(LEAST_KEPT_SECONDS + 1, 1, level, of=of).executors == 1


def test_limits_on_replicas_hold_for_those_that_are_to_come_too():
    plan, known = Plan(dict.fromkeys(COSTS, 1)), after(0.0, upper=[80.0] * 10)
    assert ExecutorLevel().added_to(plan, known).executors == 4
    most = Bounds(most=dict.fromkeys(COSTS, 2))
    assert ExecutorLevel().added_to(plan, known, [most]).executors == 2


@pytest.mark.parametrize("of", [None, executors(limits=None)])
def test_where_their_number_is_fixed_a_plan_says_nothing_about_them(of):
    plan = Plan({"a": 2})
    stats = interval(line("a"), 10, executors=of)
    assert ExecutorLevel().added_to(plan, context(line("a"), stats)) is plan


def test_a_run_that_is_paused_keeps_its_executors():
    known = after(0.0, upper=[80.0] * 10)
    for paused, expected in ((False, 4), (True, None)):
        course = Course(
            Settings(policy="static", predictor="basic", td=1.0, paused=paused),
            Static(1),
            Basic(),
        )
        _, plan = Planner(()).plan(known, course)
        assert plan.executors == expected


class Cluster:
    """An engine that always measures the same, and remembers what it was asked for."""

    def __init__(self):
        self.topology = line("a", pool=8)
        self.asked = []
        self.clock = self
        self.time = 0.0

    def now(self):
        return self.time

    def sleep_until(self, time):
        self.time = time

    def wake(self):
        pass

    def observe(self):
        wanted = self.asked[-1] if self.asked else 3
        of = executors(present=3, slots=2, wanted=wanted)
        return interval(self.topology, 100, td=5.0, et=0.1, active=2, executors=of)

    def apply(self, plan):
        self.asked.append(plan.executors)

    def close(self):
        pass


def test_the_loop_asks_once_and_says_why():
    engine, recorded = Cluster(), []
    loop = ControlLoop(engine, Static(2), Basic(), td=5.0, record=recorded.append)
    for _ in loop.run(6):
        pass
    assert engine.asked == [2]
    changes = [str(change) for cycle in recorded for change in cycle.changes]
    assert len(changes) == 1
    assert changes[0].startswith("(executors) 3 -> 2: 4 task slots")
