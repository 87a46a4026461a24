"""Experiments end to end, with one that needs no slow model."""

import csv
import json
import re
from contextlib import nullcontext
from importlib import import_module

import pytest

from elastream.experiments import cells, frontier, on_spark
from elastream.experiments.runs import in_simulator


@pytest.fixture
def flat(tmp_path):
    """Two minutes, as an option."""
    file = tmp_path / "flat.csv"
    file.write_text("time,value\n" + "".join(f"{second},500\n" for second in range(120)))
    return f"spiky={file}"


def test_experiments_are_listed(elastream):
    ended = elastream("experiment", "list")
    assert ended.code == 0
    assert "pa-sps-2" in ended.out


def test_a_run_leaves_tables_figures_and_a_report(elastream, tmp_path, flat):
    ended = elastream("experiment", "run", "presps-3", "--out", tmp_path, "--trace", flat)
    assert ended.code == 0
    assert "| PRESPS | 0.562 / " in ended.out
    folder = tmp_path / "presps-3"
    rows = list(csv.DictReader((folder / "table.csv").read_text().splitlines()))
    assert {row["row"] for row in rows} == {"PRESPS", "DABS"}
    assert all(row["published"] and row["measured"] for row in rows)
    assert (folder / "table.md").read_text().startswith("# PRESPS table 3")
    assert (folder / "figure.png").stat().st_size > 10_000
    panels = re.search(r"const panels = (.*);", (folder / "figure.html").read_text()).group(1)
    assert json.loads(panels)[0]["title"] == "active replicas"
    report = (tmp_path / "report.html").read_text()
    assert "0.5617" not in report
    assert "<small>0.562</small>" in report
    assert "data:image/png;base64," in report


def test_a_file_can_stand_for_a_trace(elastream, tmp_path, flat):
    ended = elastream("experiment", "run", "presps-3", "--out", tmp_path, "--trace", flat)
    assert ended.code == 0
    assert f"on {flat.removeprefix('spiky=')}" in ended.out


def test_all_leaves_out_what_trains_unless_asked(elastream, monkeypatch, tmp_path):
    ran = []
    monkeypatch.setattr(
        import_module("elastream.cli.commands.experiment"),
        "_run",
        lambda experiments, inputs, out: ran.append([each.name for each in experiments]),
    )
    elastream("experiment", "all", "--out", tmp_path)
    elastream("experiment", "all", "--out", tmp_path, "--training")
    without, everything = ran
    assert set(everything) - set(without) == {"bgelasor-1", "bgelasor-4-5"}
    assert len(without) == 20


def test_one_row_can_be_run_alone_and_faster(elastream, tmp_path, flat):
    options = ("--row", "PRESPS", "--speed", 4, "--trace", flat)
    ended = elastream("experiment", "run", "presps-3", "--out", tmp_path, *options)
    assert ended.code == 0
    assert "| PRESPS |" in ended.out
    assert "| DABS |" not in ended.out
    unknown = elastream("experiment", "run", "presps-3", "--out", tmp_path, "--row", "DAPS")
    assert unknown.code == 2
    assert "did you mean 'DABS'" in unknown.err


def test_runs_on_spark_leave_three_columns_and_say_whose_code_it_was(
    elastream, monkeypatch, tmp_path, flat
):
    monkeypatch.setattr(on_spark, "OnSpark", lambda session: in_simulator)
    monkeypatch.setattr(on_spark, "_session", lambda first, given: nullcontext())
    monkeypatch.setattr(cells, "commit", lambda: "before")
    command = ("experiment", "run", "presps-3", "--out", tmp_path, "--engine", "spark")
    command += ("--row", "PRESPS", "--grouping", "shuffle", "--runs", 1, "--trace", flat)
    first = elastream(*command)
    assert first.code == 0
    assert "other code" not in first.err
    monkeypatch.setattr(cells, "commit", lambda: "now")
    again = elastream(*command)
    assert "1 of 1 runs are already done" in again.err
    assert "some runs were made with other code (before)" in again.err
    assert "Published / simulated / on Spark, on /" in again.out
    assert again.out.strip() == (tmp_path / "spark/presps-3/table.md").read_text().strip()
    assert "; simulated " in (tmp_path / "spark/report.html").read_text()


