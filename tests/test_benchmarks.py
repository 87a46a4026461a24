"""What is kept of benchmarks, and how a step back is seen."""

import json

import numpy as np
import pytest
from benchmarks import acceptance, forecasts, record
from benchmarks.__main__ import BY_NAME
from benchmarks.measure import Figure, Section

from elastream.experiments.frontier import Frontier, Point


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


def test_figures_of_another_machine_are_no_step(tmp_path):
    file = record.keep([section()], tmp_path)
    kept = json.loads(file.read_text())
    kept["machine"]["processor"] = "another"
    file.write_text(json.dumps(kept))
    assert record.last_kept(tmp_path) == {}


@pytest.mark.parametrize(
    ("ours", "rival", "met"),
    [
        (Point("slo", 0.99, 300, 9), Point("pa-sps", 0.98, 400, 9), True),
        (Point("slo", 1.02, 300, 9), Point("pa-sps", 0.98, 400, 9), False),
        (Point("slo", 1.02, 300, 9), Point("pa-sps", 0.98, 501, 9), True),
        (Point("slo", 1.07, 300, 9), Point("pa-sps", 1.10, 400, 9), False),
        (Point("slo", 0.99, 501, 9), Point("pa-sps", 1.10, 400, 9), False),
    ],
)
def test_slo_is_judged_by_latency_cost_and_the_cheapest_that_keeps_the_objective(ours, rival, met):
    oracle = Point("oracle", 1.0, 20, 9)
    assert acceptance.judged(Frontier("trace", (oracle, ours, rival))).met is met


def test_every_published_policy_is_a_rival_unless_fewer_are_wanted():
    labels = [each.label for each in acceptance.rivals([""])]
    assert {label.split()[0] for label in labels} == {
        *("slo", "pa-sps", "presps", "srea", "spea", "cba", "autoscale+", "incremental"),
    }
    assert {"pa-sps ann 30 s", "pa-sps lr 0.25 s", "cba auto 1 s"} <= set(labels)
    assert [each.label for each in acceptance.rivals([])] == ["slo auto 0.25 s"]


def test_forecasts_are_judged_also_where_they_are_exact(monkeypatch):
    monkeypatch.setattr(forecasts, "LEARNING", 20)
    one, six = forecasts.judged("ramp", 100.0 + np.arange(160.0))
    assert one.met
    assert six.met
    assert one.measured.startswith("held 90.0%")
