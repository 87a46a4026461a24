"""The service as a user starts and stops it."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from elastream.errors import InvalidInputError
from elastream.predictors.remote import RemotePredictor
from elastream.service.access import Access
from elastream.service.server import listen

TOKEN = "correct-horse-battery"


@pytest.fixture
def started() -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-m", "elastream", "serve", "--port", "0", "--models", "lr,basic"]
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "ELASTREAM_TOKEN": TOKEN},
    )
    with process:
        assert process.stderr is not None
        found = re.search(r"http://127\.0\.0\.1:\d+", process.stderr.readline())
        assert found
        yield process, found[0]
        process.kill()


def test_it_answers_and_ends_at_ctrl_c(
    started: tuple[subprocess.Popen[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    process, url = started
    with_token = RemotePredictor(url, "lr", token=TOKEN, timeout=30)
    assert with_token.predict([10, 20, 30], 2).values.tolist() == [40, 50]
    without = RemotePredictor(url, "lr", timeout=30).predict([10, 20, 30], 2)
    assert without.fallback is not None
    assert "status 401: this service requires a token" in without.fallback
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert out == ""
    assert err == "elastream: stopped\n"


def test_an_answer_does_not_wait_for_the_client_to_confirm_its_header() -> None:
    with listen("127.0.0.1", 0) as listening:
        assert listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_another_address_wants_a_token() -> None:
    assert Access.at("127.0.0.1", {}).loopback
    assert Access.at("::1", {}).loopback
    assert Access.at("0.0.0.0", {"ELASTREAM_TOKEN": TOKEN}).tokens == {"token": TOKEN}
    for host in ("0.0.0.0", "::", "10.1.2.3", "example.org"):
        with pytest.raises(InvalidInputError, match="so the service requires a token"):
            Access.at(host, {})


@pytest.mark.parametrize("token", ["", "short", "ü" * 20])
def test_a_token_that_is_easy_to_guess_is_refused(token: str) -> None:
    with pytest.raises(InvalidInputError, match="a token must have at least 16 characters"):
        Access.at("0.0.0.0", {"ELASTREAM_TOKEN": token})


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(
            InvalidInputError,
            match=f"cannot listen on 127.0.0.1, port {port}: .*; choose another port",
        ):
            listen("127.0.0.1", port)


def test_an_address_of_another_machine_is_named() -> None:
    with pytest.raises(InvalidInputError, match=r"cannot listen on 192\.0\.2\.1, port 0: "):
        listen("192.0.2.1", 0)
