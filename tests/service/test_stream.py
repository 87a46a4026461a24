"""The stream of events: nothing is missed, and nobody holds the service up."""

import asyncio
import json
import time
from itertools import islice

import pytest

from elastream.cli.stream_client import LostError, StreamClient
from elastream.service import control_api, feed, server
from elastream.service.feed import KEPT, Feed
from elastream.service.server import listen, serving, url_of
from support.stepped import Stepped


@pytest.fixture(autouse=True)
def hurry(monkeypatch):
    monkeypatch.setattr(feed, "PAUSE_SECONDS", 0.0)


def told(parts):
    """Number, kind and content of every event in what a stream has sent."""
    events = []
    for block in b"".join(parts).decode().split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in block.splitlines() if line[0] != ":")
        if fields:
            number = int(fields["id"]) if "id" in fields else None
            events.append((number, fields["event"], json.loads(fields["data"])))
    return events


def heard(source, after):
    """What a stream that ends has sent."""

    async def listen():
        return [part async for part in source.listen(after)]

    return told(asyncio.run(listen()))


def fed(count, last=0):
    source = Feed(last)
    for number in range(count):
        source.publish("sample", {"n": number})
    source.close()
    return source


def test_whoever_comes_back_gets_what_was_missed():
    assert heard(fed(5), after=3) == [(4, "sample", {"n": 3}), (5, "sample", {"n": 4})]
    assert heard(fed(5), after=5) == []


@pytest.mark.parametrize("after", [2, 100 + KEPT + 11])
def test_whoever_cannot_go_on_is_told(after):
    source = fed(KEPT + 10, last=100)
    assert heard(source, after) == [(None, "reset", {})]


def test_events_that_come_while_one_listens_are_heard_at_once():
    async def listen():
        source, parts = Feed(), []
        stream = source.listen(0)
        first = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        assert source.listeners() == 1
        await asyncio.to_thread(source.publish, "sample", {"n": 1})
        parts.append(await first)
        source.publish("end", {})
        source.close()
        parts += [part async for part in stream]
        assert source.listeners() == 0
        return told(parts)

    assert asyncio.run(listen()) == [(1, "sample", {"n": 1}), (2, "end", {})]


def test_silence_is_broken_by_a_heartbeat(monkeypatch):
    monkeypatch.setattr(feed, "HEARTBEAT_SECONDS", 0.001)

    async def listen():
        stream = Feed().listen(0)
        try:
            return await anext(stream)
        finally:
            await stream.aclose()

    assert asyncio.run(listen()) == b": still here\n\n"


@pytest.fixture
def stepped():
    return Stepped()


@pytest.fixture
def url(stepped):
    listening = listen("127.0.0.1", 0)
    with serving(stepped.app, listening, stepped.live.feed.close):
        yield url_of(listening)


def events_of(client):
    """All but health and problems, which may come at any time."""
    return (event for event in client.events() if event.kind not in ("health", "problems"))


def test_a_stream_over_http_goes_on_without_a_gap(stepped, url):
    client = StreamClient(url)
    assert client.pipeline()["name"] == "shop"
    stream = events_of(client)
    assert [next(stream).kind for _ in range(2)] == ["settings", "forecast"]
    stepped.cycles(1)
    samples = [next(stream).content["time"] for _ in range(4)]
    stream.close()
    stepped.cycles(1)
    stepped.loop.steering.change("anna", {"paused": True})
    stepped.live.end()
    kinds = []
    for event in events_of(client):
        kinds.append(event.kind)
        if event.kind == "sample":
            samples.append(event.content["time"])
        if event.kind == "end" and len(samples) == 20:
            break
    assert samples == list(range(1, 21))
    assert kinds[-3:] == ["decision", "settings", "end"]
    assert kinds.count("decision") == 3


def test_a_stream_that_starts_after_the_end_says_so(stepped, url):
    stepped.live.end()
    kinds = [event.kind for event in islice(events_of(StreamClient(url)), 3)]
    assert kinds == ["settings", "forecast", "end"]


def test_too_many_streams_are_429(stepped, url, monkeypatch):
    monkeypatch.setattr(control_api, "MOST_STREAMS", 1)
    first = StreamClient(url).events()
    next(first)
    deadline = time.monotonic() + 60
    while not stepped.live.feed.listeners() and time.monotonic() < deadline:
        time.sleep(0.005)
    with pytest.raises(LostError, match="status 429"):
        next(StreamClient(url).events())
    first.close()


def test_a_stream_ends_when_the_service_does(stepped, monkeypatch):
    monkeypatch.setattr(server, "SHUTDOWN_SECONDS", 60)
    listening = listen("127.0.0.1", 0)
    with serving(stepped.app, listening, stepped.live.feed.close):
        stream = StreamClient(url_of(listening)).events()
        next(stream)
        began = time.monotonic()
    assert time.monotonic() - began < 30
    with pytest.raises(LostError):
        list(stream)


def test_nothing_is_lost_between_the_greeting_and_the_stream(stepped, url, monkeypatch):
    greeting = stepped.live.greeting

    def slow_greeting(settings):
        told = greeting(settings)
        stepped.cycles(1)
        return told

    monkeypatch.setattr(stepped.live, "greeting", slow_greeting)
    stream = events_of(StreamClient(url))
    kinds = [event.kind for event in islice(stream, 3)]
    assert kinds == ["settings", "forecast", "sample"]
    stream.close()
