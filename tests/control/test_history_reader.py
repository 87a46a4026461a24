"""Whoever reads a history changes nothing, wherever it is and whoever writes it."""

import os
import shutil
import sqlite3
import subprocess
from contextlib import closing

import pytest

from elastream.control import ControlLoop
from elastream.control.history import History
from elastream.control.history_reader import HistoryReader, last_replicas
from elastream.errors import InvalidInputError
from elastream.policies.pa_sps import PaSps
from elastream.predictors import PREDICTORS
from support.engines import PlaybackEngine
from support.pipelines import interval, line
from support.small_disk import small_disk

LINE = line("clean", "store")


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "state"
    made.mkdir()
    return made


def recording(folder, inputs):
    """A history that is still open."""
    history = History(folder / "run.db")
    engine = PlaybackEngine(LINE, [interval(LINE, n, number=i) for i, n in enumerate(inputs)])
    loop = ControlLoop(engine, PaSps(), PREDICTORS["basic"](), record=history.record)
    list(loop.run(len(inputs)))
    return history


def recorded(folder, *inputs):
    recording(folder, inputs).close()


def inputs_in(file):
    with closing(HistoryReader(file)) as history:
        return [cycle["input"] for cycle in history.cycles()]


def contents(folder):
    """Every file but the index of the log, which is no more than a cache."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".db-shm"}


def test_a_history_that_nobody_writes_is_read_and_nothing_is_left_beside_it(folder):
    recorded(folder, 10, 20)
    before = contents(folder)
    assert inputs_in(folder / "run.db") == [10, 20]
    assert contents(folder) == before
    assert [path.name for path in folder.iterdir()] == ["run.db"]


def test_a_history_is_read_while_a_run_writes_it(folder):
    with closing(recording(folder, [10])):
        before = contents(folder)
        with closing(HistoryReader(folder / "run.db")) as history:
            cycles = history.cycles()
            assert next(cycles)["input"] == 10
            assert contents(folder) == before
            # The run does not wait for somebody who has not read to the end.
            with closing(recording(folder, [20])):
                assert list(cycles) == []
                assert [cycle["input"] for cycle in history.cycles()] == [10, 20]


def killed(folder, target, *ends):
    """What a run that is killed leaves, or some of it: its newest cycles are in the log."""
    recorded(folder, 10)
    with closing(recording(folder, [20])):
        for end in ends:
            shutil.copy(folder / f"run.db{end}", target)


@pytest.mark.parametrize("ends", [("", "-wal", "-shm"), ("", "-wal")])
def test_what_a_run_that_was_killed_has_left_is_read_whole(folder, tmp_path, ends):
    (target := tmp_path / "left").mkdir()
    killed(folder, target, *ends)
    before = contents(target)
    assert inputs_in(target / "run.db") == [10, 20]
    assert contents(target) == before
    assert sorted(path.name for path in target.iterdir()) == sorted(f"run.db{e}" for e in ends)


@pytest.mark.parametrize("ends", [None, ("", "-wal", "-shm"), ("", "-wal")])
def test_a_read_only_medium_is_read(folder, tmp_path, ends):
    with small_disk(tmp_path / "disk", megabytes=2) as disk:
        if ends:
            killed(folder, disk, *ends)
        else:
            recorded(disk, 10, 20)
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        with pytest.raises(OSError, match="Read-only"):
            (disk / "new").touch()
        assert inputs_in(disk / "run.db") == [10, 20]


def test_a_file_that_is_missing_or_no_history_is_refused_and_left_alone(tmp_path):
    with pytest.raises(InvalidInputError, match=r"none\.db: there is no such file"):
        HistoryReader(tmp_path / "none.db")
    with pytest.raises(InvalidInputError, match="is a folder: name the history in it"):
        HistoryReader(tmp_path)
    (tmp_path / "text").write_text("hello " * 100)
    with pytest.raises(InvalidInputError, match="text: cannot be read as a history"):
        HistoryReader(tmp_path / "text")
    assert os.listdir(tmp_path) == ["text"]


def test_a_name_may_have_any_characters(tmp_path):
    (folder := tmp_path / "100 % of it?mode=rw#1").mkdir()
    recorded(folder, 10)
    assert inputs_in(folder / "run.db") == [10]


def test_before_the_first_cycle_there_is_nothing_to_read(folder):
    (folder / "run.db").touch()
    with closing(HistoryReader(folder / "run.db")) as history:
        assert [list(history.cycles()), list(history.steering()), len(history.samples())] == [
            [],
            [],
            0,
        ]
    assert last_replicas(folder / "run.db") == {}
    assert contents(folder) == {"run.db": b""}


def test_a_history_of_an_earlier_version_is_read_as_it_is(folder):
    recorded(folder, 10)
    with closing(sqlite3.connect(folder / "run.db")) as other:
        other.execute("DROP TABLE steering")
        other.execute("DROP INDEX cycles_at")
        other.execute("ALTER TABLE cycles DROP COLUMN at")
    before = contents(folder)
    with closing(HistoryReader(folder / "run.db")) as history:
        assert ([cycle["input"] for cycle in history.cycles()], list(history.steering())) == (
            [10],
            [],
        )
    assert contents(folder) == before
