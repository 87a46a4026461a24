import pytest

from elastream.core.equations.bgelasor import Prices
from elastream.errors import InvalidInputError
from elastream.policies.bgelasor import Cba, Spea, Srea
from support.pipelines import context, interval, line

ONE = line("work")
PER_REPLICA = 3000  # events of 10 ms in an interval of 30 s


def replicas(policy, now, *ahead, active=1, queued=0):
    stats = interval(ONE, now * PER_REPLICA, active=active, queued=queued)
    loads = [n * PER_REPLICA for n in ahead] or None
    return policy.decide(context(ONE, stats, ahead=loads)).replicas["work"]


def test_srea_follows_the_current_load():
    assert replicas(Srea(), 3) == 3
    assert replicas(Srea(), 3, queued=PER_REPLICA) == 4


def test_spea_starts_before_a_rise_and_stops_after_a_fall():
    assert replicas(Spea(), 2, 5) == 5
    assert replicas(Spea(), 5, 2) == 5
    assert replicas(Spea(), 2, 2, queued=PER_REPLICA) == 3


def test_cba_keeps_replicas_over_a_short_dip_if_that_is_cheaper():
    # The load has fallen from 5 to 2, and rises to 5 again in the third interval.
    loads = (2, 2, 2, 5, 5)
    dear, cheap = Prices(10, 50, 50, 1), Prices(10, 1, 1, 1)
    assert replicas(Cba(ahead=4, prices=dear), *loads, active=5) == 5
    assert replicas(Cba(ahead=4, prices=cheap), *loads, active=5) == 2


def test_cba_looks_no_further_than_its_horizon():
    loads = (2, 2, 2, 5, 5)
    assert replicas(Cba(ahead=1, prices=Prices(10, 50, 50, 1)), *loads, active=5) == 2


def test_the_published_prices_are_the_default():
    assert Cba().prices == Prices(8000, 5000, 5000, 100)
    with pytest.raises(InvalidInputError, match="ahead=0"):
        Cba(ahead=0)
