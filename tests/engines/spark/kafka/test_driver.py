"""The only driver of a state, without a broker."""

import pytest

from elastream.engines.spark.backends.kafka import KafkaBackend, backend
from elastream.errors import BackendUnavailableError


class Gone:
    """A journal whose brokers are away when its driver leaves."""

    def __init__(self, place):
        pass

    def append(self, do, **arguments):
        if do == "disown":
            raise BackendUnavailableError("no answer")

    def close(self):
        pass


class Idle:
    def __init__(self, place, process, ownership):
        pass

    def start(self):
        pass

    def stop(self):
        pass


def test_a_driver_that_cannot_sign_off_does_not_hide_why_it_ended(monkeypatch, caplog):
    monkeypatch.setattr(backend.topics, "make", lambda place, lanes: None)
    monkeypatch.setattr(backend, "Journal", Gone)
    monkeypatch.setattr(backend, "Housekeeping", Idle)
    with pytest.raises(ZeroDivisionError), KafkaBackend.parse("here:1/orders").own():
        raise ZeroDivisionError
    assert "the next run with it starts 6 s later: no answer" in caplog.text
