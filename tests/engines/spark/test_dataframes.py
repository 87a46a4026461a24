"""DataFrames at both ends, without Spark where none is needed."""

import threading
from contextlib import closing
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from elastream.core.pipeline import Pipeline
from elastream.engines.spark.arrow_ipc import from_bytes, to_bytes
from elastream.engines.spark.backends import open_backend
from elastream.engines.spark.backends.ledger import Counts
from elastream.engines.spark.backends.outbox import output_of
from elastream.engines.spark.backends.parcels import Parcel
from elastream.engines.spark.backends.sqlite import SqliteBackend
from elastream.engines.spark.births import Births
from elastream.engines.spark.dataframes.feeds import DataFrameSource, Feeds
from elastream.engines.spark.dataframes.output import OutputReader, fitted
from elastream.engines.spark.dataframes.sink import PIECE, InboxWriter
from elastream.engines.spark.driver.engine import SparkEngine
from elastream.engines.spark.driver.preflight import slots_for
from elastream.engines.spark.worker.trace_player import TraceSource
from elastream.errors import EngineError, InvalidInputError, UnknownNameError
from support.waiting import eventually
from support.workers import Workers

SOURCE = ("in", 0)


def pipeline_of(pool=2, **settings):
    def same(table):
        return table

    pipeline = Pipeline("frames")
    pipeline.add(same, after=pipeline.source("in"), name="work", pool=pool, **settings)
    return pipeline.topology()


def batch_of(count):
    return pa.record_batch({"id": range(count)})


def writer_of(workers, queue_size=10_000):
    return InboxWriter(workers.backend, "in", queue_size)


def test_a_task_stages_pieces_and_the_driver_admits_them():
    workers = Workers(pipeline_of())
    writer = writer_of(workers)
    staged = [writer.write(iter([batch_of(PIECE + 1), batch_of(3)])), writer.write(iter([]))]
    assert workers.waiting("in") == 0
    for _ in range(2):
        writer.commit(staged, 0)
    taken = workers.joined(SOURCE, [0]).lanes.take(10_000)
    assert [each.events for each in taken] == [PIECE, 1, 3]
    assert from_bytes(taken[2].data).to_pydict() == {"id": [0, 1, 2]}


def test_a_full_inbox_pushes_back_to_the_query():
    workers = Workers(pipeline_of())
    writer = writer_of(workers, queue_size=10)
    # One batch is let in whole, however large: it could never be complete otherwise.
    writer.commit([writer.write(iter([batch_of(PIECE * 3)]))], 0)
    staged = []
    thread = threading.Thread(target=lambda: staged.append(writer.write(iter([batch_of(5)]))))
    thread.start()
    thread.join(timeout=0.2)
    assert thread.is_alive()
    source = workers.joined(SOURCE, [0])
    source.lanes.commit(source.lanes.take(10_000), [], Counts())
    thread.join(timeout=10)
    assert staged[0].events == 5


def test_the_relay_hands_on_what_was_admitted_while_there_is_room():
    workers = Workers(pipeline_of(), queue_size=PIECE)
    workers.plan(work=(0, 1))
    writer = writer_of(workers)
    for number in range(4):
        writer.commit([writer.write(iter([batch_of(PIECE)]))], number)
    with workers.running(SOURCE) as (thread,):
        eventually(lambda: workers.waiting("in") == 0)
        writer.commit([writer.write(iter([batch_of(PIECE)]))], 4)
        thread.join(timeout=0.2)
        # What is taken at once is handed on at once; then the next operator's lanes are full.
        assert (workers.waiting("in"), workers.waiting("work")) == (PIECE, 4 * PIECE)
    counts = workers.ledger.counts(SOURCE)
    assert (counts.processed, counts.emitted) == (5 * PIECE, 4 * PIECE)
    assert counts.sent == {"work": 4 * PIECE}
    owners = workers.board.plan().owners["work"]
    by_replica = {0: 0, 1: 0}
    for lane, events in workers.lengths("work").items():
        by_replica[owners[lane]] += events
    assert by_replica[0] == pytest.approx(2 * PIECE, abs=20)


