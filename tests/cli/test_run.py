import json
import sqlite3
import subprocess
import sys
import time

import pytest

from elastream.cli.targets import chosen_target
from elastream.errors import InvalidInputError
from elastream.running.traces import trace as played

PIPELINE = """
import pyarrow as pa
from elastream import Pipeline

pipeline = Pipeline("mine")
numbers = pipeline.source("numbers")

@pipeline.operator(after=numbers, pool=2)
def double(rows: list) -> list:
    return [{"n": 2 * row["n"]} for row in rows]

sources = {"numbers": lambda first, count: pa.table({"n": range(first, first + count)})}
"""


def test_a_trace_is_played_as_fast_and_as_high_as_asked():
    whole = played("step", speed=1, scale=1, duration=None)
    quick = played("step", speed=10, scale=0.5, duration=None)
    assert quick.duration == pytest.approx(whole.duration / 10)
    assert quick.rates == pytest.approx(whole.rates / 2)
    assert played("step", speed=1, scale=1, duration=30).duration == 30


def test_gaps_of_a_file_are_filled_when_asked_to(tmp_path):
    file = tmp_path / "gap.csv"
    file.write_text("time,value\n0,1\n1,2\n3,4\n")
    with pytest.raises(InvalidInputError, match="--fill-gaps"):
        played(str(file), speed=1, scale=1, duration=None)
    filled = played(str(file), speed=1, scale=1, duration=None, fill_gaps=True)
    assert filled.values.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("policy", ["slo", "oracle"])
@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--td", 0, "--td 0: it must be between 0.1 s and 86400 s"),
        ("--td", 0.05, "--td 0.05: it must be between 0.1 s and 86400 s"),
        ("--sample", 0, "--sample 0: it must be above 0"),
        ("--look-back", 1, "--look-back 1: a forecast needs at least 2 samples"),
        ("--port", 9000, "--port changes nothing without --serve: add that, too"),
        ("--executors", "8:1", "--executors 8:1: give the fewest and the most, as 1:8, the fewest"),
    ],
)
def test_what_no_loop_can_run_with_is_refused_before_spark_starts(
    elastream, policy, option, value, message
):
    ended = elastream("run", "--policy", policy, option, value)
    assert ended.code == 2
    assert ended.err.startswith(f"elastream: {message}")
    assert len(ended.err.splitlines()) == 1


def test_more_replicas_than_a_pool_holds_are_refused_as_in_a_simulation(elastream):
    for command in ("run", "simulate"):
        ended = elastream(command, "--policy", "static", "--replicas", 9, "--pool", 4)
        assert ended.code == 2
        assert "--replicas 9: the pool of 'stop-words' holds 4; give a larger" in ended.err


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("--on-error", "ignore", "unknown choice for --on-error 'ignore': There are: fail, set-"),
        ("--on-full", "lose", "unknown choice for --on-full 'lose': There are: block, drop"),
        ("--initial", "store=0", "--initial: 0 replicas of 'store': give 1 to 4"),
    ],
)
def test_what_cannot_run_is_refused_before_spark_starts(elastream, option, value, told):
    ended = elastream("run", option, value)
    assert ended.code == 2
    assert ended.err.startswith(f"elastream: {told}")
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize("option", ["speed", "scale", "duration"])
def test_a_trace_cannot_be_played_backwards(option):
    settings = {"speed": 1.0, "scale": 1.0, "duration": 10.0, option: -1.0}
    with pytest.raises(InvalidInputError, match=f"{option} -1"):
        played("step", **settings)


@pytest.mark.parametrize(
    ("content", "target", "message"),
    [
        (None, "none.py:pipeline", "there is no such file"),
        (PIPELINE, "mine", "name a pipeline as FILE.py:NAME"),
        (PIPELINE, "mine.py:numbers", "'numbers' is not an elastream.Pipeline"),
        (PIPELINE, "mine.py:pipelin", "did you mean 'pipeline'"),
        (
            PIPELINE.replace("sources", "feeds"),
            "mine.py:pipeline",
            "it needs a dictionary 'sources'",
        ),
    ],
)
def test_a_file_without_a_pipeline_is_refused(tmp_path, content, target, message):
    if content:
        (tmp_path / "mine.py").write_text(content)
    with pytest.raises(InvalidInputError, match=message):
        chosen_target(f"{tmp_path}/{target}", "twitter", 2, 0.0, tmp_path)


@pytest.mark.long  # Like the exit code of too many dead letters, but in a process of its own.
def test_an_operator_that_fails_ends_the_run_with_exit_code_1(tmp_path):
    (tmp_path / "mine.py").write_text(PIPELINE.replace("2 * row", "row['none'] * row"))
    command = [sys.executable, "-m", "elastream", "run", f"{tmp_path}/mine.py:pipeline"]
    options = ["--trace", "ramp", "--scale", "0.1", "--td", "2", "--on-error", "fail"]
    done = subprocess.run(
        [*command, *options, "--state", str(tmp_path / "state")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "the operator 'double' failed: KeyError: 'none'" in done.stderr


def test_a_pipeline_of_ones_own_runs_on_spark_and_is_measured(tmp_path):
    (tmp_path / "mine.py").write_text(PIPELINE)
    state = tmp_path / "state"
    command = [sys.executable, "-m", "elastream", "run", f"{tmp_path}/mine.py:pipeline"]
    options = ["--trace", "ramp", "--scale", "0.1", "--td", "2", "--duration", "6", "--json"]
    done = subprocess.run(
        [*command, *options, "--state", str(state), "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    measured = json.loads(done.stdout)
    assert measured["events_out"] > 250
    assert 0.5 < measured["processed_ratio"] <= 1.05
    assert (tmp_path / "run.png").exists()
    with sqlite3.connect(state / "history.db") as history:
        assert history.execute("SELECT count(*) FROM cycles").fetchone() in {(2,), (3,)}
    history.close()


def test_pools_and_waiting_are_those_of_the_command_line(tmp_path):
    (tmp_path / "mine.py").write_text(PIPELINE)
    target = chosen_target(f"{tmp_path}/mine.py:pipeline", "", 5, 20.0, tmp_path)
    (double,) = target.topology.operators
    assert double.pool == 5
    began = time.monotonic()
    assert double.function([{"n": 2}] * 5) == [{"n": 4}] * 5
    assert time.monotonic() - began >= 0.1


def test_outputs_that_nobody_reads_are_refused(tmp_path):
    (tmp_path / "mine.py").write_text(PIPELINE + '\noutputs = {"double": "n long"}\n')
    with pytest.raises(InvalidInputError, match=r"define a function sinks\(run\)"):
        chosen_target(f"{tmp_path}/mine.py:pipeline", "", None, 0.0, tmp_path)


def test_sources_may_be_a_function_of_the_session(tmp_path):
    (tmp_path / "mine.py").write_text(
        PIPELINE.replace("sources = {", "def sources(spark):\n    return {")
    )
    target = chosen_target(f"{tmp_path}/mine.py:pipeline", "", None, 0.0, tmp_path)
    sources, plays_trace = target.sources("a session", played("step", duration=10))
    assert plays_trace
    assert sources["numbers"].columns == ["n"]


def test_a_state_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "state").write_text("mine")
    with pytest.raises(InvalidInputError, match="cannot be used"):
        chosen_target(None, "twitter", None, 0.0, tmp_path / "state")


def test_what_an_application_stores_is_private_from_the_start(tmp_path):
    chosen_target(None, "twitter", None, 0.0, tmp_path / "out" / "state")
    assert (tmp_path / "out" / "state").stat().st_mode & 0o777 == 0o700
