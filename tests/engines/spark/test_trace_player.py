import numpy as np
import pytest

from elastream.engines.spark.worker.trace_player import Source


@pytest.fixture
def source():
    return Source(make=None, step=0.5, rates=np.array([10.0, 20.0, 0.0]))


def test_events_come_at_the_rates_of_the_trace(source):
    assert [source.due(seconds) for seconds in (0.0, 0.25, 0.5, 1.0, 1.5, 9.0)] == [
        0, 2, 5, 15, 15, 15,
    ]  # fmt: skip


def test_a_source_knows_when_it_had_sent_so_many(source):
    assert source.seconds_at(0) == 0
    assert source.seconds_at(5) == 0.5
    assert source.seconds_at(10) == 0.75
