"""How benchmarks are started, what is kept of them, and how a step back is seen."""

import ast
import importlib.util
import json
import runpy
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from benchmarks import __main__ as make_bench
from benchmarks import acceptance, command, fast_clock, forecasts, measure, record
from benchmarks.__main__ import BY_NAME
from benchmarks.giving_up import GivenUp, Hope
from benchmarks.measure import Figure, Section

from elastream.engines.simulation import Arrivals
from elastream.experiments.frontier import Point, Race, contenders
from elastream.predictors.basic import Basic
from elastream.running.choices import in_time
from elastream.workloads.traces import evenly

ROOT = Path(__file__).parent.parent


def section(latency="80 ms", rate="1,000/s", more="3"):
    figures = Figure("latency", latency), Figure("throughput", rate), Figure("lanes", more)
    return Section("spark", figures)


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ("100 ms", "80 ms", 0.2),
        ("1,000/s", "1,500/s", 0.5),
        ("40 µs", "60 µs", -0.5),
        ("0.2% of a core", "0.1% of a core", 0.5),
        ("10 of 10", "9 of 10", None),
        ("none", "3 ms", None),
        ("900, 1,000 ms", "900, 1,500 ms", -0.5),
    ],
)
def test_which_way_is_better_follows_from_the_unit(before, after, change):
    assert record.change_of(before, Figure("", after)) == change


@pytest.mark.parametrize(
    ("measured", "met", "change"),
    [("0.12", True, -0.2), ("0.30", False, -2.0), ("0.30", True, 2.0), ("0.20", True, None)],
)
def test_without_a_unit_the_side_of_the_target_says_it(measured, met, change):
    figure = Figure("share", measured, target="0.2", met=met)
    assert record.change_of("0.10", figure) == change


def test_what_is_published_has_a_benchmark_that_everybody_runs():
    assert "groupings" in BY_NAME


def test_figures_are_kept_with_the_commit_and_the_machine_and_compared(tmp_path):
    file = record.keep([section()], tmp_path)
    kept = json.loads(file.read_text())
    assert kept["machine"]["cores"] > 0
    assert kept["commit"]
    assert kept["sections"][0]["figures"][0]["measured"] == "80 ms"
    before = record.last_kept(tmp_path)
    found = record.steps([section(latency="120 ms", rate="1,050/s")], before)
    assert [(step.what, step.change, step.back) for step in found] == [
        ("latency", -0.5, True),
        ("throughput", 0.05, False),
    ]


def test_a_baseline_that_got_slower_is_no_step_back():
    (slower,) = record.steps(
        [Section("speed", (Figure("stock", "120 ms", baseline=True),))],
        {("speed", "stock"): Figure("stock", "80 ms")},
    )
    assert (slower.change, slower.back) == (-0.5, False)


def test_a_benchmark_that_breaks_is_a_missed_target_and_the_others_go_on(tmp_path, monkeypatch):
    def breaks():
        raise RuntimeError("there is no browser")

    monkeypatch.setattr(measure, "reported", reported := [])
    monkeypatch.setattr(make_bench, "reported", reported)
    monkeypatch.setattr(make_bench, "keep", lambda found: record.keep(found, tmp_path))
    benchmarks = {"first": breaks, "second": lambda: measure.report("second", [Figure("a", "1")])}
    named = {name: SimpleNamespace(main=main) for name, main in benchmarks.items()}
    monkeypatch.setattr(make_bench, "BY_NAME", named)
    assert make_bench.main() is False
    (kept,) = tmp_path.iterdir()
    first, second = json.loads(kept.read_text())["sections"]
    assert first["figures"][0]["measured"] == "RuntimeError: there is no browser"
    assert second["title"] == "second"


def test_figures_of_another_machine_are_no_step(tmp_path):
    file = record.keep([section()], tmp_path)
    kept = json.loads(file.read_text())
    kept["machine"]["processor"] = "another"
    file.write_text(json.dumps(kept))
    assert record.last_kept(tmp_path) == {}


@pytest.mark.parametrize(
    ("ours", "rival", "met"),
    [
        (Point("slo", 0.99, 300, 9, 0.99), Point("pa-sps", 0.98, 400, 9, 0.98), True),
        (Point("slo", 1.02, 300, 9, 1.02), Point("pa-sps", 0.98, 400, 9, 0.98), False),
        (Point("slo", 1.02, 300, 9, 1.02), Point("pa-sps", 0.98, 501, 9, 0.98), True),
        (Point("slo", 0.97, 300, 9, 0.97), Point("srea", 0.92, 90, 900, 0.96), True),
        (Point("slo", 1.07, 300, 9, 1.07), Point("pa-sps", 1.10, 400, 9, 1.10), False),
        (Point("slo", 0.99, 501, 9, 0.99), Point("pa-sps", 1.10, 400, 9, 1.10), False),
    ],
)
def test_slo_is_judged_by_latency_cost_and_the_cheapest_that_keeps_the_objective(ours, rival, met):
    oracle = Point("oracle", 1.0, 20, 9, 1.0)
    assert acceptance.judged(acceptance.Found("trace", oracle, ours, (rival,), {})).met is met


def test_every_published_policy_is_a_rival_unless_fewer_are_wanted():
    labels = [each.label for each in acceptance.rivals([""])]
    assert {label.split()[0] for label in labels} == {
        *("slo", "pa-sps", "presps", "srea", "spea", "cba", "autoscale+", "incremental"),
    }
    assert {"pa-sps ann 30 s", "pa-sps lr 0.25 s", "cba auto 1 s"} <= set(labels)
    assert [each.label for each in acceptance.rivals([])] == ["slo auto 0.25 s"]


JUMPY = evenly(np.tile([1000.0, 3000.0, 2000.0, 4000.0], 8))


