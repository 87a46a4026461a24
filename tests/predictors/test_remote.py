"""The client against a plain HTTP server that answers as told."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from elastream.errors import InvalidInputError
from elastream.predictors.remote import RemotePredictor

GOOD = json.dumps({"model": "lr", "predictions": [4, 5], "mean": 4.5, "elapsed_ms": 1}).encode()
PATIENCE = 60.0


class Script(ThreadingHTTPServer):
    """Answers with each of `answers` in turn, the last one for ever; keeps what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: list[tuple[int, bytes]] = [(200, GOOD)]
        self.asked: list[tuple[str, dict[str, object], str | None]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Script

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, body, self.headers["Authorization"]))
        self.server.gate.wait(PATIENCE)
        answers = self.server.answers
        status, answer = answers.pop(0) if len(answers) > 1 else answers[0]
        with suppress(BrokenPipeError):
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Script]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Script() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.gate.set()
        server.shutdown()
        thread.join()


def remote(service: Script, model: str = "lr") -> RemotePredictor:
    return RemotePredictor(service.url, model, timeout=PATIENCE)


def test_a_remote_model_looks_like_a_local_one(service: Script) -> None:
    forecast = remote(service).predict([1, 2, 3], 2)
    assert (forecast.model, forecast.values.tolist(), forecast.fallback) == ("lr", [4, 5], None)
    assert service.asked == [("/predict/lr", {"samples": [1, 2, 3], "horizon": 2}, None)]


def test_the_token_and_the_name_are_sent_as_they_are(service: Script) -> None:
    RemotePredictor(service.url + "/", "a/b", token="secret", timeout=PATIENCE).predict([1, 2], 2)
    assert service.asked[0][0] == "/predict/a%2Fb"
    assert service.asked[0][2] == "Bearer secret"


def test_what_the_service_fell_back_to_is_told(service: Script) -> None:
    answer = {"model": "basic", "predictions": [2, 3], "fallback": "rf took longer than 1 s"}
    service.answers = [(200, json.dumps(answer).encode())]
    forecast = remote(service, "rf").predict([1, 2, 3], 2)
    assert (forecast.model, forecast.fallback) == ("basic", "rf took longer than 1 s")


def test_a_failed_request_is_made_once_more(service: Script) -> None:
    service.answers = [(503, b""), (200, GOOD)]
    assert remote(service).predict([1, 2, 3], 2).model == "lr"
    assert len(service.asked) == 2


@pytest.mark.parametrize(
    ("answer", "asked", "reason"),
    [
        ((500, b"oh"), 2, "status 500"),
        ((404, b'{"detail": "unknown predictor"}'), 1, "status 404: unknown predictor"),
        ((401, b'{"detail": "a token"}'), 1, "status 401: a token"),
        ((200, b"not json"), 2, "Expecting value"),
        ((200, b"[]"), 2, "the answer is not a forecast"),
        ((200, b'{"model": "lr", "predictions": [1]}'), 2, "the answer is not 2 samples"),
        ((200, b'{"model": "lr", "predictions": [1, NaN]}'), 2, "the answer is not 2 samples"),
        ((200, b'{"model": "lr", "predictions": [1, -1]}'), 2, "the answer is not 2 samples"),
        ((200, b'{"model": "lr", "predictions": "x"}'), 2, "could not convert string to float"),
    ],
)
def test_no_good_answer_falls_back_and_says_so(
    service: Script, answer: tuple[int, bytes], asked: int, reason: str
) -> None:
    service.answers = [answer]
    forecast = remote(service).predict([1, 2, 3], 2)
    assert (forecast.model, forecast.values.tolist()) == ("basic", [2, 3])
    assert forecast.fallback is not None
    assert forecast.fallback.startswith(f"remote lr failed: {reason}")
    assert len(service.asked) == asked


def test_no_answer_in_time_falls_back_and_says_so(service: Script) -> None:
    service.gate.clear()
    forecast = RemotePredictor(service.url, "lr", timeout=0.1).predict([1, 2, 3], 2)
    assert (forecast.model, forecast.fallback) == ("basic", "remote lr failed: timed out")


def test_no_service_falls_back_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as once:
        port = once.getsockname()[1]
    forecast = RemotePredictor(f"http://127.0.0.1:{port}", "lr").predict([1, 2, 3], 2)
    assert forecast.fallback is not None
    assert "refused" in forecast.fallback


def test_a_bad_history_is_not_sent(service: Script) -> None:
    with pytest.raises(InvalidInputError, match="negative"):
        remote(service).predict([1, -2], 2)
    assert service.asked == []


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"url": "file:///etc/hosts"}, "must be an http or https address"),
        ({"timeout": 0}, "must be more than 0 seconds"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        RemotePredictor(**{"url": "http://127.0.0.1:1", "model": "lr", **wrong})  # type: ignore[arg-type]
