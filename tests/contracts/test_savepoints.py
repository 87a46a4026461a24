"""The state of a stopped pipeline goes into one file, and from there into any other state."""

import io
import json
import os
import random
import tarfile
from contextlib import closing, suppress
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from elastream.core.latency import LatencyHistogram
from elastream.engines.spark.arrow_ipc import from_bytes, to_bytes
from elastream.engines.spark.backends import savepoint
from elastream.engines.spark.backends.dead_letters import DeadLetter
from elastream.engines.spark.backends.kept import Counted, OutputBatch, OutputPosition, Waiting
from elastream.engines.spark.backends.lanes import SHARED_LANE
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.backends.ledger import Counts
from elastream.engines.spark.backends.outbox import output_of
from elastream.engines.spark.backends.parcels import Parcel
from elastream.engines.spark.births import Births
from elastream.errors import EngineError, InvalidInputError
from support import small_disk
from support.backends import BACKENDS

PIPELINE = "test: in -> b, b -> pulled, pulled -> stored"
LAYOUT = {
    "in": OperatorLanes(1),
    "b": OperatorLanes(4, key="n"),
    "pulled": OperatorLanes(4, shared=True),
    "stored": OperatorLanes(1, chained_to="pulled"),
}


def parcel(operator, numbers, lane_of):
    births = Births.joined(Births.evenly(1, 100.0 + n) for n in numbers)
    data = to_bytes(pa.table({"n": list(numbers)}))
    return Parcel.for_lanes(operator, np.array(lane_of), births, data)


def fill(backend, seed):
    """What a run that was killed may leave behind."""
    choose = random.Random(seed)
    backend.prepare(PIPELINE, LAYOUT)
    with backend.connect() as end, backend.connect() as shared, backend.connect() as producer:
        producer.lanes.join(("in", 0), 1)
        sent = 0
        for _ in range(choose.randint(0, 6)):
            count = choose.randint(1, 30)
            numbers = range(sent, sent + count)
            lane_of = [choose.randrange(4) for _ in numbers]
            output = parcel(output_of("b"), numbers, [0] * count)
            pulled = Parcel(
                "pulled",
                SHARED_LANE,
                count,
                Births.evenly(count, 50.0),
                to_bytes(pa.table({"n": list(numbers)})),
            )
            counts = Counts(count, count, sent={"b": count}, lost={"b": 1}, busy=0.5)
            assert producer.lanes.commit(
                [], [parcel("b", numbers, lane_of), output, pulled], counts
            )
            sent += count
        end.lanes.join(("b", 1), 1)
        end.lanes.hold(frozenset(range(4)))
        for named in (False, True):
            taken = end.lanes.take(choose.randint(1, 20), named=named)
            if taken and choose.random() < 0.8:
                letter = DeadLetter("b", 1, f"error {seed}", to_bytes(pa.table({"n": [7]})), 2)
                latency = LatencyHistogram.of([0.1, 0.2])
                assert end.lanes.commit(taken, [], Counts(3, latency=latency), [letter])
        end.lanes.take(5, named=True)
        shared.lanes.join(("pulled", 0), 1)
        shared.lanes.take(10, shared=True)
    with closing(backend.inbox("in")) as inbox, closing(backend.outbox("b")) as outbox:
        inbox.stage("task", 2, to_bytes(pa.table({"n": [1, 2]})))
        if choose.random() < 0.7:
            inbox.admit(choose.randint(0, 9), {"task": 2})
        if choose.random() < 0.7 and outbox.newest():
            outbox.consume(choose.randint(0, outbox.newest()))