def test_the_relay_goes_on_when_there_is_room_again_and_keeps_the_order():
    workers = Workers(pipeline_of(pool=1, lanes=1), queue_size=PIECE)
    workers.plan(work=(0,))
    writer = writer_of(workers)
    for number in range(8):
        batch = pa.record_batch({"id": range(number * PIECE, (number + 1) * PIECE)})
        writer.commit([writer.write(iter([batch]))], number)
    found = []
    with workers.running(SOURCE):
        taker = workers.joined(("work", 0), [0])
        while len(found) < 8 * PIECE:
            taken = eventually(lambda: taker.lanes.take(1000))
            for each in taken:
                rows = from_bytes(each.data)["id"].to_pylist()
                found += rows if each.chosen is None else [rows[n] for n in each.chosen]
            assert taker.lanes.commit(taken, [], Counts())
    assert found == list(range(8 * PIECE))


def refuse(*anything):
    raise KeyError("no such column")


@pytest.mark.parametrize("kind", ["relay", "trace"])
def test_a_source_that_cannot_go_on_says_why_and_keeps_its_events(kind):
    pipeline = Pipeline("frames")
    pipeline.add(len, after=pipeline.source("in"), name="work", when=refuse)
    trace = TraceSource(lambda first, count: pa.table(batch_of(count)), 1.0, np.full(9, 100.0))
    workers = Workers(pipeline.topology(), {"in": trace} if kind == "trace" else {})
    workers.plan(work=(0, 1))
    writer = writer_of(workers)
    writer.commit([writer.write(iter([batch_of(3)]))], 0)
    with workers.running(SOURCE) as (thread,):
        eventually(workers.board.failures)
        assert thread.is_alive()
        assert workers.board.failures() == {SOURCE: "KeyError: 'no such column'"}
    assert (workers.waiting("in"), workers.waiting("work")) == (3, 0)
    assert workers.ledger.counts(SOURCE).emitted == 0


def put_out(workers, *tables):
    end = workers.joined(("work", 0))
    for table in tables:
        events = len(table["id"])
        births = Births.evenly(events, 1.0)
        parcel = Parcel(output_of("work"), 0, events, births, to_bytes(pa.table(table)))
        assert end.lanes.commit([], [parcel], Counts())


def reader_of(workers):
    from pyspark.sql.types import LongType, StructField, StructType

    return OutputReader(workers.backend, "work", StructType([StructField("id", LongType())]))


def rows(reader, start, end):
    return [
        row["id"]
        for partition in reader.partitions(start, end)
        for batch in reader.read(partition)
        for row in batch.to_pylist()
    ]


def test_a_query_reads_an_output_and_makes_room_when_it_asks_for_more():
    workers = Workers(pipeline_of(), outputs=["work"])
    put_out(workers, {"id": [1, 2]}, {"id": [3]})
    reader = reader_of(workers)
    start = reader.initialOffset()
    end = reader.latestOffset(start)
    assert rows(reader, start, end) == rows(reader, start, end) == [1, 2, 3]
    assert workers.waiting(output_of("work")) == 3
    assert reader.latestOffset(end) == end
    assert workers.waiting(output_of("work")) == 0
    assert reader.partitions(end, end) == []
    reader.commit(end)
    reader.stop()


def test_a_query_that_another_has_overtaken_is_told_so():
    workers = Workers(pipeline_of(), outputs=["work"])
    put_out(workers, {"id": [1, 2]})
    quick, slow = reader_of(workers), reader_of(workers)
    start = slow.initialOffset()
    quick.commit(quick.latestOffset(quick.initialOffset()))
    with pytest.raises(EngineError, match=r"another query has read the output of 'work'"):
        slow.latestOffset(start)
    assert slow.latestOffset(slow.initialOffset()) == slow.initialOffset()
    quick.stop()
    slow.stop()