def test_what_has_no_pipeline_cannot_run_on_spark(elastream, tmp_path):
    ended = elastream("experiment", "run", "bgelasor-1", "--out", tmp_path, "--engine", "spark")
    assert ended.code == 2
    assert "there is nothing to run on Spark" in ended.err


def test_what_cannot_be_run_is_refused(elastream, tmp_path):
    unknown = elastream("experiment", "run", "pa-sps-9", "--out", tmp_path)
    assert unknown.code == 2
    assert "unknown experiment 'pa-sps-9'" in unknown.err
    misspelt = elastream("experiment", "run", "frontir")
    assert "did you mean 'frontier'?" in misspelt.err
    wrong = elastream("experiment", "run", "presps-3", "--trace", "twitter.csv")
    assert wrong.code == 2
    assert "--trace twitter.csv: must be NAME=FILE" in wrong.err


@pytest.fixture
def two_files(tmp_path):
    """Two recorded inputs of ten seconds, as options."""
    options = []
    for name, rate in (("calm", 500), ("busy", 3000)):
        file = tmp_path / f"{name}.csv"
        file.write_text("time,value\n" + "".join(f"{second},{rate}\n" for second in range(10)))
        options += ["--trace", f"{name}={file}"]
    return options


def test_the_frontier_takes_any_recorded_inputs(elastream, tmp_path, two_files, monkeypatch):
    few = [each for each in frontier.contenders() if each.label in ("slo auto 0.25 s", "srea 5 s")]
    monkeypatch.setattr(frontier, "contenders", lambda: few)
    ended = elastream("experiment", "run", "frontier", "--out", tmp_path, *two_files)
    assert ended.code == 0
    for name in ("calm", "busy"):
        assert f"| {name} | slo auto 0.25 s |" in ended.out
        assert re.search(rf"- {name}: .* dominates", ended.out)
        assert (tmp_path / "frontier" / f"{name}.png").stat().st_size > 1000
    assert (tmp_path / "frontier" / "table.md").read_text() in ended.out


@pytest.mark.parametrize("name", ["a/b", "../b", "."])
def test_a_name_that_is_a_path_is_refused(elastream, tmp_path, flat, name):
    option = flat.replace("spiky", name, 1)
    ended = elastream("experiment", "run", "frontier", "--out", tmp_path, "--trace", option)
    assert ended.code == 2
    assert "NAME names a picture" in ended.err


def test_a_silent_input_is_refused(elastream, tmp_path):
    file = tmp_path / "silent.csv"
    file.write_text("time,value\n" + "".join(f"{second},0\n" for second in range(10)))
    ended = elastream("experiment", "run", "frontier", "--trace", f"night={file}")
    assert ended.code == 2
    assert f"--trace night={file}: no events in the first 600 s" in ended.err


@pytest.mark.parametrize("name", ["frontier", "presps-3"])
def test_where_nothing_can_be_written_nothing_is_run(elastream, tmp_path, flat, name):
    (tmp_path / "file").write_text("")
    out = tmp_path / "file" / "out"
    ended = elastream("experiment", "run", name, "--out", out, "--trace", flat)
    assert ended.code == 2
    assert f"--out {out}" in ended.err
    assert "cannot be written: Not a directory" in ended.err
    assert ended.out == ""


def test_two_inputs_of_one_name_are_refused(elastream, two_files):
    same = [option.replace("calm=", "busy=") for option in two_files]
    ended = elastream("experiment", "run", "frontier", *same)
    assert ended.code == 2
    assert "give every trace a name of its own" in ended.err


@pytest.mark.parametrize(
    "option",
    [
        ("--engine", "spark"),
        ("--speed", 4),
        ("--scale", 0.5),
        ("--row", "slo"),
        ("--runs", 2),
        ("--grouping", "osg"),
    ],
)
def test_the_frontier_refuses_what_it_does_not_take(elastream, tmp_path, two_files, option):
    ended = elastream("experiment", "run", "frontier", "--out", tmp_path, *two_files, *option)
    assert ended.code == 2
    assert f"{option[0]}: 'frontier' does not take it; it takes --trace" in ended.err
