from dataclasses import replace

import pytest

from elastream.core.stats import SourceStats
from elastream.errors import InvalidInputError
from elastream.policies.autoscale_plus import AutoscalePlus
from support.pipelines import context, interval, line

LINE = line("clean", "store")


def run_of(*events, active=1):
    return [interval(LINE, n, number=i, active=active) for i, n in enumerate(events)]


def test_nothing_changes_inside_of_the_working_interval():
    # 9,000 events are 90 s of work: ideally by 3, within 0.8 * 3 to 3.
    plan = AutoscalePlus().decide(context(LINE, *run_of(9000, 9000, 9000, active=3)))
    assert dict(plan.replicas) == {"clean": 3, "store": 3}
    assert plan.reasons["clean"][0].rule == "working interval"


def test_beyond_it_the_new_degree_counts_on_30_percent_of_what_is_reserved():
    plan = AutoscalePlus().decide(context(LINE, *run_of(4500, 4500, 4500)))
    # 45 s of work in 30 s, and 0.3 of a core each.
    assert dict(plan.replicas) == {"clean": 5, "store": 5}


def test_a_rising_input_is_followed_by_regression():
    policy = AutoscalePlus(weight=1.0)
    plan = policy.decide(context(LINE, *run_of(3000, 4500, 6000)))
    # By the last six samples, three of 1,500 and three of 2,000.
    assert plan.reasons["clean"][0].facts["estimated_input"] == pytest.approx(6986, rel=1e-3)
    assert plan.replicas["clean"] == 3


def test_without_regression_the_last_interval_is_expected_again():
    policy = AutoscalePlus(weight=1.0, regress=False)
    plan = policy.decide(context(LINE, *run_of(3000, 4500, 6000)))
    assert plan.reasons["clean"][0].facts["estimated_input"] == 6000


def sharing(core_of, cpu):
    """Two operators of which each has one replica, on these cores, using so much of them."""
    (only,) = run_of(3000)
    operators = {
        name: replace(of, replicas={0: replace(of.replicas[0], cpu=cpu[name], core=core_of[name])})
        for name, of in only.operators.items()
    }
    return replace(only, operators=operators)


def test_a_replica_that_shares_its_core_can_do_less():
    cpu = {"clean": 0.8, "store": 0.6}
    alone = AutoscalePlus().decide(context(LINE, sharing({"clean": 0, "store": 1}, cpu)))
    shared = AutoscalePlus().decide(context(LINE, sharing({"clean": 0, "store": 0}, cpu)))
    assert alone.reasons["clean"][0].facts["usable_cpu"] == 1
    # 0.3 of what it reserves, and half of what the other one leaves free.
    assert shared.reasons["clean"][0].facts["usable_cpu"] == pytest.approx(0.3 + 0.4 / 2)
    assert shared.reasons["clean"][0].facts["ideal"] == pytest.approx(2)


def test_the_regression_looks_at_the_samples_of_the_last_interval():
    samples = (600.0, 700.0, 800.0, 900.0)
    rising = replace(run_of(3000)[0], sources={"in": SourceStats(3000, 0.0, samples)})
    plan = AutoscalePlus(weight=1.0).decide(context(LINE, rising))
    assert plan.reasons["clean"][0].facts["estimated_input"] == pytest.approx(4600)


def test_what_waits_is_added_and_flows_down_by_combine_max():
    past = run_of(3000, 3000)
    past.append(interval(LINE, 3000, number=2, queued={"clean": 6000}))
    cautious = AutoscalePlus(weight=1.0).decide(context(LINE, *past))
    sparing = AutoscalePlus(weight=1.0, combine="min").decide(context(LINE, *past))
    assert dict(cautious.replicas) == {"clean": 3, "store": 3}
    assert dict(sparing.replicas) == {"clean": 3, "store": 1}


def test_while_the_system_settles_nothing_is_decided():
    past = [*run_of(3000, 3000), interval(LINE, 90, number=2, active=4)]
    plan = AutoscalePlus().decide(context(LINE, *past))
    assert dict(plan.replicas) == {"clean": 4, "store": 4}
    assert plan.reasons["clean"][0].rule == "settling"


def test_what_was_measured_while_it_settled_does_not_count():
    past = [*run_of(9000, 9000), interval(LINE, 1, number=2, active=3)]
    past.append(interval(LINE, 9000, number=3, active=3))
    plan = AutoscalePlus().decide(context(LINE, *past))
    assert plan.reasons["clean"][0].facts["estimated_input"] == pytest.approx(9000)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("weight", 0),
        ("beta", 1.5),
        ("reserved", 0),
        ("settle", -1),
        ("window", 1),
        ("combine", "x"),
    ],
)
def test_parameters_are_checked_by_name(parameter, value):
    with pytest.raises(InvalidInputError, match=parameter):
        AutoscalePlus(**{parameter: value})
