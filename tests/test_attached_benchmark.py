"""What the benchmark of attached queries counts: everything that is paid for, and every row."""

from types import SimpleNamespace

import numpy as np
import pytest
from benchmarks import attached
from benchmarks.attached_cell import WARM_UP, Arrivals, Setting, rates, summary

BEGIN = 1_767_225_600.0
"""2026-01-01."""


def batch(first, last, commit):
    return {
        "sources": [{"startOffset": {"rows": first}, "endOffset": {"rows": last}}],
        "timestamp": "2026-01-01T00:00:00Z",
        "durationMs": {"triggerExecution": 1000 * commit},
    }


def measured(batches, stopped):
    """Ten rows per second for 100 seconds, 40 of them after the warm-up; three executors."""
    arrivals = Arrivals(BEGIN, np.arange(0.0, 1001.0, 10.0))
    times = [BEGIN + second for second in range(int(stopped) + 1)]
    return summary(arrivals, batches, SimpleNamespace(times=times, counts=[3] * len(times)))


def test_executors_cost_until_the_last_row_is_done():
    found = measured([batch(0, 600, 61), batch(600, 1000, 130)], stopped=135)
    assert found["executor_seconds"] == pytest.approx(3 * 70, rel=0.05)
    assert (found["rows"], found["undone"]) == (400, 0)


def test_rows_that_are_never_done_are_late():
    found = measured([batch(0, 600, 60), batch(600, 900, 91)], stopped=220)
    assert (found["rows"], found["undone"], found["backlog"]) == (400, 100, 310)
    assert found["p99"] == pytest.approx(130, abs=2)
    assert found["executor_seconds"] == pytest.approx(3 * 160, rel=0.05)


def test_the_mean_is_what_the_load_needs():
    setting = Setting("mean", most=8, peak=0.65)
    flow = rates(setting)[int(WARM_UP) :]
    assert setting.mean - 1 < flow.mean() * setting.per_row <= setting.mean
    assert flow.max() * setting.per_row == pytest.approx(0.65 * 8)


def test_what_a_failed_run_wrote_is_shown(monkeypatch):
    monkeypatch.setattr(attached, "sys", SimpleNamespace(executable="/bin/sh"))
    with pytest.raises(SystemExit, match=r"has failed:\n.+"):
        attached.cell(Setting("max"))


def run_of(cost, p99):
    return [{"executor_seconds": cost, "p50": 1.0, "p99": p99, "backlog": 1.0, "undone": 0}]


@pytest.mark.parametrize(("lean", "met"), [((100.0, 9.0), True), ((80.0, 9.0), False)])
def test_attach_is_held_to_both_tunings_of_dynamic_allocation(lean, met):
    cells = {"dynamic": run_of(100.0, 8.0), "lean": run_of(*lean), "attach": run_of(70.0, 8.0)}
    assert attached.compared(cells) is met


def test_the_short_form_is_four_ways_once(monkeypatch):
    asked = []

    def cell(setting):
        asked.append((setting.kind, setting.seconds))
        return run_of(100.0, 8.0)[0] | {"with": [1.0], "without": [1.0]}

    monkeypatch.setattr(attached, "cell", cell)
    attached.main(["--short"])
    kinds = ["max", "mean", "dynamic", "attach", "overhead"]
    assert asked == [(kind, 180.0) for kind in kinds]
