"""The only driver of a state, without a broker."""

import threading

import pytest

from elastream.engines.spark.backends.base import Ownership
from elastream.engines.spark.backends.kafka import KafkaBackend, backend, housekeeping
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


def test_signs_of_life_are_given_as_soon_as_the_brokers_answer(monkeypatch):
    renewed, opened = threading.Event(), []

    class AwayAtFirst(Gone):
        def __init__(self, place):
            opened.append(place)
            if len(opened) < 3:
                raise BackendUnavailableError("no answer")

        def append(self, do, **arguments):
            renewed.set()
            return True

    monkeypatch.setattr(housekeeping, "Journal", AwayAtFirst)
    monkeypatch.setattr(housekeeping, "RENEW_SECONDS", 0.01)
    keeper = housekeeping.Housekeeping(KafkaBackend.parse("here:1/orders").place, "me", Ownership())
    keeper.start()
    try:
        assert renewed.wait(10)
    finally:
        keeper.stop()
    assert len(opened) == 3