def kept(backend):
    """What it keeps, in a form that can be compared: events, not their bytes."""

    def plain(piece):
        if isinstance(piece, OutputPosition):
            return replace(piece, newest=0)
        if isinstance(piece, Waiting):
            rows = from_bytes(piece.data).to_pylist()
            unit = piece.unit._replace(first=0) if piece.unit else None
            times = tuple(piece.births.times().round(6).tolist())
            return piece.operator, piece.lane, str(rows), times, piece.deaths, unit
        if isinstance(piece, Counted):
            latency = dict(piece.counts.latency.bins) if piece.counts.latency else {}
            return replace(piece, counts=piece.counts._replace(latency=latency))
        if isinstance(piece, DeadLetter):
            return replace(piece, number=0)
        return piece

    pieces = [plain(piece) for piece in backend.kept()]
    by_kind = {}
    for piece in pieces:
        by_kind.setdefault(type(piece).__name__, []).append(piece)
    for kind in ("OutputPosition", "Admitted", "Counted"):
        by_kind.get(kind, []).sort(key=str)
    by_lane = {}
    for piece in by_kind.pop("tuple", []):
        by_lane.setdefault(piece[:2], []).append(piece)
    return by_kind, by_lane


@pytest.fixture(params=BACKENDS)
def source(request, tmp_path):
    return BACKENDS[request.param](tmp_path / "source")


@pytest.fixture(params=BACKENDS)
def target(request, tmp_path):
    return BACKENDS[request.param](tmp_path / "target")


@pytest.mark.parametrize("seed", range(5))
def test_what_goes_through_a_file_is_the_same_in_any_other_state(source, target, tmp_path, seed):
    fill(source, seed)
    head = savepoint.export(source, tmp_path / "file")
    assert (head.pipeline, head.layout) == (PIPELINE, LAYOUT)
    assert savepoint.read(tmp_path / "file", target).pipeline == PIPELINE
    assert target.described() == (PIPELINE, LAYOUT)
    assert target.layout() == LAYOUT
    assert kept(target) == kept(source)
    assert waiting(target) == waiting(source)
    target.prepare(PIPELINE, LAYOUT)
    assert kept(target) == kept(source)


def waiting(backend):
    with backend.connect() as connection:
        found = connection.ledger.totals()
    return {name: found.waiting(name) for name in [*LAYOUT, output_of("b")]}


def test_the_parts_of_a_unit_stay_parts(source, target, tmp_path):
    source.prepare(PIPELINE, LAYOUT | {"b": OperatorLanes(4)})
    with source.connect() as end:
        end.lanes.join(("b", 0), 1)
        assert end.lanes.commit([], [parcel("b", range(20), [1] * 20)], Counts())
        end.lanes.hold(frozenset({1}))
        (begun,) = end.lanes.take(20, named=True)
    source.prepare(PIPELINE, LAYOUT)
    units = [piece.unit for piece in source.kept() if isinstance(piece, Waiting)]
    assert {unit.name for unit in units} == {begun.unit.name}
    assert sorted(unit.at + place for unit in units for place in range(unit.events)) == list(
        range(20)
    )
    savepoint.export(source, tmp_path / "file")
    savepoint.read(tmp_path / "file", target)
    assert kept(target) == kept(source)


def test_outputs_go_on_after_the_numbers_that_readers_remember(source, target, tmp_path):
    source.prepare(PIPELINE, LAYOUT)
    with source.connect() as end, closing(source.outbox("b")) as outbox:
        end.lanes.join(("b", 0), 1)
        for n in range(5):
            assert end.lanes.commit([], [parcel(output_of("b"), [n], [0])], Counts())
        newest = outbox.newest()
        batches = [piece for piece in source.kept() if isinstance(piece, OutputBatch)]
        outbox.consume(batches[2].number)
        planned = list(outbox.read(batches[2].number, newest))
    savepoint.export(source, tmp_path / "file")
    savepoint.read(tmp_path / "file", target)
    with target.connect() as end, closing(target.outbox("b")) as outbox:
        assert outbox.consumed() == batches[2].number
        assert outbox.newest() == newest
        again = list(outbox.read(outbox.consumed(), newest))
        assert [from_bytes(data) for data in again] == [from_bytes(data) for data in planned]
        end.lanes.join(("b", 0), 1)
        assert end.lanes.commit([], [parcel(output_of("b"), [5], [0])], Counts())
        assert outbox.newest() > newest
        (new,) = outbox.read(newest, outbox.newest())
        assert from_bytes(new)["n"].to_pylist() == [5]


