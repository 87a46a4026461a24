from elastream.control.lead_time import LeadTimes
from support.pipelines import interval, line

LINE = line("clean", "store")


def seen(**active):
    return interval(LINE, 10, active={"clean": 1, "store": 1, **active})


def test_a_replica_that_is_there_at_the_first_look_took_no_interval():
    leads = LeadTimes()
    leads.ask({"clean": 2}, seen(clean=1), now=10.0)
    leads.look(seen(clean=2), now=10.25)
    assert leads.current["clean"].levels == ((0, 0.0),)


def test_a_replica_takes_until_it_was_last_missing():
    leads = LeadTimes()
    leads.ask({"clean": 3}, seen(clean=1), now=10.0)
    for now in (11.0, 12.0, 13.0):
        leads.look(seen(clean=1), now)
    assert leads.current["clean"].levels == ((0, 3.0),)
    leads.look(seen(clean=3), now=14.0)
    assert leads.current["clean"].levels == ((0, 3.0),)


def test_quick_replicas_do_not_hide_that_those_beyond_them_are_slow():
    leads = LeadTimes()
    for number in range(5):
        began = 100.0 * number
        leads.ask({"clean": 6}, seen(clean=1), now=began)
        for second in range(1, 31):
            leads.look(seen(clean=4), began + second)
        leads.look(seen(clean=6), began + 31)
        leads.ask({"clean": 1}, seen(clean=6), now=began + 40)
    assert leads.current["clean"].levels == ((0, 0.0), (4, 30.0))
    assert [leads.current["clean"].of(replica) for replica in (2, 4, 5, 8)] == [0, 0, 30, 30]


def test_a_replica_that_is_let_go_says_nothing():
    leads = LeadTimes()
    leads.ask({"clean": 3}, seen(clean=1), now=10.0)
    leads.ask({"clean": 1}, seen(clean=1), now=11.0)
    leads.look(seen(clean=1), now=12.0)
    assert leads.current == {}


def test_one_straggler_does_not_count():
    leads = LeadTimes()
    for number, late in enumerate([0, 0, 9, 0, 0]):
        leads.ask({"clean": 2}, seen(clean=1), now=100.0 * number)
        for second in range(1, late + 1):
            leads.look(seen(clean=1), 100.0 * number + second)
        leads.look(seen(clean=2), 100.0 * number + late + 1)
    assert leads.current["clean"].levels == ((0, 0.0),)


def test_what_is_asked_for_again_was_asked_for_before():
    leads = LeadTimes()
    for now in (10.0, 10.25, 10.5, 10.75):
        leads.ask({"clean": 3}, seen(clean=1), now)
        leads.look(seen(clean=1), now + 0.25)
    leads.look(seen(clean=3), now=11.25)
    assert leads.current["clean"].levels == ((0, 1.0),)


def test_each_wish_has_a_time_of_its_own():
    leads = LeadTimes()
    leads.ask({"clean": 2}, seen(clean=1), now=10.0)
    leads.look(seen(clean=1), now=11.0)
    leads.ask({"clean": 3}, seen(clean=1), now=11.0)
    leads.look(seen(clean=1), now=12.0)
    leads.look(seen(clean=2), now=13.0)
    leads.look(seen(clean=3), now=14.0)
    assert leads.current["clean"].levels == ((0, 2.0),)


def test_a_wish_that_cannot_be_met_is_forgotten():
    leads = LeadTimes()
    leads.ask({"clean": 8}, seen(clean=6), now=0.0)
    for now in range(10, 3601, 10):
        leads.ask({"clean": 8}, seen(clean=6), float(now))
        leads.look(seen(clean=6), float(now))
        assert max((lead.longest for lead in leads.current.values()), default=0.0) <= 600
    # Slots have come free, an hour later.
    leads.look(seen(clean=8), now=3610.0)
    assert leads.current == {}
    leads.ask({"clean": 8}, seen(clean=6), now=4000.0)
    leads.look(seen(clean=6), now=4005.0)
    leads.look(seen(clean=8), now=4010.0)
    assert leads.current["clean"].levels == ((0, 5.0),)


def test_a_number_that_was_never_asked_for_takes_as_long_as_the_nearest_below_else_above():
    leads = LeadTimes()
    leads.ask({"clean": 4}, seen(clean=3), now=10.0)
    leads.look(seen(clean=3), now=12.0)
    assert [leads.current["clean"].of(replica) for replica in (1, 3, 4, 8)] == [2, 2, 2, 2]
