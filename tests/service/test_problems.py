"""What goes wrong with single events and replicas is shown at once."""

from dataclasses import replace

import pytest

from support.pipelines import failing, interval
from support.stepped import Stepped


@pytest.fixture
def run():
    return Stepped()


def aside(run, events, **changes):
    stats = failing(run.engine.topology, "parse", {f"KeyError: {events}": events}, source="orders")
    parse = replace(stats.operators["parse"], **changes)
    return replace(stats, operators={**stats.operators, "parse": parse})


def test_events_that_are_set_aside_are_told_at_once_and_add_up(run):
    assert run.get("/api/problems") == {"operators": {}, "failures": []}
    before = run.live.feed.last
    run.live.watch(aside(run, 3, dropped=7.0, restarted=1.0))
    run.live.watch(aside(run, 2))
    told = run.get("/api/problems")
    assert told["failures"] == [{"operator": "parse", "error": "KeyError: #", "events": 5}]
    assert told["operators"]["parse"] == {"set_aside": 5, "dropped": 7, "restarted": 1}
    assert run.live.feed.last == before + 4  # A sample and the problems, twice.
    assert b'"events":5.0' in run.live.greeting({})
    metrics = run.client.get("/metrics").text.splitlines()
    for line in (
        'elastream_set_aside_events_total{operator="parse",pipeline="shop"} 5.0',
        'elastream_failures_events_total{error="KeyError: #",operator="parse",pipeline="shop"} 5.0',
        'elastream_replicas_restarted_total{operator="parse",pipeline="shop"} 1.0',
        'elastream_dropped_events_total{operator="parse",pipeline="shop"} 7.0',
    ):
        assert line in metrics


def test_where_nothing_goes_wrong_nothing_is_told(run):
    run.live.watch(interval(run.engine.topology, 100, source="orders"))
    before = run.live.feed.last
    run.live.watch(interval(run.engine.topology, 100, source="orders"))
    assert run.live.feed.last == before + 1


def test_how_long_the_oldest_event_waits_is_told(run):
    """250 events a second come, and one replica takes 100 of them."""
    run.loop.steering.set_replicas("test", "parse", 1)
    run.loop.steering.change("test", {"paused": True})
    run.cycles(2)
    parse = run.get("/api/history")["backlog"]["operators"]["parse"]
    # After 20 s, 2,000 of 5,000 events are processed: those of the first 8 s.
    assert parse["oldest"] == pytest.approx(12, abs=1)
    metrics = run.client.get("/metrics").text
    assert (
        f'elastream_queue_oldest_seconds{{operator="parse",pipeline="shop"}} {parse["oldest"]}'
        in metrics
    )


def test_replicas_that_are_not_there_are_told(run):
    run.live.watch(aside(run, 1, pending=2, dead=1, draining=3, stalled={0: 12.0, 2: 34.0}))
    parse = run.get("/api/history")["backlog"]["operators"]["parse"]
    assert (parse["pending"], parse["dead"], parse["draining"]) == (2, 1, 3)
    assert parse["stalled"] == 2
    metrics = run.client.get("/metrics").text
    assert 'elastream_replicas_stalled{operator="parse",pipeline="shop"} 2.0' in metrics
    assert 'elastream_replicas_dead{operator="parse",pipeline="shop"} 1.0' in metrics
