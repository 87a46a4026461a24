"""One call on Spark: everything that a run can do, in as few runs as possible."""

import asyncio
import urllib.request

import pytest

import elastream
from elastream.errors import EngineError, InvalidInputError


class Prices:
    """A model that is loaded once in every replica."""

    def __init__(self, piece):
        self._piece = piece
        self._list = None

    def setup(self):
        self._list = {"piece": self._piece}

    def __call__(self, row: dict) -> dict:
        return {"id": row["id"], "total": self._list["piece"] * row["pieces"]}

    def close(self):
        self._list = None


async def rate(row: dict) -> dict | None:
    """Something slow that others do."""
    await asyncio.sleep(0.05)
    if row["id"] % 100 == 7:
        raise ValueError(f"no rating of {row['id']}")
    return {**row, "rating": row["id"] % 5} if row["id"] % 2 else None


def batches(count):
    for number in range(count):
        yield [{"id": n, "pieces": n % 3} for n in range(50 * number, 50 * number + 50)]


def orders():
    pipeline = elastream.Pipeline("orders")
    source = pipeline.source("orders")
    pipeline.add(Prices(10.0), name="price", after=source, pool=2)
    pipeline.add(rate, after="price", pool=2)
    return pipeline


def test_a_run_from_an_iterable_to_a_dataframe(spark_session, tmp_path):
    said = []
    run = elastream.run(
        orders(),
        {"orders": batches(6)},
        state=tmp_path,
        session=spark_session,
        td=1.0,
        policy=elastream.policy("static", replicas=2),
        outputs={"rate": "id long, total double, rating long"},
        serve="127.0.0.1:0",
        say=said.append,
    )
    assert run.warm_up > 0
    with urllib.request.urlopen(f"{run.url}/api/pipeline") as answer:
        assert b'"orders"' in answer.read()
    query = run["rate"].writeStream.format("memory").queryName("rated").start()
    # It ends by itself: the iterable does, and what it gave gets through.
    assert run.await_termination(180)
    query.processAllAvailable()
    query.stop()
    rows = spark_session.sql("SELECT * FROM rated ORDER BY id").collect()
    assert [row.id for row in rows] == [n for n in range(300) if n % 2 and n % 100 != 7]
    assert all((row.total, row.rating) == (10.0 * (row.id % 3), row.id % 5) for row in rows)
    status = run.status()
    assert (status.events_in, status.events_out, status.set_aside) == (300, 297, {"rate": 3})
    assert status.replicas == {"price": 2, "rate": 2}
    assert said == [
        "3 events were set aside, most by 'rate' (ValueError: no rating of #): "
        f"see 'elastream dead-letters {tmp_path}'"
    ]
    assert len(run.history()) == len(run.recent(100))


def test_too_many_dead_letters_end_a_run_with_the_operator_and_the_cause(spark_session, tmp_path):
    pipeline = elastream.Pipeline("wrong")
    source = pipeline.source("numbers")

    @pipeline.operator(after=source, pool=1)
    def wrong(rows: list):
        return {"n": len(rows)}

    run = elastream.run(
        pipeline,
        {"numbers": batches(1000)},
        state=tmp_path,
        session=spark_session,
        td=0.5,
        fail_on_dead_letters=10,
        say=[].append,
    )
    with pytest.raises(EngineError, match=r"most by 'wrong' \(InvalidInputError: .*dict"):
        run.await_termination(180)
    assert not run.is_active


def test_a_function_that_fails_on_every_event_is_an_error(spark_session, tmp_path):
    pipeline = elastream.Pipeline("wrong")
    pipeline.add(Prices(10.0), name="price", after=pipeline.source("numbers"), pool=1)

    @pipeline.operator(after="price", pool=1)
    def wrong(row: dict):
        return row["none"]

    run = elastream.run(
        pipeline, {"numbers": batches(1)}, state=tmp_path, session=spark_session, td=0.5
    )
    with pytest.raises(EngineError, match=r"50 events were set aside.*, all that reached 'wrong'"):
        run.await_termination(180)


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ({"orders": 3}, "the source 'orders' is int"),
        ({"orders": batches}, "elastream.replay"),
        ({"order": []}, "nothing feeds the source 'orders'"),
    ],
)
def test_a_source_that_cannot_be_is_refused_before_anything_starts(sources, message, tmp_path):
    with pytest.raises(InvalidInputError, match=message):
        elastream.run(orders(), sources, state=tmp_path)


def test_a_function_that_asks_for_what_there_is_not_is_refused_before_anything_starts(tmp_path):
    pipeline = elastream.Pipeline("wrong")

    @pipeline.operator(after=pipeline.source("orders"))
    def price(text: str):
        return text

    with pytest.raises(InvalidInputError, match=r"operator 'price': .* asks for <class 'str'>"):
        elastream.run(pipeline, {"orders": batches(1)}, state=tmp_path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"td": 0}, "td: 0 s: it must be at least 0.1 s"),
        ({"td": 0.05}, "td: 0.05 s: it must be at least 0.1 s"),
        ({"look_back": 1}, "look_back=1: a forecast needs at least 2 samples"),
        ({"serve": "here"}, "HOST:PORT"),
        ({"fail_on_dead_letters": 0}, "1 or more"),
        ({"initial": {"price": 9}}, "give 1 to 2"),
        ({"policy": "pa-spz"}, "did you mean"),
        ({"outputs": {"rates": "id long"}}, "unknown operator 'rates': did you mean 'rate'"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused_before_anything_starts(
    settings, message, tmp_path
):
    with pytest.raises(InvalidInputError, match=message):
        elastream.run(orders(), {"orders": batches(1)}, state=tmp_path, **settings)


@pytest.mark.parametrize(
    ("place", "reason"),
    [("file", "it is a file"), ("file/state", "Not a directory"), ("/proc/state", "No such file")],
)
def test_a_state_that_cannot_be_written_is_refused_before_anything_starts(tmp_path, place, reason):
    (tmp_path / "file").touch()
    message = f"the state folder .*{place} cannot be used: {reason}"
    with pytest.raises(InvalidInputError, match=message):
        elastream.run(orders(), {"orders": batches(1)}, state=tmp_path / place)
