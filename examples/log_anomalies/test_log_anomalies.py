"""The example finds what was planted."""

import runpy
from pathlib import Path

import pytest

EXAMPLE = runpy.run_path(str(Path(__file__).with_name("log_anomalies.py")))


def scored(count):
    parse = EXAMPLE["pipeline"].topology().by_name["parse"].function
    detect = EXAMPLE["Detector"]()
    return [detect(parse(row)) for row in EXAMPLE["make_lines"](0, count).to_pylist()]


def test_a_model_that_is_not_new_finds_nearly_all_that_was_planted():
    rows = [row for row in scored(8_000) if row["ready"]]
    planted = [row for row in rows if row["planted"]]
    assert sum(row["unusual"] for row in planted) >= 0.9 * len(planted)
    assert sum(row["unusual"] and not row["planted"] for row in rows) <= 0.001 * len(rows)


def test_a_new_model_says_nothing_before_its_first_window_is_full():
    rows = scored(1_000)
    assert not any(row["unusual"] for row in rows if not row["ready"])
    assert sum(not row["ready"] for row in rows) == 1_000


def test_a_line_that_is_none_is_an_error():
    parse = EXAMPLE["pipeline"].topology().by_name["parse"].function
    with pytest.raises(ValueError, match="no log line: 'hello'"):
        parse({"id": 1, "line": "hello", "planted": False})


@pytest.mark.long
def test_it_runs_on_spark(spark_session, tmp_path):
    result = EXAMPLE["run"](tmp_path, seconds=4.0, session=spark_session)
    lines = sum(cycle.stats.input for cycle in result["run"].recent(100) if cycle.stats)
    assert result["lines"] == round(lines) > 1_000
    assert result["run"].status().set_aside == {}
    drawn = EXAMPLE["draw"](result["run"], tmp_path / "picture.png")
    assert drawn.stat().st_size > 10_000
