"""How much a producer may send, and to which lanes."""

from collections import Counter

import pytest

from elastream.engines.base import WhenFull
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.backends.ledger import Counts
from elastream.engines.spark.backends.outbox import output_of
from elastream.engines.spark.backends.parcels import Parcel
from elastream.engines.spark.births import Births
from elastream.engines.spark.options import Options
from elastream.engines.spark.worker.back_pressure import LANE_SHARE, LEAST_PARTS, BackPressure
from support.memory_backend import MemoryBackend

BOUND = 100
FULL = int(BOUND * LANE_SHARE)
LANES = 8


@pytest.fixture
def end(tmp_path):
    """The producer; its successor `next` has eight lanes."""
    backend = MemoryBackend(str(tmp_path))
    backend.prepare("test", {"next": OperatorLanes(LANES)})
    connection = backend.connect()
    connection.lanes.join(("work", 0), 1)
    return connection


def put(end, lengths, operator="next"):
    parcels = [parcel(events, lane, operator) for lane, events in lengths.items()]
    assert end.lanes.commit([], parcels, Counts())


def parcel(events, lane, operator="next"):
    return Parcel(operator, lane, events, Births.evenly(events, 1.0), b"")


def drain(end, operator="next"):
    taker = type(end)(end.lanes._state)
    taker.lanes.join((operator, 9), 1)
    taker.lanes.hold(frozenset(range(LANES)), by_force=frozenset(range(LANES)))
    assert taker.lanes.commit(taker.lanes.take(10_000), [], Counts())


def pressure_of(end, keyed=(), output=None, seed="work.0", **options):
    return BackPressure(
        end.lanes, ["next"], keyed, [output] if output else [], Options(BOUND, **options), seed
    )


def test_where_there_is_hardly_any_room_batches_are_not_cut_into_single_events(end):
    pressure = pressure_of(end)
    put(end, {0: BOUND - 1})
    assert pressure.is_open()
    assert pressure.allowance == BOUND // LEAST_PARTS


def test_events_may_leave_until_the_successor_is_full(end):
    pressure = pressure_of(end)
    assert pressure.is_open()
    put(end, dict.fromkeys(range(8), BOUND // 8 + 1))
    pressure.look_again()
    assert not pressure.is_open()
    drain(end)
    assert pressure.is_open()


def test_who_has_sent_a_part_of_the_room_looks_again(end):
    pressure = pressure_of(end)
    assert pressure.is_open()
    # Others fill it meanwhile, which is noticed at the latest after this producer's own part.
    put(end, dict.fromkeys(range(8), BOUND // 8 + 1))
    assert pressure.is_open()
    pressure.sent([parcel(BOUND // 8 + 1, 0)])
    assert not pressure.is_open()


def test_a_full_lane_is_no_reason_to_wait_unless_a_key_chooses_it(end):
    put(end, {3: FULL})
    assert pressure_of(end).is_open()
    assert not pressure_of(end, keyed=["next"]).is_open()
    drain(end)
    put(end, {3: FULL - 1})
    assert pressure_of(end, keyed=["next"]).is_open()


def test_an_output_that_nobody_reads_stops_its_operator(end):
    pressure = pressure_of(end, output=output_of("work"), on_full=WhenFull.DROP)
    assert pressure.is_open()
    put(end, {0: BOUND}, output_of("work"))
    pressure.look_again()
    assert not pressure.is_open()


def test_who_may_drop_never_waits_and_refuses_what_has_no_room(end):
    pressure = pressure_of(end, on_full=WhenFull.DROP)
    assert not pressure.refuses("next")
    put(end, dict.fromkeys(range(8), BOUND // 8 + 1))
    pressure.look_again()
    assert pressure.is_open()
    assert pressure.refuses("next")
    drain(end)
    assert not pressure.refuses("next")
    assert not pressure_of(end).refuses("next")


def chosen(pressure, candidates=range(4), times=400):
    assert pressure.is_open()
    return Counter(pressure.lane("next", candidates, LANES) for _ in range(times))


def test_every_lane_of_a_replica_is_chosen_and_no_other(end):
    assert set(chosen(pressure_of(end))) == {0, 1, 2, 3}
    assert set(chosen(pressure_of(end), candidates=[5])) == {5}


def test_a_shorter_lane_is_chosen_more_often_and_the_shortest_not_always(end):
    put(end, {0: 9, 1: 1, 2: 5})
    picks = chosen(pressure_of(end))
    assert picks[0] < 400 / 8
    assert picks[0] < picks[2] < picks[1] < picks[3] < 400 / 2


def test_what_was_sent_since_the_last_count_counts_as_well(end):
    pressure = pressure_of(end)
    assert pressure.is_open()
    lengths = Counter()
    for _ in range(40):
        lane = pressure.lane("next", range(4), LANES)
        pressure.sent([parcel(1, lane)])
        lengths[lane] += 1
    assert max(lengths.values()) - min(lengths.values()) <= 4


def test_full_lanes_are_skipped_as_long_as_there_is_any_other(end):
    put(end, {0: FULL, 1: FULL, 2: 3})
    assert set(chosen(pressure_of(end))) == {2, 3}
    drain(end)
    put(end, dict.fromkeys(range(4), FULL - 1))
    put(end, dict.fromkeys(range(4), 1))
    assert set(pressure_lanes_when_mine_are_full(end)) == {4, 5, 6, 7}


def pressure_lanes_when_mine_are_full(end):
    pressure = pressure_of(end)
    pressure.is_open()
    return [pressure.lane("next", range(4), LANES) for _ in range(100)]


def test_when_all_lanes_are_full_any_lane_of_the_replica_will_do(end):
    put(end, dict.fromkeys(range(8), FULL))
    assert set(pressure_lanes_when_mine_are_full(end)) <= {0, 1, 2, 3}


def test_producers_do_not_all_choose_the_same_lanes(end):
    picks = {
        seed: pressure_of(end, seed=seed).lane("next", range(8), LANES)
        for seed in (f"work.{number}" for number in range(20))
    }
    assert len(set(picks.values())) > 3
