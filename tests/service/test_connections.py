"""What clients can do to the service with connections, and what they cannot."""

import json
import resource
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from elastream.service import connections, control_api
from elastream.service.server import listen, serving, url_of
from support.stepped import Stepped
from support.waiting import eventually

DESCRIPTORS = 512
MANY = 700
HALF = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@contextmanager
def served(stepped):
    listening = listen("127.0.0.1", 0)
    with serving(stepped.app, listening, stepped.live.feed.close):
        yield urlsplit(url_of(listening)).port


def ask(port, path="/health", source="127.0.0.1", connection=None):
    """The status of an answer, and how long it took, in seconds."""
    own = connection or HTTPConnection("127.0.0.1", port, 60, source_address=(source, 0))
    began = time.monotonic()
    own.request("GET", path)
    answer = own.getresponse()
    answer.read()
    if connection is None:
        own.close()
    return answer.status, time.monotonic() - began


def is_closed(connection, seconds=60.0):
    connection.settimeout(seconds)
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True
    except TimeoutError:
        return False


@pytest.mark.parametrize("sent", [b"", b"GET", HALF])
def test_a_request_that_does_not_come_ends_the_connection(sent, monkeypatch):
    monkeypatch.setattr(connections, "HEADER_SECONDS", 1.0)
    with served(Stepped()) as port, socket.create_connection(("127.0.0.1", port)) as half:
        half.sendall(sent)
        assert is_closed(half)


def test_a_second_request_that_does_not_come_ends_the_connection_too(monkeypatch):
    monkeypatch.setattr(connections, "HEADER_SECONDS", 1.0)
    with served(Stepped()) as port:
        connection = HTTPConnection("127.0.0.1", port, 60)
        assert ask(port, connection=connection)[0] == 200
        connection.sock.sendall(HALF)
        assert is_closed(connection.sock)
        connection.close()


def test_a_stream_may_last_longer_than_a_request(monkeypatch):
    monkeypatch.setattr(connections, "HEADER_SECONDS", 1.0)
    stepped = Stepped()
    with served(stepped) as port, socket.create_connection(("127.0.0.1", port)) as reader:
        reader.sendall(HALF.replace(b"/health", b"/api/stream") + b"\r\n")
        reader.settimeout(60)
        assert b"200 OK" in reader.recv(100)
        time.sleep(1.5)
        stepped.cycles(1)
        told = b""
        while b"event: sample" not in told:
            part = reader.recv(65_536)
            assert part
            told += part


def test_the_one_that_has_waited_longest_makes_room(monkeypatch):
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 3)
    with served(Stepped()) as port, ExitStack() as opened:
        first, second, third = (
            opened.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(3)
        )
        first.sendall(HALF)
        assert ask(port)[0] == 200
        assert is_closed(first)
        assert not is_closed(second, 0.05)
        third.sendall(HALF + b"\r\n")
        assert b"200 OK" in third.recv(100)


def test_bodies_that_do_not_come_make_room_for_those_who_ask(monkeypatch):
    """Else Kubernetes would take a run for dead whose service somebody keeps busy."""
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 3)
    head = b"POST /api/settings HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{"
    with served(Stepped()) as port, ExitStack() as opened:
        for _ in range(4):
            slow = opened.enter_context(socket.create_connection(("127.0.0.1", port)))
            with suppress(ConnectionError):
                slow.sendall(head)
            time.sleep(0.05)  # Until it has been read.
        for _ in range(5):
            assert ask(port)[0] == 200


def test_one_client_cannot_take_all_streams(monkeypatch):
    monkeypatch.setattr(control_api, "MOST_PER_CLIENT", 2)
    stepped = Stepped()
    with served(stepped) as port, ExitStack() as opened:
        for _ in range(2):
            greedy = HTTPConnection("127.0.0.1", port, 60)
            opened.callback(greedy.close)
            greedy.request("GET", "/api/stream")
            assert greedy.getresponse().status == 200
        eventually(lambda: stepped.live.feed.listeners("127.0.0.1") == 2)
        assert ask(port, "/api/stream")[0] == 429
        other = HTTPConnection("127.0.0.1", port, 60, source_address=("127.0.0.2", 0))
        opened.callback(other.close)
        other.request("GET", "/api/stream")
        assert other.getresponse().status == 200


@pytest.fixture
def run():
    """A simulation with the service in a process that may not open many files."""
    command = [sys.executable, "-m", "elastream", "simulate", "--serve", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--pace", "1", "--td", "60", "--log-format", "json"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS)),
    )
    with process:
        line = process.stderr.readline()
        yield process, urlsplit(line.split('"url": "')[1].partition('"')[0]).port
        process.kill()


def test_half_open_connections_disturb_neither_other_clients_nor_the_pipeline(run):
    process, port = run
    before = open_files(process)
    longest, most = 0.0, 0
    with ExitStack() as opened:
        for number in range(MANY):
            half = opened.enter_context(socket.create_connection(("127.0.0.1", port), 60))
            with suppress(ConnectionError):  # Another one has taken its place.
                half.sendall(HALF)
            if number % 50 == 0:
                status, seconds = ask(port)
                assert status == 200
                longest, most = max(longest, seconds), max(most, open_files(process))
        samples = last_sample(port)
        eventually(lambda: last_sample(port) > samples + 2)
    assert longest < 8.0, "as long as the server waits for a half"
    assert most < DESCRIPTORS - 50
    eventually(lambda: open_files(process) < before + 5)
    process.terminate()
    assert process.stderr.read().count("\n") < 10


def open_files(process):
    """How many a process has open; 0 where nobody says."""
    folder = Path(f"/proc/{process.pid}/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0


def last_sample(port):
    connection = HTTPConnection("127.0.0.1", port, 60)
    connection.request("GET", "/api/history?seconds=5")
    times = json.load(connection.getresponse())["time"]
    connection.close()
    return times[-1] if times else 0.0
