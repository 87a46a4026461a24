import csv
import io
import json

import pytest
from typer.testing import CliRunner

from elastream.cli import app
from elastream.control import ControlLoop
from elastream.control.history import History
from elastream.errors import InvalidInputError
from elastream.policies.pa_sps import PaSps
from elastream.predictors import PREDICTORS
from support.engines import PlaybackEngine
from support.pipelines import interval, line

LINE = line("clean", "store")


@pytest.fixture
def recorded(tmp_path):
    history = History(tmp_path / "run.db")
    script = [interval(LINE, events, number=i) for i, events in enumerate((3000, 9000))]
    engine = PlaybackEngine(LINE, [*script, RuntimeError("lost")])
    loop = ControlLoop(engine, PaSps(), PREDICTORS["basic"](), record=history.record)
    list(loop.run(3))
    history.close()
    return str(tmp_path / "run.db")


def run(*arguments):
    result = CliRunner().invoke(app, ["history", *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_the_table_shows_what_was_decided_and_why(recorded):
    header, first, second, third = run(recorded).splitlines()
    assert header.split()[:3] == ["time", "input/s", "expected/s"]
    assert "unchanged" in first
    assert "clean 1 -> 3: 300 events/s expected (basic), 10 ms each" in second
    assert "RuntimeError: lost" in third


def test_only_the_last_cycles_are_shown(recorded):
    assert len(run(recorded, "--last", "1").splitlines()) == 2


def test_json_has_one_cycle_a_line(recorded):
    cycles = [json.loads(text) for text in run(recorded, "--json").splitlines()]
    assert [cycle["outcome"] for cycle in cycles] == ["unchanged", "changed", "failed"]
    assert cycles[1]["changes"][0]["after"] == 3


def test_csv_has_one_operator_a_row(recorded):
    rows = list(csv.DictReader(io.StringIO(run(recorded, "--csv"))))
    assert [(row["operator"], row["planned"]) for row in rows[2:]] == [
        ("clean", "3"),
        ("store", "3"),
    ]


def test_misuse_is_refused(recorded, tmp_path):
    with pytest.raises(InvalidInputError, match="choose --json or --csv"):
        run(recorded, "--json", "--csv")
    with pytest.raises(InvalidInputError, match="no such file"):
        run(str(tmp_path / "none"))
    with pytest.raises(InvalidInputError, match="is a folder: name the history in it"):
        run(str(tmp_path))
