import inspect
import pickle
import sqlite3
from contextlib import closing
from typing import Any, get_type_hints

import cloudpickle
import pyarrow as pa
import pytest

from elastream.engines.spark.worker.function import UserFunction, context_parameter
from elastream.errors import InvalidInputError
from elastream.workloads import APPLICATIONS, LIVE_APPLICATIONS
from elastream.workloads.applications import Step
from elastream.workloads.live.tables import NEWS_AND_OPINIONS
from elastream.workloads.service_time import with_service_time

EVENTS = 1_000
BATCH = pa.table({"id": [1, 2, 3, 4]})
TABLES = {
    "twitter": "tweets",
    "twitter-unequal": "tweets",
    "twitter-complex": "news_and_opinions",
    "diamond": "news_and_opinions",
    "star": "news_and_opinions",
    "dns": "dns_queries",
    "logs": "log_lines",
}
EVERY = pytest.mark.parametrize("name", LIVE_APPLICATIONS)


def run(application, first, count):
    """All events through all operators, the shares of edges taken from the front of a batch."""
    topology = application.topology
    arrived = {name: [make(first, count)] for name, make in application.generators.items()}
    for name in topology.order:
        batch = pa.concat_tables(arrived[name])
        if name in topology.by_name:
            batch = process(topology.by_name[name], batch)
        start = 0
        for edge in topology.outgoing[name]:
            if edge.share is None:
                arrived.setdefault(edge.target, []).append(batch)
                continue
            events = round(batch.num_rows * edge.share)
            arrived.setdefault(edge.target, []).append(batch.slice(start, events))
            start += events
    return batch


def process(operator, batch):
    function = UserFunction(operator)
    with function.ready():
        return function(batch)


def stored(path, table):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(f"SELECT * FROM {table} ORDER BY id").fetchall()


@EVERY
def test_every_event_is_stored_once_however_often_it_comes(name, tmp_path):
    path = tmp_path / "store.db"
    # As it arrives in another process.
    application = cloudpickle.loads(cloudpickle.dumps(LIVE_APPLICATIONS[name](path)))
    run(application, 0, EVENTS)
    rows = stored(path, TABLES[name])
    assert [row[0] for row in rows] == list(range(EVENTS))
    run(application, 0, EVENTS)
    assert stored(path, TABLES[name]) == rows


@EVERY
def test_no_events_are_no_trouble(name, tmp_path):
    assert run(LIVE_APPLICATIONS[name](tmp_path / "store.db"), 5, 0).num_rows == 0


@EVERY
def test_it_has_the_shape_of_the_papers_application(name, tmp_path):
    live, plain = LIVE_APPLICATIONS[name](tmp_path / "store.db"), APPLICATIONS[name]()
    assert live.topology.edges == plain.topology.edges
    assert live.topology.sources == plain.topology.sources
    assert live.generators.keys() == {source.name for source in live.topology.sources}
    assert LIVE_APPLICATIONS[name](tmp_path / "s", pool=2).topology.operators[0].pool == 2


@EVERY
@pytest.mark.parametrize("service_ms", [0.0, 1.0])
def test_functions_say_what_they_take(name, service_ms, tmp_path):
    for operator in LIVE_APPLICATIONS[name](tmp_path / "store.db", service_ms).topology.operators:
        first, *others = inspect.signature(operator.function).parameters
        stores = context_parameter(operator.function) is not None
        taken = list[dict[str, Any]] if stores else pa.Table
        assert get_type_hints(operator.function)[first] == taken
        assert len(others) == (operator.setup is not None) + stores


def test_the_complex_application_keeps_the_columns_of_both_ways(tmp_path):
    path = tmp_path / "store.db"
    run(LIVE_APPLICATIONS["twitter-complex"](path), 0, 100)
    rows = stored(path, "news_and_opinions")
    user_class, reach, sentiment, mood, emphasis, stance = zip(
        *(row[-6:] for row in rows), strict=True
    )
    assert [sum(value is not None for value in values) for values in (user_class, reach)] == [
        20
    ] * 2
    assert [sum(value is not None for value in v) for v in (sentiment, mood, stance)] == [80] * 3
    assert sum(value is not None for value in emphasis) == 8


def test_one_sleep_per_batch_for_all_of_its_events():
    slept = []
    step = with_service_time(Step(lambda batch: batch.slice(1)), 2.5, slept.append)
    assert step.function(BATCH).num_rows == 3
    assert slept == [0.01]


def test_set_up_and_resource_stay():
    step = with_service_time(Step(lambda batch, name: name, lambda: "model", print), 1, lambda _: 0)
    assert step.function(BATCH, step.setup()) == "model"
    assert step.teardown is print


def test_no_time_changes_nothing():
    step = Step(len)
    assert with_service_time(step, 0) is step


@pytest.mark.parametrize("service_ms", [-1, float("nan"), float("inf")])
def test_time_must_be_a_time(service_ms):
    with pytest.raises(InvalidInputError, match=f"service_ms={service_ms}"):
        with_service_time(Step(len), service_ms)


def test_it_travels_to_other_processes():
    step = with_service_time(Step(len), 0.001)
    assert pickle.loads(cloudpickle.dumps(step)).function(BATCH) == 4


@EVERY
def test_events_are_shared_as_in_the_paper_of_the_application(name, tmp_path):
    application = LIVE_APPLICATIONS[name](tmp_path / "store.db")
    published = "shuffle" if name in ("diamond", "star") else "load-aware"
    assert {of.router.name for of in application.topology.operators} == {published}


def test_the_branches_of_the_diamond_meet_in_one_table(tmp_path):
    path = tmp_path / "store.db"
    run(LIVE_APPLICATIONS["diamond"](path), 0, 100)
    columns = zip(*stored(path, "news_and_opinions"), strict=True)
    found = dict(zip(NEWS_AND_OPINIONS, columns, strict=True))
    filled = {name: sum(value is not None for value in of) for name, of in found.items()}
    assert (filled["user_class"], filled["mood"], filled["id"]) == (50, 50, 100)


def test_both_ends_of_the_star_get_all_of_it(tmp_path):
    last = run(LIVE_APPLICATIONS["star"](tmp_path / "store.db"), 0, 100)
    assert last.num_rows == len(stored(tmp_path / "store.db", "news_and_opinions")) == 100
    assert None not in last["stance"].to_pylist()


def test_unequal_operators_wait_as_long_as_they_cost(tmp_path):
    application = LIVE_APPLICATIONS["twitter-unequal"](
        tmp_path / "store.db", service_ms=4.0, execution_time=0.004
    )
    times = [of.execution_time for of in application.topology.operators]
    assert times == [0.002, 0.004, 0.003, 0.001]
