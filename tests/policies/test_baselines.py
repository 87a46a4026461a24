import pytest

from elastream.core.stats import IntervalStats, OperatorStats, SourceStats
from elastream.errors import InvalidInputError
from elastream.policies.incremental import Incremental
from elastream.policies.rlearning import RLearning, bucket, reward
from elastream.policies.static import Static
from support.pipelines import context, interval, line

ONE = line("work")


def replicas(policy, *past, **more):
    return policy.decide(context(ONE, *past, **more)).replicas["work"]


def test_static_never_changes_and_stays_in_the_pool():
    assert replicas(Static(4), interval(ONE, 1e9)) == 4
    assert replicas(Static(99), interval(ONE, 0)) == 8
    with pytest.raises(InvalidInputError, match="replicas=0"):
        Static(0)


def test_incremental_adds_and_removes_one_at_a_time():
    # 30 s of one replica are 3,000 events of 10 ms.
    assert replicas(Incremental(), interval(ONE, 2500)) == 2
    assert replicas(Incremental(), interval(ONE, 2000)) == 1
    assert replicas(Incremental(), interval(ONE, 2000, active=4)) == 3
    assert replicas(Incremental(), interval(ONE, 1e9, active=8)) == 8


def test_thresholds_that_would_swing_for_ever_are_refused():
    with pytest.raises(InvalidInputError, match=r"low=0\.5, high=0\.8"):
        Incremental(low=0.5)


def ran(rate, active, pool=8, et=0.01, td=30.0):
    """An interval of an operator that starts without a queue."""
    done = min(rate, active / et) * td
    of = OperatorStats(rate * td, done, done, rate * td - done, done * et, active)
    return IntervalStats(0, td, {"in": SourceStats(rate * td, 0.0)}, {"work": of}, {})


def test_the_reward_is_best_for_the_fewest_replicas_that_keep_up():
    earned = {k: reward(ran(250, k).operators["work"], 0.0, pool=8) for k in range(1, 9)}
    assert max(earned, key=earned.__getitem__) == 3


def test_rates_within_ten_percent_are_alike():
    assert bucket(0) == bucket(0.5) == 0
    assert bucket(1000) - bucket(500) == pytest.approx(7, abs=1)


def trained():
    """After an episode each in which every rate met every degree."""
    policy = RLearning()
    for rate in (50, 120, 250, 380, 700):
        for degree in range(1, 9):
            policy = policy.after([ran(rate, degree)], ONE.operators)
    return policy


def test_rlearning_finds_what_each_rate_needs():
    for rate, needed in ((50, 1), (120, 2), (250, 3), (380, 4), (700, 7)):
        assert replicas(trained(), interval(ONE, 30 * rate, active=needed)) == needed


def test_what_waits_it_does_not_see():
    waiting = interval(ONE, 30 * 120, active=2, queued=50_000)
    (reason,) = trained().decide(context(ONE, waiting)).reasons["work"]
    assert reason.facts["rate"] == 120


def test_when_all_that_was_tried_fell_behind_it_tries_more():
    policy = RLearning()
    for degree in (2, 4):
        policy = policy.after([ran(700, degree)], ONE.operators)
    assert replicas(policy, ran(700, 4)) == 5


def test_while_it_learns_it_tries_degrees_at_random_but_by_its_seed():
    busy = interval(ONE, 30 * 250, active=3)
    tried = {replicas(RLearning(explore=1.0, seed=seed), busy) for seed in range(40)}
    assert len(tried) > 4
    again = RLearning(explore=1.0, seed=7)
    assert replicas(again, busy) == replicas(again, busy)
    with pytest.raises(InvalidInputError, match="explore=2"):
        RLearning(explore=2)


def test_an_unknown_rate_takes_the_nearest_known_one():
    assert replicas(trained(), interval(ONE, 30 * 400, active=8)) in (4, 8)


def test_without_experience_it_tries_what_should_be_enough():
    assert replicas(RLearning(), interval(ONE, 30 * 250)) == 3


def test_an_operator_that_got_nothing_in_training_has_no_experience_either():
    idle = RLearning().after([interval(ONE, 0)], ONE.operators)
    assert replicas(idle, interval(ONE, 0)) == 1


def test_training_is_deterministic_and_survives_a_file(tmp_path):
    path = tmp_path / "table.json"
    trained().save(path)
    assert RLearning.load(path) == trained()
    with pytest.raises(InvalidInputError, match="cannot be written"):
        trained().save(tmp_path)


@pytest.mark.parametrize("content", ["", "[]", '{"format": "other"}', '{"format": 3, "table": 4}'])
def test_a_file_that_is_no_table_is_refused(tmp_path, content):
    path = tmp_path / "table.json"
    path.write_text(content)
    with pytest.raises(InvalidInputError, match=r"table\.json: is not a table"):
        RLearning.load(path)
    with pytest.raises(InvalidInputError, match="none: cannot be read"):
        RLearning.load(tmp_path / "none")
