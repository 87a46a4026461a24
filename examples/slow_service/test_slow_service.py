"""The example asks its service about every order."""

import runpy
from pathlib import Path

EXAMPLE = runpy.run_path(str(Path(__file__).with_name("slow_service.py")))


def test_the_service_answers_and_the_operator_understands_it():
    with EXAMPLE["service"]() as port:
        lookup = EXAMPLE["Lookup"](port)
        lookup.setup()
        found = [lookup({"id": number, "customer": number}) for number in range(7)]
        lookup.close()
    assert [row["city"] for row in found[:2]] == ["Lyon", "Turin"]
    assert found[0]["city"] == found[6]["city"]


def test_as_many_replicas_as_calls_that_go_on_at_once():
    assert [EXAMPLE["calls_at_once"](rate) for rate in (1, 100, 10_000)] == [1, 4, 12]


def test_every_order_is_enriched_under_every_policy(spark_session, tmp_path):
    runs = EXAMPLE["compare"](seconds=3.0, session=spark_session)
    for going in runs.values():
        status = going.status()
        assert status.events_in == status.events_out == EXAMPLE["measured"](going)["orders"] > 200
        assert status.set_aside == {}
    fixed = runs["fixed, for the peak"].recent(100)
    assert max(cycle.stats.operators["lookup"].active for cycle in fixed if cycle.stats) == 10
    drawn = EXAMPLE["draw"](runs, tmp_path / "picture.png")
    assert drawn.stat().st_size > 10_000
