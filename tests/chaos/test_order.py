"""Whatever is killed, paused or replaced: every event comes out once, and keys keep their order."""

import sqlite3
from contextlib import closing

import pytest
from tests.chaos.schedule import Chaos, out_of_order

from elastream.engines.spark.backends.sqlite.database import FILE
from elastream.engines.spark.backends.sqlite.storage import LARGE


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        ("sqlite", 1),
        pytest.param("sqlite", 2, marks=pytest.mark.long),
        ("memory", 1),
        ("kafka", 1),
    ],
)
def test_keys_keep_their_order_while_everything_changes(tmp_path, kind, seed):
    chaos = Chaos(kind, tmp_path, seed)
    ids = chaos.run()
    assert sorted(ids) == list(range(chaos.events)), chaos.log
    assert out_of_order(ids) == {}, chaos.log


@pytest.mark.parametrize("kind", ["sqlite", "memory", "kafka"])
@pytest.mark.parametrize("grouping", ["shuffle", pytest.param("pull", marks=pytest.mark.long)])
def test_without_a_key_every_event_comes_out_once(tmp_path, kind, grouping):
    chaos = Chaos(kind, tmp_path, seed=3, grouping=grouping, seconds=4, faults=5)
    assert sorted(chaos.run()) == list(range(chaos.events)), chaos.log


@pytest.mark.parametrize("kind", ["sqlite", "memory", "kafka"])
def test_what_one_producer_puts_into_one_lane_keeps_its_order_without_a_key(tmp_path, kind):
    """Where operators have one lane, that is the order of the source."""
    chaos = Chaos(kind, tmp_path, seed=5, grouping="shuffle", seconds=4, faults=6, pool=1, lanes=1)
    assert chaos.run() == list(range(chaos.events)), chaos.log


def test_large_batches_that_are_passed_on_come_out_once_and_do_not_stay(tmp_path):
    """They are not copied on their way."""
    given = {"grouping": "shuffle", "rate": 100, "seconds": 4, "faults": 6, "padding": LARGE}
    chaos = Chaos("sqlite", tmp_path, seed=6, **given)
    assert sorted(chaos.run()) == list(range(chaos.events)), chaos.log
    with closing(sqlite3.connect(tmp_path / "state" / FILE)) as db:
        for table in ("batches", "parcels"):
            assert db.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)


def test_keys_keep_their_order_through_a_chain(tmp_path):
    chaos = Chaos("sqlite", tmp_path, seed=4, seconds=4, faults=6, chain=True)
    ids = chaos.run()
    assert sorted(ids) == list(range(chaos.events)), chaos.log
    assert out_of_order(ids) == {}, chaos.log


@pytest.mark.parametrize("seconds", [2.0, 3600.0])
def test_setting_the_clock_back_repeats_nothing_and_stops_nobody(tmp_path, seconds):
    """While a trace plays, generations change and a worker is killed."""
    chaos = Chaos("memory", tmp_path, seed=4, seconds=4, faults=2, set_back=seconds)
    ids = chaos.run()
    assert sorted(ids) == list(range(chaos.events)), chaos.log
    assert out_of_order(ids) == {}, chaos.log


@pytest.mark.long
@pytest.mark.parametrize("seconds", [2.0, 3600.0])
def test_setting_the_clock_back_in_every_process(tmp_path, seconds):
    chaos = Chaos("sqlite", tmp_path, seed=4, seconds=6, faults=4, set_back=seconds)
    ids = chaos.run()
    assert sorted(ids) == list(range(chaos.events)), chaos.log
    assert out_of_order(ids) == {}, chaos.log
