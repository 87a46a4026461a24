import time

import pyarrow as pa
import pytest

from elastream import Pipeline
from elastream.cli.rehearsal import rehearse
from elastream.cli.targets import Target, benchmarked, chosen_target
from elastream.core.behaviour import Behaviour
from elastream.errors import InvalidInputError


@pytest.fixture
def pipeline(tmp_path):
    file = tmp_path / "orders.py"
    file.write_text(
        "import time\n"
        "import pyarrow as pa\n"
        "from elastream import Pipeline\n"
        "pipeline = Pipeline('orders')\n"
        "orders = pipeline.source('orders')\n"
        "@pipeline.operator(after=orders)\n"
        "def price(batch: pa.Table) -> pa.Table:\n"
        "    time.sleep(0.01)\n"
        "    return batch\n"
        "@pipeline.operator(after=price, when=lambda batch: [n % 2 == 0 for n in\n"
        "    batch['n'].to_pylist()], setup=lambda: 'resource')\n"
        "def alert(rows: list, resource) -> list:\n"
        "    assert resource == 'resource'\n"
        "    return rows\n"
        "sources = {'orders': lambda first, count: pa.table({'n': range(first, first + count)})}\n"
    )
    return f"{file}:pipeline"


def test_every_operator_is_measured_on_the_events_that_reach_it(elastream, pipeline):
    ended = elastream("benchmark", pipeline, "--events", "100", "--repeats", "3")
    assert ended.code == 0, ended.err
    price, alert = (line.split() for line in ended.out.splitlines()[1:3])
    assert price[:2] == ["price", "100"]
    assert float(price[2]) >= 0.1
    assert alert[:2] == ["alert", "50"]


def test_a_pipeline_that_is_not_there_is_named(elastream):
    ended = elastream("benchmark", "nothing.py:pipeline")
    assert ended.code == 2
    assert "nothing.py: there is no such file" in ended.err


def slow(table):
    time.sleep(0.0002 * len(table))
    return table


def target_of(given):
    pipeline = Pipeline("one")
    pipeline.add(slow, name="slow", after=pipeline.source("in"), execution_time=1.0)
    return Target(pipeline.topology(), Behaviour(), given)


def test_a_run_can_begin_with_execution_times_that_were_measured():
    made = benchmarked(target_of({"in": lambda first, count: pa.table({"id": range(count)})}))
    assert 0.0002 <= made.topology.by_name["slow"].execution_time < 1.0


def test_events_that_nobody_can_make_cannot_be_measured_with():
    for given in ({"in": [pa.table({"id": [1]})]}, lambda spark: {}):
        with pytest.raises(InvalidInputError, match="make\\(first, count\\) that makes events for"):
            benchmarked(target_of(given))


def test_an_application_can_be_measured_before_it_runs(tmp_path):
    plain = chosen_target(None, "diamond", None, 0.0, tmp_path)
    made = benchmarked(plain)
    assert all(of.execution_time > 0 for of in made.topology.operators)
    assert [of.execution_time for of in made.topology.operators] != [
        of.execution_time for of in plain.topology.operators
    ]


def test_a_slow_function_is_measured_with_few_events():
    calls, clock = [], [0.0]

    def ask(rows: list) -> list:
        calls.append(len(rows))
        clock[0] += 0.1 * len(rows)
        return rows

    pipeline = Pipeline("slow")
    pipeline.add(ask, after=pipeline.source("numbers"))
    numbers = {"numbers": lambda first, count: pa.table({"n": range(first, first + count)})}
    found = rehearse(pipeline.topology(), numbers, 1_000, 3, timer=lambda: clock[0])
    assert found.operators["ask"].seconds == pytest.approx(0.1)
    assert found.operators["ask"].events == 4
    assert clock[0] < 3.0, "not 600 s"
