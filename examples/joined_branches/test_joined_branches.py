"""The example joins exactly what belongs together."""

import runpy
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

EXAMPLE = runpy.run_path(str(Path(__file__).with_name("joined_branches.py")))


def expected(views, clicks):
    """Click m is about view 5m: no bot saw it, and ten seconds are not over."""
    return {
        5 * click
        for click in range(clicks)
        if click % 8 != 7 and 5 * click % 10 != 5 and 1 + click % 12 <= 10 and 5 * click < views
    }


def test_views_take_one_branch_each():
    (classify, shown, bots, valid) = EXAMPLE["pipeline"].topology().operators
    taken = [classify.function(row) for row in EXAMPLE["make_views"](0, 20).to_pylist()]
    assert [name for name, _ in taken].count(bots.name) == 2
    assert {name for name, _ in taken} == {shown.name, bots.name}
    assert valid.function(EXAMPLE["make_clicks"](0, 16)).num_rows == 14


@pytest.mark.long
def test_every_click_finds_its_view(spark_session, tmp_path):
    with ThreadPoolExecutor(1) as elsewhere:  # In this thread no session is active.
        outcome = elsewhere.submit(
            EXAMPLE["run"], tmp_path, duration=4.0, session=spark_session
        ).result()
    emitted = [cycle.stats.sources for cycle in outcome["run"].recent(100) if cycle.stats]
    views, clicks = (round(sum(of[name].emitted for of in emitted)) for name in ("views", "clicks"))
    assert {row.view for row in outcome["rows"]} == expected(views, clicks)
    assert len(outcome["rows"]) == len(expected(views, clicks))
    drawn = EXAMPLE["draw"](outcome, tmp_path / "picture.png")
    assert drawn.stat().st_size > 10_000
