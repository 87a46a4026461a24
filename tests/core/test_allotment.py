"""How many of too few workers each operator gets."""

from hypothesis import given
from hypothesis import strategies as st

from elastream.core.allotment import MARGIN, allotted

NAMES = ("a", "b", "c", "d")
ONE_EACH = dict.fromkeys(NAMES, 1)
COUNTS = st.fixed_dictionaries(dict.fromkeys(NAMES, st.integers(1, 20)))


def test_unequal_operators_get_workers_in_proportion_to_what_they_want():
    wanted = dict(zip(NAMES, (10, 20, 15, 5), strict=True))
    assert allotted(wanted, ONE_EACH, {}, 25) == dict(zip(NAMES, (5, 10, 7, 3), strict=True))
    assert allotted(wanted, ONE_EACH, {}, 50) == wanted


def test_minima_come_first():
    wanted, minima = {"a": 9, "b": 3}, {"a": 1, "b": 3}
    assert allotted(wanted, minima, {}, 5) == {"a": 2, "b": 3}
    assert allotted(wanted, minima, {}, 2) == {"a": 1, "b": 3}, "there may be too few even for that"


def test_a_little_more_or_less_moves_nobody():
    now = allotted({"a": 8, "b": 8}, ONE_EACH, {}, 8)
    assert allotted({"a": 9, "b": 8}, ONE_EACH, now, 8) == now
    assert allotted({"a": 20, "b": 8}, ONE_EACH, now, 8) == {"a": 5, "b": 3}


def test_who_wants_less_gives_back():
    assert allotted({"a": 2, "b": 8}, ONE_EACH, {"a": 4, "b": 4}, 8) == {"a": 2, "b": 6}


@given(COUNTS, COUNTS, COUNTS, st.integers(4, 80))
def test_nobody_is_much_worse_off_than_need_be(wanted, minima, now, workers):
    minima = {name: min(minima[name], wanted[name]) for name in NAMES}
    share = allotted(wanted, minima, now, workers)
    assert all(minima[name] <= share[name] <= wanted[name] for name in NAMES)
    if sum(minima.values()) <= workers:
        assert sum(share.values()) == min(workers, sum(wanted.values()))
    for giver in NAMES:
        if share[giver] > minima[giver]:
            after = wanted[giver] / max(share[giver] - 1, 1)
            assert all(
                wanted[taker] / share[taker] <= MARGIN * after
                for taker in NAMES
                if taker != giver and share[taker] < wanted[taker]
            )
    assert allotted(wanted, minima, share, workers) == share
