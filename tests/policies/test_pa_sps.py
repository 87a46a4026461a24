import pytest

from elastream.errors import InvalidInputError
from elastream.policies.pa_sps import PaSps, Presps
from support.pipelines import context, interval, line

LINE = line("clean", "store")


def test_replicas_follow_the_forecast():
    # 9,000 events in 30 s at 10 ms each are 90 s of work.
    plan = PaSps().decide(context(LINE, interval(LINE, 3000), forecast=9000))
    assert dict(plan.replicas) == {"clean": 3, "store": 3}
    assert str(plan.reasons["clean"][0]) == "300 events/s expected (lr), 10 ms each"


def test_what_is_queued_upstream_counts_downstream():
    stats = interval(LINE, 3000, queued={"clean": 3000})
    plan = PaSps().decide(context(LINE, stats, forecast=3000))
    assert dict(plan.replicas) == {"clean": 2, "store": 2}
    assert str(plan.reasons["store"][0]).endswith("3,000 queued")


def test_presps_repeats_the_last_input_and_counts_only_the_own_queue():
    stats = interval(LINE, 3000, queued={"clean": 3000})
    plan = Presps().decide(context(LINE, stats))
    assert dict(plan.replicas) == {"clean": 2, "store": 1}
    assert plan.reasons["clean"][0].facts["queued"] == 3000


def test_an_operator_of_unknown_cost_keeps_what_it_has():
    plan = PaSps().decide(context(LINE, interval(LINE, 3000, active=4), forecast=9000, et=None))
    assert dict(plan.replicas) == {"clean": 4, "store": 4}
    assert "cost is unknown" in str(plan.reasons["clean"][0])


def test_headroom_is_for_what_is_forecast_not_for_what_waits():
    one = line("work")
    past = interval(one, 3000, queued=3000)
    plain, roomy = (
        PaSps(headroom=room).decide(context(one, past, forecast=3000)) for room in (1.0, 2.0)
    )
    assert (plain.replicas["work"], roomy.replicas["work"]) == (2, 3)
    with pytest.raises(InvalidInputError, match="headroom=0"):
        PaSps(headroom=0)