def test_a_query_with_the_checkpoint_of_another_state_is_told_so_and_nothing_is_lost():
    before, after = (Workers(pipeline_of(), outputs=["work"]) for _ in range(2))
    put_out(before, {"id": [1]}, {"id": [2]}, {"id": [3]})
    old = reader_of(before)
    start = old.latestOffset(old.initialOffset())
    put_out(after, {"id": [4]})
    new = reader_of(after)
    with pytest.raises(EngineError, match=r"is at batch 3, and there are only 1 in this state"):
        new.latestOffset(start)
    assert after.waiting(output_of("work")) == 1
    old.stop()
    new.stop()


def test_a_query_that_cannot_be_stopped_does_not_keep_others_from_it(tmp_path):
    stopped = []

    class Query:
        def __init__(self, name):
            self.name = name

        def stop(self):
            stopped.append(self.name)
            if self.name == "two":
                raise OSError("Spark is gone")

    feeds = Feeds(None, SqliteBackend(tmp_path), {}, queue_size=1)
    feeds._queries = {name: Query(name) for name in ("one", "two", "three")}
    with pytest.raises(OSError, match="Spark is gone"):
        feeds.stop()
    assert sorted(stopped) == ["one", "three", "two"]


def test_an_output_takes_the_types_and_the_order_of_its_schema():
    table = pa.table({"name": ["a"], "left out": [0], "id": pa.array([7], pa.int32())})
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    assert fitted(table, schema, "work").equals(pa.table({"id": [7], "name": ["a"]}))


@pytest.mark.parametrize(
    ("field", "problem"),
    [
        (pa.field("number", pa.int64()), "'number' is not there; there are: id, word"),
        (pa.field("word", pa.int64()), "'word' is string, not int64"),
        (pa.field("id", pa.int64(), nullable=False), "'id' has a null, and must have none"),
    ],
)
def test_an_output_that_does_not_fit_is_refused_by_the_name_of_the_column(field, problem):
    table = pa.table({"id": [1, None], "word": ["one", "two"]})
    with pytest.raises(EngineError, match=f"the output of 'work' .* column {problem}"):
        fitted(table, pa.schema([field]), "work")


FIRST = datetime(2024, 2, 29, 12, 30, 15, 123456, tzinfo=UTC)
SCHEMA = "id long, at timestamp, marks array<struct<name: string, value: double>>"


def write_file(folder, ids):
    """Events with a nested column, as a file that appears at once."""
    folder.mkdir(exist_ok=True)
    table = pa.table(
        {
            "id": list(ids),
            "at": pa.array([FIRST] * len(ids), pa.timestamp("us", "UTC")),
            "marks": [[{"name": f"mark {n}", "value": n / 4}] for n in ids],
        }
    )
    pq.write_table(table, folder / ".writing")
    (folder / ".writing").rename(folder / f"{ids[0]}.parquet")


def waiting(engine, node):
    with engine.backend.connect() as connection:
        return connection.ledger.totals().waiting(node)


def emitted(engine, source):
    with engine.backend.connect() as connection:
        return connection.ledger.counts((source, 0)).emitted


def test_events_of_a_dataframe_come_out_as_one_each_once(spark_session, tmp_path):
    from pyspark.sql.functions import udf

    def started(frame):
        source = {"in": DataFrameSource(frame)}
        return SparkEngine(
            pipeline_of(), source, tmp_path / "state", spark_session, outputs={"work": SCHEMA}
        )

    def written(engine):
        return (
            engine.stream("work")
            .writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .start(str(tmp_path / "out"))
        )

    @udf("long")
    def refuse(number):
        raise ValueError("no number is good enough")

    write_file(tmp_path / "files", range(1200))
    frame = spark_session.readStream.schema(SCHEMA).parquet(str(tmp_path / "files"))
    engine = started(frame)
    eventually(lambda: waiting(engine, output_of("work")) == 1200)
    stats = engine.observe()
    assert (stats.sources["in"].emitted, stats.sources["in"].queued) == (1200, 0)
    assert stats.operators["work"].processed == 1200
    assert not engine.drain(0.1), "nobody has read the output"
    query = written(engine)
    assert engine.drain(60)
    query.stop()
    engine.close()

    write_file(tmp_path / "files", range(1200, 1300))
    engine = started(frame.withColumn("id", refuse("id")))
    with pytest.raises(EngineError, match=r"(?s)source 'in' failed: .*no number is good enough"):
        eventually(lambda: engine.observe() is None)
    engine.close()

    engine = started(frame)
    query = written(engine)
    eventually(lambda: emitted(engine, "in") == 1300)
    assert engine.drain(60)
    query.stop()
    engine.close()
    found = sorted(spark_session.read.parquet(str(tmp_path / "out")).collect())
    assert [row.id for row in found] == list(range(1300))
    assert found[5].at.astimezone(UTC) == FIRST
    assert found[5].marks[0].asDict() == {"name": "mark 5", "value": 1.25}


