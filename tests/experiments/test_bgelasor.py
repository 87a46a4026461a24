"""BGElasor's algorithms with a forecast that is always right, and costs relative to SPEA's."""

import math

import pytest

from elastream.experiments import EXPERIMENTS, bgelasor_4_5
from elastream.experiments.base import Inputs
from elastream.experiments.curves import panels
from elastream.experiments.known_future import KnownFuture


@pytest.fixture
def outcome(tmp_path, monkeypatch):
    """Two hours that jump up and down, after a day that nobody needs to learn from."""
    monkeypatch.setattr(bgelasor_4_5, "TRAINED", 1)
    monkeypatch.setattr(bgelasor_4_5, "DAYS", 1 / 12)
    monkeypatch.setattr(bgelasor_4_5, "trained_bigru", lambda past, seed: KnownFuture(past))
    values = [30_000 * (1.2 + math.sin(i * 1.7)) for i in range(288 + 24)]
    file = tmp_path / "load.csv"
    file.write_text("time,value\n" + "".join(f"{300 * i},{v}\n" for i, v in enumerate(values)))
    return EXPERIMENTS["bgelasor-4-5"]().run(Inputs({"periodic": str(file)}))


def test_a_perfect_forecast_makes_cba_the_cheapest_and_never_late(outcome):
    found = {
        row.label: result.values
        for row, result in zip(outcome.experiment.rows, outcome.results, strict=True)
    }
    spea, cba = found["SPEA, perfect forecast"], found["CBA, perfect forecast"]
    assert cba["cost"] <= spea["cost"]
    assert cba["latency_ms"] < found["SREA"]["latency_ms"] / 2
    assert found["SREA"]["late_changes"] > cba["late_changes"]
    assert 0 < found["SREA"]["first_cost"] < found["SREA"]["cost"]


def test_costs_are_drawn_relative_to_those_of_spea(outcome):
    own, total = (panel for panel in panels(outcome) if "relative to SPEA" in panel.title)
    (baseline,) = (line for line in total.lines if line.label == "SPEA")
    assert set(baseline.values) == {1.0}
    last = {line.label: line.values[-1] for line in total.lines}
    costs = dict(zip((row.label for row in outcome.experiment.rows), outcome.results, strict=True))
    ratio = costs["CBA"].values["cost"] / costs["SPEA"].values["cost"]
    assert last["CBA"] == pytest.approx(ratio, rel=0.01)
    assert len(own.lines) == 5
    alone = panels(type(outcome)(outcome.experiment.only(["CBA"]), "", outcome.results[2:3]))
    assert alone[1].title == "cost of the epoch"


def test_the_known_future_is_read_from_where_the_history_ends():
    known = KnownFuture([1.0, 2.0, 3.0, 2.0, 3.0, 9.0])
    assert known.predict([1.0, 2.0, 3.0], 2).values.tolist() == [2.0, 3.0]
    assert known.predict([2.0, 3.0, 2.0, 3.0], 2).values.tolist() == [9.0, 9.0]
