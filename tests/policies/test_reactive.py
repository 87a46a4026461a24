import pytest

from elastream.core.batches import BatchModel
from elastream.core.decision import Plan
from elastream.core.stats import BatchStats, OperatorStats
from elastream.errors import InvalidInputError
from elastream.policies.deadline import Deadline
from elastream.policies.guards import LeadTimeWindow, TrustedBatches, guarded
from elastream.policies.reactive import Reactive, Slots
from support.pipelines import context, interval, line

ONE = line("query", pool=8)
MODEL = BatchModel(fixed=0.4, per_task=0.0, per_row=0.01, tasks=16)


def known(active=4, rows=1000.0, queued=0.0, forecast=None, td=5.0, proposals=(), **changes):
    """A context after one interval with batches."""
    facts = {"ended": 1, "seconds": 3.0, "every": 5.0, "within": 4.0, "cores": 1}
    facts |= {"running": 2.0, "waiting": 0.0, "lead": 10.0, "model": MODEL}
    batches = BatchStats(**(facts | changes))
    stats = interval(ONE, rows, td=td, active=active, queued=queued)
    before = stats.operators["query"]
    operators = {
        "query": OperatorStats(
            before.received, before.processed, before.emitted, queued, before.busy, active,
            batches=batches,
        )
    }  # fmt: skip
    stats = type(stats)(0, td, stats.sources, operators, stats.edges)
    expected = [rows] if forecast is None else forecast
    return context(ONE, stats, forecast=expected, proposals=proposals)


def decided(policy, **changes):
    return policy.decide(known(**changes)).replicas["query"]


@pytest.mark.parametrize(
    ("seconds", "after"), [(5.5, 5), (5.0, 5), (4.0, 4), (3.0, 3), (3.74, 3), (0.5, 3)]
)
def test_reactive_adds_or_takes_one_by_the_length_of_a_batch(seconds, after):
    assert decided(Reactive(), seconds=seconds) == after


def test_reactive_does_nothing_while_no_batch_has_ended():
    assert decided(Reactive(), seconds=20.0, ended=0) == 4


def test_reactive_takes_none_whose_work_the_others_could_not_do():
    assert decided(Reactive(), seconds=3.6, active=2) == 2


@pytest.mark.parametrize(
    ("running", "waiting", "after"),
    [(4.0, 3.0, 7), (4.0, 0.0, 4), (2.0, 3.0, 4), (1.0, 0.0, 2), (0.0, 0.0, 1)],
)
def test_slots_follows_used_slots_and_waiting_tasks(running, waiting, after):
    assert decided(Slots(), running=running, waiting=waiting) == after


def test_slots_counts_the_cores_of_an_executor():
    assert decided(Slots(), running=8.0, waiting=3.0, cores=2) == 6


def test_the_fewest_with_which_a_batch_ends_in_time():
    # 16 tasks of 0.56 s each: in 3.6 s a core takes six of them. With a tenth more, five.
    assert decided(Deadline(margin=0.0), rows=900.0) == 3
    assert decided(Deadline(margin=0.1), rows=900.0) == 4


def test_the_largest_input_until_an_executor_would_come_counts():
    policy = Deadline(margin=0.0)
    assert policy.horizon_after(known().stats) == 3, "it works on the batch that begins then"
    assert decided(policy, forecast=[1000.0, 1500.0]) == 6


def test_a_batch_has_what_arrives_in_a_whole_trigger_interval():
    rising, falling = [500.0, 600.0, 750.0, 750.0], [750.0, 250.0, 250.0, 200.0]
    policy = Deadline(margin=0.0)
    assert decided(policy, td=2.5, forecast=rising) == decided(policy, forecast=[1500.0])
    assert decided(policy, td=2.5, forecast=falling) == decided(policy, forecast=[1000.0])


def test_executors_go_only_when_nothing_needed_them_for_a_lead_time():
    before = tuple(Plan({"query": count}) for count in (8, 4, 3, 2))

    def left(lead):
        at = known(active=6, proposals=before, lead=lead)
        return guarded(Plan({"query": 1}), at, [LeadTimeWindow()]).replicas["query"]

    assert [left(lead) for lead in (0.0, 6.0, 11.0, 16.0, 100.0)] == [2, 2, 3, 4, 6]


def test_a_backlog_has_to_be_gone_in_time():
    assert decided(Deadline(margin=0.0, drain=15.0), rows=1000.0, queued=1500.0) == 6


def test_no_batch_is_planned_that_is_larger_than_its_source_allows():
    at = known(rows=1000.0, queued=1e6, most=1000.0)
    plan = Deadline(margin=0.0).decide(at)
    assert plan.replicas["query"] == decided(Deadline(margin=0.0), rows=1000.0)
    assert "the source gives no batch more" in str(plan.reasons["query"][0])


def test_where_no_number_suffices_it_says_so_and_asks_for_those_that_help():
    slow = BatchModel(fixed=6.0, per_task=0.0, per_row=0.01, tasks=16)
    plan = Deadline(margin=0.0).decide(known(rows=160.0, model=slow))
    assert plan.replicas["query"] == 3
    assert "no number makes it end in 4.0 s" in str(plan.reasons["query"][0])


def test_while_nothing_is_known_only_a_late_batch_brings_more():
    assert decided(Deadline(), model=None) == 4
    assert decided(Deadline(), model=None, seconds=6.0) == 8


def test_the_guard_holds_still_while_the_model_is_not_trusted():
    doubted = BatchModel(0.4, 0.0, 0.01, 16, trust=0.3)
    for seconds, after in ((3.0, 4), (6.0, 8)):
        at = known(rows=4000.0, model=doubted, seconds=seconds)
        plan = guarded(Deadline().decide(at), at, [TrustedBatches()])
        assert plan.replicas["query"] == after
    at = known(rows=100.0, model=doubted)
    plan = guarded(Deadline().decide(at), at, [TrustedBatches()])
    assert plan.replicas["query"] == 4
    assert "30% of the recent batches predicted" in str(plan.reasons["query"][-1])


@pytest.mark.parametrize(
    "make",
    [
        lambda: Reactive(low=1.2),
        lambda: Slots(low=0.9),
        lambda: Slots(target=1.5),
        lambda: Deadline(margin=-0.1),
        lambda: Deadline(drain=0.0),
    ],
)
def test_parameters_are_checked(make):
    with pytest.raises(InvalidInputError):
        make()
