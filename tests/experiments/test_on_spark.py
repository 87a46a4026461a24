"""Experiments on Spark: cells that are kept and gone on with, and one cell of each, made small."""

import csv
import re
from dataclasses import replace

import pytest

from elastream.errors import InvalidInputError
from elastream.experiments import EXPERIMENTS, bgelasor_4_5, cells, on_spark
from elastream.experiments.base import Inputs
from elastream.experiments.on_spark import SparkExperiment
from elastream.experiments.report import write_outcome, write_report
from elastream.experiments.runs import in_simulator
from elastream.experiments.tables import markdown, shown


def trace_file(folder, seconds, rate, step=1):
    path = folder / "rates.csv"
    rows = [f"{step * i},{step * (rate + rate * (i % 10) / 20)}\n" for i in range(seconds // step)]
    path.write_text("time,value\n" + "".join(rows))
    return str(path)


@pytest.fixture
def asked(tmp_path):
    """PRESPS table 3 on two minutes."""
    inputs = Inputs({"spiky": trace_file(tmp_path, 120, 500)}, speed=2.0)
    return SparkExperiment.of(EXPERIMENTS["presps-3"](), inputs, tmp_path)


@pytest.fixture
def simulated(monkeypatch):
    """Runs that ask for Spark get the simulator, and are counted."""
    ran = []

    def body(session):
        return lambda run, after_each: ran.append(run) or in_simulator(run, after_each)

    monkeypatch.setattr(on_spark, "OnSpark", body)
    return ran


def go(asked, begin=lambda cell: None):
    return asked.run(lambda steps: None, begin, session="the one of the tests")


def test_a_stopped_run_goes_on_with_the_missing_cells(asked, simulated):
    def stopped(cell):
        if cell.row == "DABS":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        go(asked, stopped)
    assert [cell.row for cell in asked.missing] == ["DABS"]
    outcome = go(asked)
    assert len(simulated) == 2
    assert asked.missing == []
    assert go(asked) == outcome
    assert len(simulated) == 2


def test_a_cell_is_the_same_after_it_was_stored(asked, simulated):
    first = asked.cells[0]
    measured = first.runs.measure_one(first.seed, in_simulator, lambda steps: None)
    stored = go(asked).results[0]
    assert stored.values == measured.values
    assert [list(curve.values) for curve in stored.curves] == [
        list(curve.values) for curve in measured.curves
    ]


def test_published_simulated_and_measured_stand_side_by_side(asked, simulated, tmp_path):
    outcome = go(asked)
    outcome = replace(outcome, simulated=asked.simulated())
    bare, costly = (of[0].values["latency_ms"] for of in (outcome.results, outcome.simulated))
    assert costly > bare + 20, "the Spark engine adds a unit and a hop to each of four operators"
    write_outcome(outcome, tmp_path / "presps-3")
    text = (tmp_path / "presps-3" / "table.md").read_text()
    assert "Published / simulated / on Spark, on" in text
    line = next(line for line in text.splitlines() if "PRESPS |" in line)
    assert all(cell.count(" / ") == 2 for cell in line.split("|")[2:-1])
    rows = csv.DictReader((tmp_path / "presps-3" / "table.csv").read_text().splitlines())
    (latency,) = (row for row in rows if (row["row"], row["measure"]) == ("PRESPS", "latency_ms"))
    assert [float(latency[name]) for name in ("published", "simulated", "on_spark")] == [
        2098.91,
        costly,
        bare,
    ]
    report = write_report([outcome], tmp_path).read_text()
    assert f"<small>2,099; simulated {shown(costly)}</small>" in report


def test_cells_of_another_input_do_not_count(asked, simulated, tmp_path):
    go(asked)
    other = Inputs({"spiky": trace_file(tmp_path, 120, 600)}, speed=2.0)
    assert len(replace(asked, inputs=other).missing) == 2
    assert len(replace(asked, inputs=replace(other, speed=3.0)).missing) == 2


def test_a_cell_says_where_it_comes_from_and_a_broken_one_is_refused(asked, simulated, tmp_path):
    go(asked)
    (path,) = tmp_path.glob("twitter-autoscale*.json")
    assert '"commit": "' in path.read_text()
    path.write_text("{")
    with pytest.raises(InvalidInputError, match=r"twitter-autoscale.*json: is not a cell"):
        asked.missing  # noqa: B018


def test_cells_of_different_code_are_told_apart(asked, simulated, monkeypatch):
    monkeypatch.setattr(cells, "commit", lambda: "old")
    replace(asked, experiment=asked.experiment.only(["PRESPS"])).run(
        lambda steps: None, lambda cell: None, session="the one of the tests"
    )
    monkeypatch.setattr(cells, "commit", lambda: "new")
    text = markdown(go(asked))
    assert "Measured with different commits: PRESPS with old; DABS with new." in text
    alone = replace(asked, experiment=asked.experiment.only(["DABS"]))
    assert "Measured with commit new." in markdown(go(alone))


def test_the_commit_is_that_of_the_package():
    assert re.fullmatch(r"[0-9a-f]{12,}\+?|\d+\.\d+.*", cells.commit())


def test_experiments_share_the_runs_that_they_have_in_common(asked, simulated):
    go(asked)
    table_4 = SparkExperiment.of(EXPERIMENTS["pa-sps-4"](), asked.inputs, asked.folder)
    assert [cell.row for cell in table_4.missing] == ["PA-SPS"]
    models = SparkExperiment.of(
        EXPERIMENTS["pa-sps-2"]().only(["ANN", "Basic"]), asked.inputs, asked.folder
    )
    go(table_4)
    assert [cell.row for cell in models.missing] == ["Basic"]
    figure, equations = (
        {
            (str(cell.runs.what), cell.seed)
            for cell in SparkExperiment.of(EXPERIMENTS[name]().only([row]), Inputs(), None).cells
        }
        for name, row in (("dabs-storm-16", "AUTOSCALE+"), ("autoscale-plus-16", "as published"))
    )
    assert len(equations) == 2
    assert equations < figure


def test_fewer_or_more_runs_and_another_grouping_are_said_in_the_output(asked, simulated):
    go(asked)
    twice = replace(asked, inputs=replace(asked.inputs, runs=2))
    assert [(cell.row, cell.seed) for cell in twice.missing] == [("PRESPS", 1), ("DABS", 1)]
    outcome = go(twice)
    assert "; on Spark; speed 2; 2 runs of each row, not the usual 1" in outcome.source
    assert outcome.results[0].spread
    shuffled = replace(asked, inputs=replace(asked.inputs, grouping="shuffle"))
    assert len(shuffled.missing) == 2
    assert "grouping shuffle everywhere" in go(shuffled).source
    ran = simulated[-1].application.topology
    assert {operator.router.name for operator in ran.operators} == {"shuffle"}
    figure = EXPERIMENTS["dabs-storm-12"]().only(["AUTOSCALE+"])
    assert len(SparkExperiment.of(figure, Inputs(runs=1), asked.folder).cells) == 1
    with pytest.raises(InvalidInputError, match="runs 0"):
        Inputs(runs=0)


def test_what_only_the_simulator_can_do_is_left_out_or_refused(tmp_path):
    table_3 = SparkExperiment.of(EXPERIMENTS["pa-sps-3"](), Inputs(), tmp_path)
    assert [row.label for row in table_3.experiment.rows] == ["PA-SPS", "r = 1", "r = 4", "r = 8"]
    with pytest.raises(InvalidInputError, match="need the simulator"):
        SparkExperiment.of(
            EXPERIMENTS["pa-sps-3"]().only(["r = 1, time-out 30 s"]), Inputs(), tmp_path
        )
    with pytest.raises(InvalidInputError, match="runs no pipeline"):
        SparkExperiment.of(EXPERIMENTS["bgelasor-1"](), Inputs(), tmp_path)


def test_none_takes_more_than_100_minutes():
    for name in EXPERIMENTS:
        experiment = EXPERIMENTS[name]()
        if experiment.spark_speed is not None:
            inputs = Inputs(speed=experiment.spark_speed)
            all_of_it = SparkExperiment.of(experiment, inputs, None).cells
            assert sum(cell.seconds for cell in all_of_it) < 100 * 60


SMALL = {
    # Experiment: row, seconds of the trace, events per second, speed.
    "pa-sps-2": ("ANN", 90, 600, 15),
    "pa-sps-3": ("r = 4", 60, 600, 10),
    "pa-sps-4": ("DABS", 120, 1200, 20),
    "pa-sps-5": ("r = 5", 60, 400, 10),
    "pa-sps-6": ("LR", 60, 600, 10),
    "pa-sps-7": ("BASIC", 60, 600, 10),
    "pa-sps-8": ("RF", 60, 600, 10),
    "presps-3": ("PRESPS", 60, 600, 10),
    "dabs-storm-12": ("incremental", 60, 300, 10),
    "dabs-storm-13": ("AUTOSCALE+", 60, 300, 10),
    "dabs-storm-14": ("AUTOSCALE+", 60, 300, 10),
    "dabs-storm-15": ("AUTOSCALE+, shuffle", 60, 300, 10),
    "dabs-storm-16": ("rlearning", 60, 200, 10),
    "dabs-storm-17": ("AUTOSCALE+", 60, 200, 10),
    "autoscale-plus-12": ("a core each (equations 7 to 9)", 60, 300, 10),
    "autoscale-plus-16": ("as published", 60, 200, 10),
}
QUICK = ("pa-sps-2", "pa-sps-4", "dabs-storm-14")
"""The predictive system, one that restarts, and a grouping that looks at values."""


@pytest.mark.parametrize(
    "name",
    [each if each in QUICK else pytest.param(each, marks=pytest.mark.long) for each in SMALL],
)
def test_one_cell_of_each_on_spark(name, spark_session, tmp_path):
    row, seconds, rate, speed = SMALL[name]
    experiment = EXPERIMENTS[name]()
    (label,) = [each.label for each in experiment.rows if each.label.upper() == row.upper()]
    experiment = experiment.only([label])
    rates = trace_file(tmp_path, seconds, rate)
    inputs = Inputs(dict.fromkeys(experiment.traces, rates), speed=float(speed), scale=0.5)
    asked = SparkExperiment.of(experiment, inputs, tmp_path)
    cell = asked.cells[0]
    found = cell.runs.measure_one(cell.seed, on_spark.OnSpark(spark_session), lambda steps: None)
    assert 0 < found.values["processed_ratio"] <= 1.0
    assert found.values["latency_ms"] > 0
    assert {curve.title for curve in found.curves}


@pytest.mark.long
def test_bgelasor_on_spark(spark_session, tmp_path, monkeypatch):
    monkeypatch.setattr(bgelasor_4_5, "TRAINED", 1)
    monkeypatch.setattr(bgelasor_4_5, "DAYS", 0.1)
    monkeypatch.setattr(bgelasor_4_5, "EPOCHS", 1)
    rates = trace_file(tmp_path, round(1.1 * 86_400), 400, step=300)
    inputs = Inputs({"periodic": rates}, speed=1500.0)
    experiment = EXPERIMENTS["bgelasor-4-5"]().only(["CBA"])
    outcome = SparkExperiment.of(experiment, inputs, tmp_path).run(
        lambda steps: None, lambda cell: None, spark_session
    )
    assert outcome.measured()[0]["cost"] > 0
