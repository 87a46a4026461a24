"""A state is its user's: nobody else enters it, and nothing that is read from it runs."""

import os
import pickle
import sqlite3
import stat
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

import elastream.engines.spark.backends
from elastream.engines.spark.backends import open_backend
from elastream.engines.spark.backends.board import LanePlan
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.backends.sqlite import SqliteBackend
from elastream.engines.spark.backends.sqlite.wakeup import socket_folder
from elastream.errors import InvalidInputError
from elastream.running.state import folder_of

SOMEBODY_ELSE = 12_345
LAYOUT = {"work": OperatorLanes(2)}

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def temporary(monkeypatch):
    """A folder for temporary files that is ours alone; its name is short, as a socket's must be."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        monkeypatch.setattr("tempfile.tempdir", folder)
        yield Path(folder)


@pytest.mark.parametrize("before", [None, 0o755, 0o500])
def test_the_folder_of_a_state_is_private(tmp_path, before):
    folder = tmp_path / "deep" / "state"
    if before is not None:
        folder.mkdir(parents=True)
        folder.chmod(before)
    with SqliteBackend(folder).own():
        assert mode(folder) == 0o700
        assert mode(folder / "driver.lock") == 0o600
    SqliteBackend(folder).prepare("test", LAYOUT)
    assert mode(folder) == 0o700


@needs_root
def test_a_folder_of_somebody_else_is_refused(tmp_path):
    folder = tmp_path / "state"
    folder.mkdir()
    os.chown(folder, SOMEBODY_ELSE, SOMEBODY_ELSE)
    backend = SqliteBackend(folder)
    message = rf"state folder .* cannot be used: it belongs to the user {SOMEBODY_ELSE}, not to you"
    with pytest.raises(InvalidInputError, match=message):
        backend.prepare("test", LAYOUT)
    with pytest.raises(InvalidInputError, match=message):
        backend.own().__enter__()
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("name", ["elastream.db", "elastream.db-wal", "driver.lock", "writer.lock"])
@pytest.mark.parametrize("kind", ["link", "dangling", "folder"])
def test_what_was_planted_in_a_folder_of_ours_is_refused_and_not_written_to(tmp_path, name, kind):
    victim, folder = tmp_path / "victim", tmp_path / "state"
    folder.mkdir(mode=0o777)
    if kind == "link":
        victim.write_text("keep me")
    (folder / name).mkdir() if kind == "folder" else (folder / name).symlink_to(victim)
    backend = SqliteBackend(folder)
    for act in (backend.own().__enter__, lambda: backend.prepare("test", LAYOUT), backend.connect):
        with pytest.raises(InvalidInputError, match=f"{name} in it is not a file of yours"):
            act()
    assert victim.exists() == (kind == "link")
    assert kind != "link" or victim.read_text() == "keep me"


@needs_root
@pytest.mark.parametrize("name", ["checkpoints", "feeds", "history.db"])
def test_a_link_of_somebody_else_is_not_followed_wherever_it_is(tmp_path, name):
    """What is below it would be written to, and deleted at the end."""
    victim, folder = tmp_path / "victim", tmp_path / "state"
    folder.mkdir(mode=0o777)
    (folder / name).symlink_to(victim)
    os.lchown(folder / name, SOMEBODY_ELSE, SOMEBODY_ELSE)
    backend = SqliteBackend(folder)
    for act in (backend.own().__enter__, backend.connect):
        with pytest.raises(InvalidInputError, match=f"{name} in it is not a file of yours"):
            act()


def test_sockets_are_in_a_private_folder(temporary, tmp_path):
    with SqliteBackend(tmp_path / "state").connect() as end:
        end.lanes.join(("work", 0), 1)
        (ours,) = temporary.iterdir()
        (sockets,) = ours.iterdir()
        assert (mode(ours), mode(sockets)) == (0o700, 0o700)
        assert [path.name for path in sockets.iterdir()] == ["work.0"]
    SqliteBackend(tmp_path / "state").sweep()
    assert list(ours.iterdir()) == []


def test_a_folder_for_sockets_that_others_could_enter_is_closed_to_them(temporary, tmp_path):
    sockets = socket_folder(tmp_path / "state")
    sockets.parent.chmod(0o777)
    sockets.chmod(0o755)
    with SqliteBackend(tmp_path / "state").connect():
        assert (mode(sockets.parent), mode(sockets)) == (0o700, 0o700)


@pytest.fixture(params=["link", "file", "folder of somebody else"])
def planted(request, temporary, tmp_path):
    """What somebody has put where our folder for sockets should be, and what they aim at."""
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "precious").write_text("keep me")
    place = temporary / f"elastream-{os.geteuid()}"
    if request.param == "link":
        place.symlink_to(victim)
    elif request.param == "file":
        place.write_text("")
    else:
        if os.geteuid() != 0:
            pytest.skip("only root can give files away")
        place.mkdir()
        os.chown(place, SOMEBODY_ELSE, SOMEBODY_ELSE)
        (place / "precious").write_text("keep me")
    return place


def test_what_is_not_ours_is_no_place_for_sockets(planted, tmp_path):
    backend = SqliteBackend(tmp_path / "state")
    for act in (backend.connect, backend.sweep):
        with pytest.raises(InvalidInputError, match=r"elastream-\d+ is not a folder of yours"):
            act()
    assert (tmp_path / "victim" / "precious").read_text() == "keep me"
    assert planted.is_symlink() or planted.is_file() or (planted / "precious").exists()


def test_a_link_in_place_of_the_inner_folder_is_refused_and_not_followed(temporary, tmp_path):
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "precious").write_text("keep me")
    inner = socket_folder(tmp_path / "state")
    inner.rmdir()
    inner.symlink_to(victim)
    backend = SqliteBackend(tmp_path / "state")
    for act in (backend.connect, backend.sweep):
        with pytest.raises(InvalidInputError, match="is not a folder of yours"):
            act()
    assert (victim / "precious").read_text() == "keep me"


def test_nothing_in_a_backend_unpickles():
    package = Path(elastream.engines.spark.backends.__file__).parent
    for file in package.rglob("*.py"):
        assert "pickle" not in file.read_text(), file


class Bomb:
    """Unpickled, it leaves a trace."""

    def __init__(self, trace):
        self.trace = str(trace)

    def __reduce__(self):
        return os.mkdir, (self.trace,)


@pytest.mark.parametrize("column", ["feedback", "requests", "plans"])
def test_a_planted_pickle_is_not_run(tmp_path, column):
    backend = SqliteBackend(tmp_path / "state")
    backend.prepare("test", LAYOUT)
    bomb = pickle.dumps(Bomb(tmp_path / "trace"))
    with backend.connect() as end, closing(sqlite3.connect(backend.folder / "elastream.db")) as db:
        end.lanes.join(("work", 0), 1)
        end.lanes.hold(frozenset({0}))
        end.board.publish(LanePlan({"work": (0,)}))
        statement, read = {
            "feedback": (
                "INSERT INTO feedback (producer, number, operator, replica, kind, content) "
                "VALUES ('', 0, 'work', 0, 'SyncReply', ?)",
                lambda: end.board.feedback(("in", 0), ["work"], 0),
            ),
            "requests": (
                "INSERT INTO batches (operator, lane, events, births, data, requests) "
                "VALUES ('work', 0, 1, x'', x'', ?)",
                lambda: end.lanes.take(10),
            ),
            "plans": ("INSERT INTO plans (content) VALUES (?)", lambda: end.board.plan()),
        }[column]
        db.execute(statement, (bomb,))
        db.execute("UPDATE lanes SET arrived = 1, head = 1 WHERE lane = 0")
        db.commit()
        with pytest.raises(ValueError):  # noqa: PT011 - what is no JSON, in whatever way
            read()
    assert not (tmp_path / "trace").exists()
    pickle.loads(bomb)
    assert (tmp_path / "trace").exists(), "it would have left a trace"


@needs_root
@pytest.mark.parametrize("kind", ["folder", "link in it"])
def test_the_folder_on_this_machine_of_a_state_elsewhere_is_ours_alone(tmp_path, monkeypatch, kind):
    """Its name can be guessed: somebody may have made it in a place where everybody can write."""
    monkeypatch.chdir(tmp_path)
    backend, folder = open_backend("kafka:here:1/orders"), tmp_path / "elastream-orders"
    assert folder_of(backend) == folder
    assert mode(folder) == 0o700
    theirs = folder
    if kind == "link in it":
        theirs = folder / "history.db"
        theirs.symlink_to(tmp_path / "victim")
    os.lchown(theirs, SOMEBODY_ELSE, SOMEBODY_ELSE)
    with pytest.raises(InvalidInputError, match=f"state folder {folder} cannot be used: .*yo"):
        folder_of(backend)
