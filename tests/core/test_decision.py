import pytest

from elastream.core.decision import Change, Plan, Reason

POOL = Reason("pool", {"pool": 8}, "the pool has 8")


def test_algorithm_2_adds_removes_and_leaves_alone():
    plan = Plan({"a": 3, "b": 1, "c": 2}, {"a": (POOL,)})
    changes = plan.changes({"a": 1, "b": 4, "c": 2})
    assert changes == (Change("a", 1, 3, (POOL,)), Change("b", 4, 1))
    assert [change.added for change in changes] == [2, -3]


def test_a_plan_differs_from_the_one_before_it():
    before, after = Plan({"a": 1, "b": 2}), Plan({"a": 1, "b": 5})
    assert [str(change) for change in after.changes(before.replicas)] == ["b 2 -> 5"]
    assert after.changes(after.replicas) == ()


def test_a_change_explains_itself():
    expected = Reason("forecast", {}, "4,210 events/s expected (ann), 1.2 ms each, 800 queued")
    assert str(Change("sentiment", 3, 8, (expected, POOL))) == (
        "sentiment 3 -> 8: 4,210 events/s expected (ann), 1.2 ms each, 800 queued; the pool has 8"
    )


def test_a_guard_adds_its_reason_and_leaves_the_plan_alone():
    plan = Plan({"a": 12})
    guarded = plan.amended({"a": (8, POOL)})
    assert (plan.replicas["a"], guarded.replicas["a"]) == (12, 8)
    assert guarded.reasons["a"] == (POOL,)
    with pytest.raises(TypeError):
        guarded.replicas["a"] = 1  # type: ignore[index]
