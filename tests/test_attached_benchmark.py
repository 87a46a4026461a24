"""What the benchmark of attached queries counts: everything that is paid for, and every row."""

from dataclasses import asdict
from datetime import UTC, datetime
from types import SimpleNamespace

import numpy as np
import pytest
from benchmarks import attached
from benchmarks.attached_cell import WARM_UP, Arrivals, Setting, pairs, rates, summary

BEGIN = 1_767_225_600.0
"""2026-01-01."""


def batch(first, last, commit):
    return {
        "sources": [{"startOffset": {"rows": first}, "endOffset": {"rows": last}}],
        "timestamp": "2026-01-01T00:00:00Z",
        "durationMs": {"triggerExecution": 1000 * commit},
    }


def measured(batches, stopped):
    """Ten rows per second for 70 seconds, 40 of them after the warm-up; three executors."""
    assert WARM_UP == 30
    arrivals = Arrivals(BEGIN, np.arange(0.0, 701.0, 10.0))
    times = [BEGIN + second for second in range(int(stopped) + 1)]
    return summary(arrivals, batches, SimpleNamespace(times=times, counts=[3] * len(times)))


def test_executors_cost_until_the_last_row_is_done():
    found = measured([batch(0, 300, 31), batch(300, 700, 100)], stopped=105)
    assert found["executor_seconds"] == pytest.approx(3 * 70, rel=0.05)
    assert (found["rows"], found["undone"]) == (400, 0)


def test_rows_that_are_never_done_are_late():
    found = measured([batch(0, 300, 30), batch(300, 600, 61)], stopped=190)
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


@pytest.fixture
def ran(monkeypatch):
    """The settings of the cells that were run, which are not run here."""
    settings = []

    def cell(setting):
        settings.append(setting)
        found = {"setting": asdict(setting), "lead": 3.0, "pairs": [(1.0, 1.01)]}
        if setting.kind != "overhead":
            del found["pairs"]
            found |= run_of(70.0 if setting.kind == "attach" else 100.0, 8.0)[0]
        return found

    monkeypatch.setattr(attached, "cell", cell)
    monkeypatch.setattr(attached, "commit", lambda: "1234567")
    return settings


def test_ways_that_are_held_to_targets_run_in_turns(ran, tmp_path):
    assert attached.main(["--keep", str(tmp_path / "cells.jsonl")])
    kinds = [setting.kind for setting in ran]
    assert kinds[-1] == "overhead"
    assert [kind for kind in kinds if kind in attached.HELD] == [
        "dynamic", "attach", "attach", "dynamic", "dynamic", "attach",
    ]  # fmt: skip
    assert sorted(set(kinds)) == sorted([*attached.KINDS, "overhead"])
    assert sum(setting.lasts for setting in ran) < 65 * 60


def test_it_goes_on_where_it_was_stopped(ran, tmp_path, capsys):
    words = ["--keep", str(tmp_path / "cells.jsonl"), "--kinds", "dynamic,attach"]
    attached.main([*words, "--repeats", "1", "--only", "comparison"])
    before = len(ran)
    attached.main([*words, "--repeats", "2"])
    assert [setting.kind for setting in ran[before:]] == ["attach", "dynamic", "overhead"]
    assert "2 of 5 cells are kept" in capsys.readouterr().err
    attached.main([*words, "--repeats", "1", "--trigger", "10", "--only", "comparison"])
    assert [setting.trigger for setting in ran[-2:]] == [10.0, 10.0]


def test_cells_of_another_commit_are_left_aside(ran, tmp_path, capsys, monkeypatch):
    keep = tmp_path / "cells.jsonl"
    words = ["--keep", str(keep), "--kinds", "attach", "--repeats", "2", "--only", "comparison"]
    for commit in ("1111111", "2222222"):
        monkeypatch.setattr(attached, "commit", lambda commit=commit: commit)
        attached.main(words)
    assert len(ran) == 4
    assert "2 cells in" in (told := capsys.readouterr().err)
    assert "left aside: another commit than 2222222" in told
    attached.main(words)
    assert len(ran) == 4
    assert [cell["commit"] for cell in attached.kept(keep)] == 2 * ["1111111"] + 2 * ["2222222"]


def test_overhead_is_that_of_neighbouring_stretches():
    def lasting(began, seconds):
        when = datetime.fromtimestamp(BEGIN + began, UTC).isoformat()
        return {"timestamp": when, "durationMs": {"triggerExecution": 1000 * seconds}}

    batches = [lasting(1, 2.0), lasting(4, 9.0), lasting(11, 3.0), lasting(21, 5.0)]
    batches.append(lasting(31, 4.0))
    stretches = [
        (BEGIN + 10 * place, BEGIN + 10 * place + 10, attached)
        for place, attached in enumerate([False, True, True, False])
    ]
    assert pairs(batches, stretches) == [(2.0, 3.0), (4.0, 5.0)]


def test_every_run_is_drawn(tmp_path):
    run = {
        "setting": asdict(Setting("max", seconds=2)), "rates": [1.0, 1.0, 2.0],
        "times": [0.0, 1.0], "counts": [4, 3], "commits": [(0.5, 1.0, 2.0)],
    }  # fmt: skip
    cells = {kind: [run_of(100.0, 8.0)[0] | run] for kind in attached.KINDS}
    attached.draw(cells, attached.KINDS, tmp_path / "runs.png")
    assert (tmp_path / "runs.png").stat().st_size > 0
