import math
from dataclasses import replace

import pytest

from elastream.control.run import inputs_per_interval
from elastream.errors import InvalidInputError
from elastream.experiments import EXPERIMENTS
from elastream.experiments.base import Claim, Experiment, Inputs
from elastream.experiments.tables import Verdict, markdown, orderings
from elastream.workloads import TRACES
from elastream.workloads.synthetic import ramp


@pytest.fixture
def short(tmp_path):
    """A climb and a fall, in five minutes."""
    rates = [1500 + 1000 * math.sin(second / 40) for second in range(300)]
    file = tmp_path / "short.csv"
    file.write_text("time,value\n" + "".join(f"{i},{rate}\n" for i, rate in enumerate(rates)))
    return Inputs({"spiky": str(file)})


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_is_what_its_name_says_and_can_be_made(name):
    experiment = EXPERIMENTS[name]()
    assert experiment.name == name
    assert set(experiment.traces) <= set(TRACES)
    assert experiment.steps(Inputs()) > 0
    for row in experiment.rows:
        assert set(row.published) <= set(experiment.measures)


def test_dabs_loses_events_by_its_restarts(short):
    outcome = EXPERIMENTS["presps-3"]().run(short)
    presps, dabs = outcome.measured()
    assert presps["processed_ratio"] >= 0.985
    assert dabs["processed_ratio"] < presps["processed_ratio"] - 0.02


def test_published_orderings_and_claims_are_checked(short):
    experiment = EXPERIMENTS["presps-3"]()
    experiment = replace(experiment, claims=(Claim("processed_ratio", "PRESPS", "DABS"),))
    told = orderings(experiment.run(short))
    assert len(told) == 5
    (wrong,) = [text for text, what in told if what is Verdict.REVERSED and "Processed" in text]
    assert wrong.startswith("Processed events: PRESPS below DABS (0.999, 0.828); measured")
    assert ("Saved resources: DABS below PRESPS (0.396, 0.562)") in told[0][0]
    assert told[0][1] is Verdict.REPRODUCED


def test_ties_and_calibrated_cells_do_not_count_as_come_out(short):
    experiment = EXPERIMENTS["presps-3"]()
    first, second = experiment.rows
    same = replace(
        experiment, rows=(first, replace(first, label="again", published=second.published))
    )
    assert {what for _, what in orderings(same.run(short))} == {Verdict.TIED}
    assert "We reproduced 0 of 4 published orderings; 4 were ties" in markdown(same.run(short))
    calibrated = replace(second, calibrated=frozenset({"saved_resources"}))
    told = orderings(replace(experiment, rows=(first, calibrated)).run(short))
    assert len(told) == 3


def test_the_future_of_the_oracle_adds_up_to_the_trace():
    future = inputs_per_interval(ramp(), 45.0)
    assert len(future) == 14
    assert sum(future) == pytest.approx(ramp().values.sum())


def test_a_measure_must_be_one_that_there_is():
    with pytest.raises(InvalidInputError, match="no measures"):
        Experiment("odd", "", "spiky", ("beauty",), ())


def test_processors_in_use_are_those_of_the_paper(short):
    outcome = EXPERIMENTS["pa-sps-5"]().only(["r = 5"]).run(short)
    # Of events that reach A, B and E, four in five reach F, and so on: 5.08 operators of 0.8 ms.
    (found,) = (result.values["cpu_percent"] for result in outcome.results)
    rate = inputs_per_interval(short.trace("spiky"), 300.0)[0] / 300
    assert found == pytest.approx(100 * rate * 5.08 * 0.8e-3 / 56, rel=0.01)
    assert outcome.experiment.rows[0].published["cpu_percent"] == 14.66
