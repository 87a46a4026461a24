import pytest

from elastream.control.beginning import Beginning
from elastream.core.pipeline import Pipeline
from elastream.policies import POLICIES, Policy
from elastream.policies.guards import TotalCap
from elastream.policies.oracle import Oracle
from elastream.policies.slo import Slo
from elastream.policies.static import Static

NAMED = [name for name in POLICIES if name not in ("static", "oracle")]


def beginning(td=30.0, rates=None, earlier=None, times=None):
    pipeline = Pipeline("orders")
    orders = pipeline.source("orders")
    pipeline.add(len, name="price", after=orders, pool=9)
    pipeline.add(len, name="alert", after="price", pool=4, share=0.1)
    return Beginning(
        pipeline.topology(),
        {("orders", "price"): 1.0, ("price", "alert"): 0.1},
        times if times is not None else {"price": 0.01, "alert": 0.02},
        td,
        rates or {},
        earlier or {},
    )


def test_pa_sps_begins_with_what_the_first_rate_needs():
    known = beginning(rates={"orders": 450.0})
    assert known.replicas(POLICIES["pa-sps"]()) == {"price": 5, "alert": 1}


def test_slo_begins_with_enough_to_keep_its_objective():
    known = beginning(td=0.25, rates={"orders": 495.0})
    relaxed, strict = known.replicas(Slo(objective=5.0)), known.replicas(Slo(objective=0.1))
    assert relaxed == {"price": 5, "alert": 1}
    assert strict["price"] > 5


@pytest.mark.parametrize("name", NAMED)
def test_every_policy_begins_near_what_is_needed(name):
    policy = POLICIES[name]()
    counts = beginning(td=policy.td, rates={"orders": 450.0}).replicas(policy)
    assert 4 <= counts["price"] <= 7
    assert 1 <= counts["alert"] <= 2


@pytest.mark.parametrize("known", [{"times": {}, "rates": {"orders": 450.0}}, {"rates": {}}])
def test_half_of_the_pool_where_input_or_cost_are_unknown(known):
    assert beginning(**known).replicas(Slo()) == {"price": 5, "alert": 2}


def test_a_resumed_run_begins_as_the_earlier_one_ended_within_the_pools_of_today():
    known = beginning(rates={"orders": 100.0}, earlier={"price": 3, "alert": 7, "gone": 2})
    assert known.replicas(POLICIES["pa-sps"]()) == {"price": 3, "alert": 4}


def test_policies_that_fix_their_replicas_begin_with_them():
    known = beginning(earlier={"price": 3, "alert": 1})
    assert known.replicas(Static(replicas=6)) == {"price": 6, "alert": 4}
    assert known.replicas(Oracle(future=[30 * 800.0])) == {"price": 8, "alert": 2}


def test_guards_hold_from_the_start():
    counts = beginning().replicas(Slo(), [TotalCap(most=3)])
    assert sum(counts.values()) == 3


def test_a_policy_that_fails_so_early_does_not_keep_a_run_from_starting():
    class Fails(Policy):
        name = "fails"
        paper = ""

        def decide(self, context):
            raise ZeroDivisionError

    assert beginning(rates={"orders": 450.0}).replicas(Fails()) == {"price": 5, "alert": 1}
