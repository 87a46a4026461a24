import dataclasses
from pathlib import Path

import numpy as np
import pytest

from elastream.core.stats import (
    IntervalStats,
    OperatorStats,
    ReplicaStats,
    SourceStats,
    vocabulary,
)
from elastream.errors import InvalidInputError


def operator(**changes):
    stats = OperatorStats(received=100, processed=80, emitted=40, queued=20, busy=16, active=2)
    return dataclasses.replace(stats, **changes)


def test_rates_follow_from_counts():
    assert operator().execution_time == 0.2
    assert operator().selectivity == 0.5


@pytest.mark.parametrize(("busy", "active", "expected"), [(16, 2, 0.4), (60, 2, 1.0), (5, 0, 0.25)])
def test_the_utilization_of_an_operator_is_at_most_1(busy, active, expected):
    assert operator(busy=busy, active=active).utilization(20.0) == expected


def test_an_idle_operator_tells_neither_time_nor_selectivity():
    idle = operator(processed=0, emitted=0, busy=0)
    assert idle.execution_time is None
    assert idle.selectivity is None


def test_the_input_is_that_of_all_sources():
    sources = {"a": SourceStats(30, 0, (10, 20)), "b": SourceStats(12, 0, (4, 8))}
    stats = IntervalStats(0, 30.0, sources, {}, {})
    assert stats.input == 42
    np.testing.assert_array_equal(stats.samples, [14, 28])


def test_utilization_is_measured_per_replica():
    replicas = {0: ReplicaStats(processed=60, busy=12), 3: ReplicaStats(processed=20, busy=4)}
    stats = IntervalStats(0, 20.0, {}, {"op": operator(replicas=replicas)}, {})
    assert stats.utilization("op") == {0: pytest.approx(0.6), 3: pytest.approx(0.2)}


def test_statistics_cannot_be_changed():
    edges = {("a", "b"): 1.0}
    stats = IntervalStats(0, 30.0, {}, {}, edges)
    edges["a", "b"] = 2.0
    assert stats.edges["a", "b"] == 1.0
    with pytest.raises(TypeError):
        stats.edges["a", "b"] = 3.0  # type: ignore[index]
    with pytest.raises(dataclasses.FrozenInstanceError):
        stats.interval = 1  # type: ignore[misc]


def test_an_interval_has_a_length():
    with pytest.raises(InvalidInputError, match="an interval of 0 s"):
        IntervalStats(0, 0, {}, {}, {})


def test_the_vocabulary_has_a_unit_and_a_meaning_for_every_quantity():
    words = dict(vocabulary())
    assert words["OperatorStats.received"].symbol == "λ_i^r(t)"
    assert words["IntervalStats.edges"].unit == "events"
    assert all(quantity.meaning for quantity in words.values())


def test_the_documented_vocabulary_is_the_real_one():
    page = (Path(__file__).parents[2] / "docs" / "vocabulary.md").read_text()
    rows = [line.split("|")[1].strip(" `") for line in page.splitlines() if line.startswith("| `")]
    assert rows == [name for name, _ in vocabulary()]
    for name, (unit, symbol, meaning) in vocabulary():
        escaped = symbol.replace("|", r"\|") or "-"
        assert f"| `{name}` | {escaped} | {unit or '-'} | {meaning} |" in page