def test_what_cannot_be_fed_or_read_is_refused_before_the_first_event(spark_session, tmp_path):
    source = TraceSource(lambda first, count: pa.table(batch_of(count)), 1.0, np.ones(1))
    topology = pipeline_of()

    def engine(sources, topology=topology, **settings):
        SparkEngine(topology, sources, tmp_path / "state", spark_session, **settings)

    with pytest.raises(InvalidInputError, match=r"make it with spark\.readStream"):
        DataFrameSource(spark_session.range(3))
    with pytest.raises(UnknownNameError, match="unknown source 'inn': did you mean 'in'"):
        engine({"in": source, "inn": source})
    rate = DataFrameSource(spark_session.readStream.format("rate").load())
    with pytest.raises(
        InvalidInputError, match=r"'work' needs 'user', but events from 'in' have only .* timest"
    ):
        engine({"in": rate}, pipeline_of(grouping="key", key="user"))
    with pytest.raises(UnknownNameError, match="unknown operator 'wrk': did you mean 'work'"):
        engine({"in": source}, outputs={"wrk": "id long"})
    for schema in ("id lng", "long"):
        with pytest.raises(InvalidInputError, match="the schema of the output 'work'"):
            engine({"in": source}, outputs={"work": schema})
    just_fits = pipeline_of(pool=61)
    assert slots_for(just_fits, generations=1) == 64
    with pytest.raises(InvalidInputError, match="queries that feed and read them, need 65 task"):
        engine({"in": source}, just_fits, outputs={"work": "id long"})
    assert not SqliteBackend(tmp_path / "state").exists


def test_a_feed_that_has_lost_its_place_is_refused(spark_session, tmp_path):
    with closing(SqliteBackend(tmp_path).inbox("in")) as inbox:
        inbox.admit(3, {})
    frame = spark_session.readStream.format("rate").load()
    with pytest.raises(InvalidInputError, match=r"its checkpoint .*/feeds/in is gone"):
        SparkEngine(pipeline_of(1), {"in": DataFrameSource(frame)}, tmp_path, spark_session)


def test_a_checkpoint_that_is_ahead_of_the_state_is_refused(spark_session, tmp_path):
    with closing(SqliteBackend(tmp_path).inbox("in")) as inbox:
        inbox.admit(3, {})
    commits = tmp_path / "feeds" / "in" / "commits"
    commits.mkdir(parents=True)
    for batch in range(5):
        (commits / str(batch)).touch()
    frame = spark_session.readStream.format("rate").load()
    with pytest.raises(
        InvalidInputError, match=r"feeds/in is not of the state sqlite:.*lost: name"
    ):
        SparkEngine(pipeline_of(1), {"in": DataFrameSource(frame)}, tmp_path, spark_session)


def test_a_state_on_kafka_needs_a_place_for_checkpoints(spark_session):
    frame = spark_session.readStream.format("rate").load()
    state = "kafka:127.0.0.1:1/nobody-is-asked"
    with pytest.raises(InvalidInputError, match=r"'in' is a DataFrame.* --checkpoint, or checkp"):
        SparkEngine(pipeline_of(1), {"in": DataFrameSource(frame)}, state, spark_session)


def test_a_folder_keeps_its_checkpoints_itself(tmp_path):
    with pytest.raises(InvalidInputError, match="leave the checkpoint out"):
        open_backend(tmp_path / "state", tmp_path / "checkpoint")
