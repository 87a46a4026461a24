import json
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from elastream.cli import app
from elastream.engines.spark.arrow_ipc import to_bytes
from elastream.engines.spark.backends.dead_letters import DeadLetter
from elastream.engines.spark.backends.layout import OperatorLanes
from elastream.engines.spark.backends.ledger import Counts
from elastream.engines.spark.backends.sqlite import SqliteBackend
from elastream.errors import InvalidInputError, UnknownNameError


def run(*arguments):
    result = CliRunner().invoke(app, ["dead-letters", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


@pytest.fixture
def folder(tmp_path):
    """Three dead letters of two operators."""
    with SqliteBackend(tmp_path).connect() as connection:
        connection.lanes.join(("parse", 0), 1)
        for operator, error, events in (
            ("parse", "ValueError: no number\nin line 3", [{"id": 1, "text": "one"}]),
            ("parse", "ValueError: no number\nin line 7", [{"id": 2, "text": "two"}]),
            ("store", "KeyError: 'at'", [{"at": datetime(2024, 2, 29, tzinfo=UTC)}, {"at": None}]),
        ):
            data = to_bytes(pa.Table.from_pylist(events))
            letter = DeadLetter(operator, len(events), error, data)
            connection.lanes.commit([], [], Counts(dropped=len(events)), [letter])
    return tmp_path


def test_they_are_counted_by_operator_and_error_and_the_newest_are_shown(folder):
    lines = run(folder, "--last", "2").splitlines()
    assert lines[0].split() == ["operator", "error", "events"]
    assert {tuple(line.split()) for line in lines[1:3]} == {
        ("parse", "ValueError:", "no", "number", "2"),
        ("store", "KeyError:", "'at'", "2"),
    }
    assert lines[4].endswith("store: KeyError: 'at'")
    assert lines[5:7] == ['  {"at": "2024-02-29 00:00:00+00:00"}', '  {"at": null}']
    assert lines[-1] == '  {"id": 2, "text": "two"}'


def test_an_operator_can_be_chosen_and_programs_can_read_them(folder):
    newest, oldest = map(json.loads, run(folder, "--json", "--operator", "parse").splitlines())
    assert (newest["operator"], newest["events"]) == ("parse", [{"id": 2, "text": "two"}])
    assert oldest["error"] == "ValueError: no number\nin line 3"
    assert datetime.fromisoformat(oldest["time"]).tzinfo
    assert "there are no dead letters" in run(folder, "--operator", "nobody")


def test_an_operator_that_is_not_there_is_named(folder):
    SqliteBackend(folder).prepare("orders", {"parse": OperatorLanes(1), "store": OperatorLanes(1)})
    with pytest.raises(UnknownNameError, match="'pars': did you mean 'parse'"):
        run(folder, "--operator", "pars", "--retry")
    assert "there are no dead letters" not in run(folder, "--operator", "parse")


def test_they_can_be_put_back(folder):
    assert "put back: 2 dead letters" in run(folder, "--operator", "parse", "--retry")
    assert "parse" not in run(folder)
    with SqliteBackend(folder).connect() as connection:
        totals = connection.ledger.totals()
    assert (totals.waiting("parse"), totals.waiting("store")) == (2, 0)


def test_a_state_that_no_run_has_used_is_refused_and_left_alone(tmp_path):
    for state in (tmp_path, tmp_path / "nowhere", f"sqlite:{tmp_path}"):
        with pytest.raises(InvalidInputError, match=r"no run has used this state; name the state"):
            run(state)
    with pytest.raises(InvalidInputError, match=r"neither a folder nor a known kind of URL: sqlit"):
        run("redis:here")
    assert list(tmp_path.iterdir()) == []


def test_a_state_can_be_named_by_its_url(folder):
    assert run(f"sqlite:{folder}", "--json") == run(folder, "--json")