def test_a_state_in_use_is_neither_exported_nor_filled(source, tmp_path):
    fill(source, 1)
    with source.own(), pytest.raises(InvalidInputError, match="in use by process"):
        savepoint.export(source, tmp_path / "file")
    assert not (tmp_path / "file").exists()
    savepoint.export(source, tmp_path / "file")


def test_a_state_that_is_not_empty_is_left_alone(source, target, tmp_path):
    fill(source, 1)
    savepoint.export(source, tmp_path / "file")
    target.prepare("another: in -> b", {"b": OperatorLanes(2)})
    with pytest.raises(InvalidInputError, match="is not empty: name another"):
        savepoint.read(tmp_path / "file", target)
    with pytest.raises(InvalidInputError, match="is not empty: name another"):
        target.restore(PIPELINE, LAYOUT, [])
    assert target.described()[0] == "another: in -> b"


def test_an_export_ends_the_work_of_those_that_a_killed_driver_has_left(source, tmp_path):
    fill(source, 1)
    with source.connect() as left:
        left.lanes.join(("b", 0), 1)
        left.lanes.hold(frozenset({0, 1, 2, 3}))
        taken = left.lanes.take(10)
        savepoint.export(source, tmp_path / "file")
        assert not left.lanes.joined()
        assert not left.lanes.commit(taken, [], Counts())


def test_an_import_that_fails_leaves_nothing_that_a_run_would_take_for_a_state(source, target):
    def broken():
        yield from list(source.kept())[:3]
        raise OSError("the disk is gone")

    fill(source, 1)
    with pytest.raises(OSError, match="the disk is gone"):
        target.restore(PIPELINE, LAYOUT, broken())
    with suppress(InvalidInputError):  # Kafka says that an import was not finished.
        target.prepare(PIPELINE, LAYOUT)
        assert waiting(target)["b"] == 0


# The file.


@pytest.fixture
def file(tmp_path):
    """A savepoint with a checkpoint in it."""
    backend = BACKENDS["sqlite"](tmp_path / "origin")
    fill(backend, 2)
    feeds = backend.folder / "feeds" / "in" / "offsets"
    feeds.mkdir(parents=True)
    (feeds / "0").write_text("v1\n{}\n")
    (feeds / "link").symlink_to("/etc/hostname")
    savepoint.export(backend, tmp_path / "file")
    return tmp_path / "file"


def test_checkpoints_move_along_and_links_do_not(file, tmp_path):
    target = BACKENDS["sqlite"](tmp_path / "target")
    savepoint.read(file, target)
    feeds = target.folder / "feeds"
    assert [path for path in feeds.rglob("*") if path.is_file()] == [feeds / "in/offsets/0"]
    assert (feeds / "in/offsets/0").read_text() == "v1\n{}\n"


def test_a_file_is_private_and_none_is_overwritten(file, tmp_path):
    assert file.stat().st_mode & 0o777 == 0o600
    before = file.read_bytes()
    with pytest.raises(InvalidInputError, match="file already exists: name a new file"):
        savepoint.export(BACKENDS["sqlite"](tmp_path / "origin"), file)
    assert file.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 0.999), bit=st.integers(0, 7))
def test_a_file_with_a_single_bit_changed_is_refused_or_the_bit_meant_nothing(file, place, bit):
    data = bytearray(file.read_bytes())
    data[int(place * len(data))] ^= 1 << bit
    changed = file.with_name("changed")
    changed.write_bytes(data)
    with suppress(InvalidInputError):
        assert savepoint.check(changed) == savepoint.check(file)


