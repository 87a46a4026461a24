"""How a run is, over HTTP."""

import json

import pytest

from elastream.core.health import Health, State
from support.stepped import Stepped


class Ailing(Stepped):
    """A stepped run whose engine says what the test wants."""

    def __init__(self):
        super().__init__()
        self.reported = Health()
        self.engine.health = lambda: self.reported


@pytest.fixture
def run():
    return Ailing()


def test_it_is_starting_before_anything_was_measured(run):
    assert run.get("/health") | {"version": ""} == {
        "status": "ok",
        "state": "starting",
        "why": "",
        "version": "",
    }
    assert run.client.get("/health/ready").status_code == 503
    assert run.client.get("/health/live").status_code == 200


@pytest.mark.parametrize(
    ("state", "live", "ready"),
    [("degraded", 200, 200), ("waiting", 200, 503), ("failed", 503, 503)],
)
def test_kubernetes_gets_its_answers(run, state, live, ready):
    run.cycles(1)
    assert run.get("/health")["state"] == "running"
    run.reported = Health(State(state), "the disk is full")
    for path, status in {"/health": 200, "/health/live": live, "/health/ready": ready}.items():
        answer = run.client.get(path)
        assert (answer.status_code, answer.json()["why"]) == (status, "the disk is full")
    metrics = run.client.get("/metrics").text.splitlines()
    assert f'elastream_health{{pipeline="shop",state="{state}"}} 1.0' in metrics
    assert 'elastream_health{pipeline="shop",state="running"} 0.0' in metrics


def test_streams_begin_with_it_and_hear_of_every_change(run):
    run.cycles(1)
    run.live.show_health(run.running.health())
    greeting = run.live.greeting({}).decode()
    assert 'event: health\ndata: {"state":"running","why":""}' in greeting
    before = run.live.feed.last
    run.live.show_health(run.running.health())
    assert run.live.feed.last == before
    run.reported = Health(State.WAITING, "the disk is full")
    run.live.show_health(run.running.health())
    assert run.live.feed.last == before + 1
    told = run.live.greeting({}).decode().split("event: health\ndata: ")[1].partition("\n")[0]
    assert json.loads(told) == {"state": "waiting", "why": "the disk is full"}
