"""What waits at sources of files: read from what Spark keeps, in full batches."""

import time
from types import SimpleNamespace

import pytest

import elastream
from elastream.engines.attached.files import limited_files

PATIENCE = 60.0


def java(name, **methods):
    """An object of the JVM of this class, as far as it is looked at."""
    there = {method: (lambda result=result: result) for method, result in methods.items()}
    return SimpleNamespace(getClass=lambda: SimpleNamespace(getSimpleName=lambda: name), **there)


class Field:
    """A private field; `sizes` are those of the files that it holds."""

    def __init__(self, sizes):
        self.sizes = sizes

    def setAccessible(self, yes):  # noqa: N802 - Java's name
        assert yes

    def get(self, source):
        return None if self.sizes is None else SimpleNamespace(size=lambda: len(self.sizes))


def source(limit, field):
    made = java("FileStreamSource", getDefaultReadLimit=limit)
    of_class = SimpleNamespace(
        getSimpleName=lambda: "FileStreamSource", getDeclaredField={"unreadFiles": field}.get
    )
    made.getClass = lambda: of_class
    return made


def test_files_that_wait_are_counted_in_batches():
    field = Field([10] * 7)
    (files,) = limited_files([source(java("ReadMaxFiles", maxFiles=2), field)], read=None)
    assert files.batches_waiting() == 3.5
    field.sizes = None
    assert files.batches_waiting() == 0


def test_where_bytes_are_limited_sizes_are_read_once_a_batch():
    field, reads = Field([10, 20, 30]), []

    def read(files):
        reads.append(files.size())
        return [{"path": {}, "size": size} for size in field.sizes]

    (files,) = limited_files([source(java("ReadMaxBytes", maxBytes=20), field)], read)
    assert [files.batches_waiting() for _ in range(3)] == [3.0] * 3
    field.sizes = [20, 30]
    assert files.batches_waiting() == 2.5
    field.sizes = None
    assert files.batches_waiting() == 0
    assert reads == [3, 2]


def test_other_sources_and_those_without_a_limit_are_left_alone():
    unlimited = source(java("ReadAllAvailable"), Field(None))
    assert limited_files([java("KafkaMicroBatchStream"), unlimited], read=None) == []


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("limit", [{"maxFilesPerTrigger": 1}, {"maxBytesPerTrigger": 6}])
def test_spark_keeps_what_is_read_here(spark_session, tmp_path, limit):
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(200):
        (folder / f"{number}.txt").write_text("a\nb\nc\n")
    frame = spark_session.readStream.format("text").options(**limit).load(str(folder))
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c"))
    query = writer.trigger(processingTime="500 milliseconds").start()
    try:
        with elastream.attach(query, advice_only=True) as scaler:
            record, deadline = scaler.engine.record, time.monotonic() + PATIENCE
            while record.totals.received - record.totals.processed < 100:
                assert time.monotonic() < deadline, (scaler.status(), scaler.engine.problem)
                time.sleep(0.05)
            taken = query.lastProgress.batchId + 1
            # A batch may begin between any two of these looks.
            assert scaler.engine.view.batches_waiting == pytest.approx(200 - taken, abs=5)
    finally:
        query.stop()