def rival(label):
    return next(each for each in contenders() if each.label == label)


@pytest.mark.parametrize("arrivals", Arrivals)
@pytest.mark.parametrize("label", ["presps 0.25 s", "presps 1 s"])
def test_who_can_win_runs_to_the_end_and_is_given_up_if_one_second_of_a_replica_less_is_allowed(
    label, arrivals
):
    race = Race.on(JUMPY, arrivals=arrivals)
    spent = race.run(rival(label), lambda cycle: None)
    kept = spent.p99_ms <= 500
    assert kept is (label == "presps 0.25 s")
    if kept:
        assert race.run(rival(label), Hope(race, spent.replica_seconds)) == spent
    why = "too expensive" if kept else "too late"
    with pytest.raises(GivenUp, match=why):
        race.run(rival(label), Hope(race, spent.replica_seconds - 1))


def test_who_costs_too_much_is_given_up_long_before_the_end():
    race = Race.on(JUMPY)
    best = race.oracle(lambda cycle: None)
    with pytest.raises(GivenUp, match=r"after [0-9] s: too expensive"):
        race.run(rival("autoscale+ 0.25 s"), Hope(race, best.replica_seconds))


def test_what_came_of_a_trace_is_kept_and_not_measured_again(tmp_path, monkeypatch):
    monkeypatch.setattr(acceptance, "commit", lambda: "abc")
    labels = ("presps 0.25", "presps 30")
    cell = acceptance.Cell("jumpy", JUMPY, 0, Arrivals.STEADY, 20, labels, tmp_path)
    found = cell.found()
    assert found.trace == "jumpy, steady"
    assert found.given_up["presps 30 s"] == "given up after 30 s: too late"
    monkeypatch.setattr(acceptance.Cell, "_measured", lambda self: pytest.fail("measured again"))
    assert cell.found() == found
    monkeypatch.setattr(acceptance, "commit", lambda: "abd")
    with pytest.raises(pytest.fail.Exception, match="measured again"):
        cell.found()


def test_forecasts_are_judged_also_where_they_are_exact(monkeypatch):
    monkeypatch.setattr(forecasts, "LEARNING", 20)
    one, six = forecasts.judged("ramp", 100.0 + np.arange(160.0))
    assert one.met
    assert six.met
    assert one.measured.startswith("held 90.0%")


def test_a_member_is_compared_where_it_was_there(monkeypatch):
    monkeypatch.setattr(forecasts, "LEARNING", 20)
    late = dict.fromkeys(range(50, 100), 1.0)
    own = {at: 9.0 if at < 70 else 2.0 for at in range(100)}
    followed = forecasts.Followed(errors={"auto": own, "late": late, "seldom": {5: 1.0}})
    assert followed.members() == ["late"]
    assert followed.beside("auto", "late") == (2.0, 1.0)


class Burning(Basic):
    """Takes a while to compute."""

    def predict(self, history, horizon):
        began = time.thread_time()
        while time.thread_time() - began < 0.02:
            pass
        return super().predict(history, horizon)


def test_the_loop_pays_for_its_forecasts_on_another_thread():
    model = in_time(Burning(), 100.0)
    before = fast_clock.worked(model)
    model.predict([1.0, 2.0], 1)
    assert fast_clock.worked(model) - before >= 0.02


STARTED = sorted(
    ".".join(file.relative_to(ROOT).with_suffix("").parts)
    for file in (ROOT / "benchmarks").rglob("*.py")
    if '__name__ == "__main__"' in file.read_text() and file.stem != "on_flink"
)
"""Modules that can be started by hand; PyFlink is in an environment of its own."""


def started(monkeypatch, module, *words):
    """The exit code of a module that is started with these words."""
    monkeypatch.setattr(sys, "argv", [module, *words])
    monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    return ended.value.code


@pytest.mark.parametrize("module", STARTED)
def test_help_says_what_a_benchmark_is_and_starts_nothing(module, monkeypatch, capsys):
    assert started(monkeypatch, module, "--help") == 0
    shown = capsys.readouterr().out
    name = module.removesuffix(".__main__")
    assert shown.startswith(f"usage: python -m {name} ")
    about = ast.get_docstring(ast.parse(Path(importlib.util.find_spec(module).origin).read_text()))
    assert about in shown


@pytest.mark.parametrize(
    ("module", "word", "why"),
    [
        ("benchmarks.__main__", "chain", "'chain' is none of planning, "),
        ("benchmarks.cluster", "latencies", "'latencies' is none of latency, throughput"),
        ("benchmarks.levels", "few", "invalid positive value: 'few'"),
        ("benchmarks.levels", "0", "0 is less than 1"),
        ("benchmarks.fast_clock", "now", "unrecognized arguments: now"),
        ("benchmarks.attached_cell", "{}", "invalid parsed value: '{}'"),
    ],
)
def test_misuse_of_a_benchmark_ends_with_2_and_a_reason(module, word, why, monkeypatch, capsys):
    assert started(monkeypatch, module, word) == 2
    assert why in capsys.readouterr().err


def test_parts_of_a_benchmark_are_run_by_name(monkeypatch):
    def met(*names):
        ran.append(names)
        return "b" not in names

    ran = []
    for words, code in (([], False), (["a", "b"], True)):
        monkeypatch.setattr(sys, "argv", ["benchmark", *words])
        with pytest.raises(SystemExit) as ended:
            command.by_hand(met, ("a", "b"))
        assert ended.value.code is code
    assert ran == [(), ("a", "b")]


def test_the_objective_is_not_measured_for_nobody(monkeypatch, capsys):
    assert started(monkeypatch, "benchmarks.spark.objective", "--only", "slow") == 2
    assert "'slow' begins none of 'eight fixed replicas'" in capsys.readouterr().err
