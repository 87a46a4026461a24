import pyarrow as pa
import pytest
from typer.testing import CliRunner

from elastream.cli import app
from elastream.engines.spark.arrow_ipc import to_bytes
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.backends.ledger import Counts
from elastream.engines.spark.backends.parcels import Parcel
from elastream.engines.spark.backends.sqlite import SqliteBackend
from elastream.engines.spark.births import Births
from elastream.errors import BackendUnavailableError, InvalidInputError


def run(*arguments):
    return CliRunner().invoke(app, ["state", *map(str, arguments)], catch_exceptions=False).stdout


@pytest.fixture
def folder(tmp_path):
    """Three events wait."""
    backend = SqliteBackend(tmp_path / "state")
    backend.prepare("words: in -> count", {"count": OperatorLanes(2)})
    with backend.connect() as connection:
        connection.lanes.join(("in", 0), 1)
        data = to_bytes(pa.table({"word": ["a", "b", "c"]}))
        parcel = Parcel("count", 1, 3, Births.evenly(3, 1.0), data)
        assert connection.lanes.commit([], [parcel], Counts(processed=3))
    return backend.folder


def test_a_state_is_shown(folder):
    lines = run("show", folder).splitlines()
    assert lines[:2] == [f"sqlite:{folder}", "words: in -> count"]
    assert ["count", "0", "3", "0"] in [line.split() for line in lines]


def test_a_state_goes_into_a_file_and_into_another_state(folder, tmp_path):
    assert "words: in -> count" in run("export", tmp_path / "file", "--state", folder)
    assert "words: in -> count" in run("import", tmp_path / "file", "--state", tmp_path / "new")
    assert run("show", folder).splitlines()[1:] == run("show", tmp_path / "new").splitlines()[1:]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("show", "{}/none"), "no run has used this state"),
        (("export", "{}/file", "--state", "{}/none"), "no run has used this state"),
        (("export", "{}/no/file", "--state", "{}/state"), "a folder that exists"),
        (("export", "{}/state", "--state", "{}/state"), "already exists: name a new file"),
        (("import", "{}/none", "--state", "{}/new"), "cannot be read"),
    ],
)
def test_what_cannot_be_is_refused_and_makes_nothing(folder, tmp_path, arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        run(*(each.format(tmp_path) for each in arguments))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state"]


def test_a_state_that_cannot_be_read_now_is_told_in_one_line(folder, elastream, monkeypatch):
    def full(self):
        raise BackendUnavailableError("the state cannot be written now: the disk is full")

    monkeypatch.setattr(SqliteBackend, "described", full)
    ended = elastream("state", "show", folder)
    assert ended.code == 1
    assert ended.err == "elastream: the state cannot be written now: the disk is full\n"
