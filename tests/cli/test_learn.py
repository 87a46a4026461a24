import json

import pytest
from typer.testing import CliRunner

from elastream.cli import app
from elastream.errors import InvalidInputError


def run(*arguments):
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def simulated(*options):
    return json.loads(run("simulate", "--trace", "square", "--json", *options))


def test_what_was_learned_from_a_trace_is_used(tmp_path):
    table = tmp_path / "table.json"
    told = run("learn", "--trace", "square", "--out", str(table))
    assert told == f"learned from 600 s of square: {table}\n"
    measured = simulated("--policy", "rlearning", "--table", str(table))
    assert measured["processed_ratio"] > 0.85
    assert 0.2 < measured["saved_resources"] < 0.9


def test_misuse_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="in a folder that exists"):
        run("learn", "--out", str(tmp_path / "none" / "table.json"))
    with pytest.raises(InvalidInputError, match="only the policy rlearning takes it"):
        simulated("--policy", "pa-sps", "--table", str(tmp_path))
    with pytest.raises(InvalidInputError, match="cannot be read"):
        simulated("--policy", "rlearning", "--table", str(tmp_path / "none"))


def test_a_table_is_learned_for_a_pipeline_of_ones_own(tmp_path):
    (tmp_path / "mine.py").write_text(
        "from elastream import Pipeline\n"
        "pipeline = Pipeline('orders')\n"
        "pipeline.add(len, name='price', after=pipeline.source('orders'), pool=4)\n"
    )
    table = tmp_path / "table.json"
    mine = f"{tmp_path}/mine.py:pipeline"
    run("learn", mine, "--trace", "square", "--out", str(table), "--service-ms", "2")
    options = ["--service-ms", "2", "--policy", "rlearning", "--table", str(table)]
    assert simulated(mine, *options)["processed_ratio"] > 0.5