@pytest.mark.parametrize("length", [0, 100, 5000, -2000])
def test_a_file_that_is_cut_off_is_refused(file, length, tmp_path):
    data = file.read_bytes()
    state = data.index(b"Waiting") if length == -2000 else length
    file.write_bytes(data[:state])
    target = BACKENDS["sqlite"](tmp_path / "target")
    with pytest.raises(InvalidInputError, match=r"damaged|cannot be read"):
        savepoint.read(file, target)
    assert not target.exists


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "checkpoints/feeds/../../evil", "evil"])
@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.SYMTYPE])
def test_a_file_that_would_write_elsewhere_is_refused(file, tmp_path, name, kind):
    planted = tmp_path / "planted"
    with tarfile.open(file) as old, tarfile.open(planted, "w") as new:
        for member in old:
            new.addfile(member, old.extractfile(member))
        member = tarfile.TarInfo(name)
        member.type, member.linkname, member.size = kind, "/etc/hostname", 0
        new.addfile(member, io.BytesIO())
    with pytest.raises(InvalidInputError, match="does not belong there"):
        savepoint.read(planted, BACKENDS["sqlite"](tmp_path / "target"))
    assert not (tmp_path / "evil").exists()


def test_another_format_is_refused_with_what_to_do(file, tmp_path, monkeypatch):
    monkeypatch.setattr(savepoint, "FORMAT", 9)
    with pytest.raises(InvalidInputError, match="has format 1, and this elastream knows format 9"):
        savepoint.check(file)


def test_a_savepoint_that_does_not_say_what_was_chained_is_read(file, tmp_path):
    """The first ones did not."""
    older = tmp_path / "older"
    with tarfile.open(file) as old, tarfile.open(older, "w") as new:
        for member in old:
            content = old.extractfile(member).read()
            if member.name == savepoint.HEAD:
                told = json.loads(content)["head"]
                told["layout"] = {name: of[:3] for name, of in told["layout"].items()}
                content = json.dumps({"head": told, "digest": savepoint._digest_of_head(told)})
                content = content.encode()
            member.size = len(content)
            new.addfile(member, io.BytesIO(content))
    target = BACKENDS["sqlite"](tmp_path / "target")
    savepoint.read(older, target)
    assert target.layout() == LAYOUT | {"stored": OperatorLanes(1)}


def test_something_else_is_no_savepoint(tmp_path):
    (tmp_path / "text").write_text("bread, milk")
    for path in (tmp_path / "text", tmp_path / "none", tmp_path):
        with pytest.raises(InvalidInputError, match=r"is not a savepoint|cannot be read"):
            savepoint.check(path)


def test_checkpoints_that_are_there_already_are_left_alone(file, tmp_path):
    target = BACKENDS["sqlite"](tmp_path / "target")
    os.makedirs(target.folder / "feeds")
    (target.folder / "feeds" / "mine").write_text("mine")
    with pytest.raises(InvalidInputError, match="feeds exists: remove it"):
        savepoint.read(file, target)
    assert (target.folder / "feeds" / "mine").read_text() == "mine"


def test_a_disk_that_is_full_is_told_and_leaves_nothing_behind(file, tmp_path):
    with small_disk.small_disk(tmp_path / "disk", megabytes=1) as disk:
        ballast = small_disk.fill(disk)
        with pytest.raises(EngineError, match=r"cannot be written, and nothing was: .*space"):
            savepoint.export(BACKENDS["sqlite"](tmp_path / "origin"), disk / "copy")
        assert list(disk.iterdir()) == [ballast]
        with pytest.raises(EngineError, match="cannot be written, and nothing was: "):
            savepoint.read(file, BACKENDS["sqlite"](disk))
        ballast.unlink()
        savepoint.export(BACKENDS["sqlite"](tmp_path / "origin"), disk / "copy")
        assert savepoint.check(disk / "copy") == savepoint.check(file)
