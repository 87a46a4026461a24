"""`elastream top`: the live table from another terminal."""

import socket
import sys

import pytest

from elastream.cli import stream_client
from elastream.cli.stream_client import Event, LostError, StreamClient
from elastream.errors import InvalidInputError
from elastream.service.server import listen, serving, url_of
from support.stepped import Stepped

SETTINGS = {"policy": "pa-sps", "predictor": "lr", "paused": True, "advice_only": False}
OPERATOR = {"active": 2, "queued": 1500, "utilization": 0.5, "received": 250, "processed": 200}
SAMPLE = {
    "time": 61,
    "input": 250,
    "forecast": 260,
    "latency_p50": 0.02,
    "latency_p99": None,
    "operators": {"parse": OPERATOR},
}


def test_it_shows_a_run_until_its_end(elastream):
    stepped = Stepped()
    stepped.cycles(1)
    stepped.live.end()
    listening = listen("127.0.0.1", 0)
    with serving(stepped.app, listening, stepped.live.feed.close):
        shown = elastream("top", url_of(listening))
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.endswith("the run is over\n")


class Script:
    """A service that does what it is told, stream by stream."""

    def __init__(self, *streams):
        self._streams = iter(streams)

    def pipeline(self):
        return {"name": "shop", "operators": [{"name": "parse", "pool": 6}]}

    def events(self):
        for step in next(self._streams):
            if isinstance(step, BaseException):
                raise step
            yield step


@pytest.fixture
def watched(elastream, monkeypatch):
    def run(*streams):
        script = Script(*streams)
        monkeypatch.setattr(stream_client, "StreamClient", lambda url, token: script)
        monkeypatch.setattr(sys.modules["elastream.cli.commands.top"], "PAUSE_SECONDS", 0.0)
        return elastream("top")

    return run


SETTINGS_TOLD = Event("settings", {**SETTINGS, "stopping": False})


def test_a_lost_connection_is_made_again(watched):
    shown = watched(
        [SETTINGS_TOLD, Event("sample", SAMPLE), LostError("it broke")],
        [LostError("nobody listens")],
        [SETTINGS_TOLD, Event("sample", {**SAMPLE, "time": 64}), Event("end", {})],
    )
    assert shown.code == 0
    assert "shop, 64 s: pa-sps with lr, paused" in shown.out
    assert "2/6" in shown.out
    assert "input 250/s, 260/s expected" in shown.out


def test_what_is_wrong_with_the_run_is_shown(watched):
    ailing = Event("health", {"state": "waiting", "why": "the disk is full"})
    shown = watched([SETTINGS_TOLD, ailing, Event("sample", SAMPLE), Event("end", {})])
    assert "waiting: the disk is full" in shown.out
    failures = [{"operator": "parse", "error": "KeyError: 'id'", "events": 2400.0}]
    failing = Event("problems", {"operators": {}, "failures": failures})
    shown = watched([SETTINGS_TOLD, failing, Event("sample", SAMPLE), Event("end", {})])
    assert "set aside: 2,400 events, most by 'parse': KeyError: 'id'" in shown.out


def test_ctrl_c_ends_it(watched):
    shown = watched([SETTINGS_TOLD, Event("sample", SAMPLE), KeyboardInterrupt()])
    assert (shown.code, shown.err) == (0, "")


def test_nobody_who_listens_is_told_in_one_line(elastream):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    shown = elastream("top", f"http://127.0.0.1:{port}")
    assert shown.code == 2
    assert f"http://127.0.0.1:{port}: no pipeline can be watched there" in shown.err
    assert "--serve" in shown.err
    assert len(shown.err.splitlines()) == 1


@pytest.mark.parametrize("url", ["ftp://somewhere", "http://", "http://host:port"])
def test_an_address_that_makes_no_sense_is_refused(url):
    with pytest.raises(InvalidInputError, match="it must be an address"):
        StreamClient(url)
