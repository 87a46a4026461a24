"""`elastream run FILE.py:NAME` with the session that the tests share, so that each is quick."""

import json

import pytest

from elastream.cli import spark_run
from elastream.errors import EngineError

FAILING = """
import pyarrow as pa
from elastream import Pipeline

pipeline = Pipeline("numbers")

@pipeline.operator(after=pipeline.source("numbers"), pool=1)
def double(rows: list) -> list:
    return [{"n": 2 * row["n"]} for row in rows]

@pipeline.operator(after=double, pool=1, chain=True)
def check(row: dict) -> dict:
    if row["n"] % 200 == 14:
        raise ValueError(f"no number like {row['n']}")
    return row

sources = {"numbers": [pa.table({"n": range(at, at + 100)}) for at in range(0, 500, 100)]}
"""
"""Events 7, 107, 207, ... fail: five of them, in an operator inside a chain."""
WHY = "5 events were set aside, most by 'check' (ValueError: no number like #)"


FRAMES = """
from threading import Thread
from time import sleep
from elastream import Pipeline

pipeline = Pipeline("frames")

@pipeline.operator(after=pipeline.source("numbers"), pool=1)
def double(row: dict) -> dict:
    return {"n": row["n"], "twice": 2 * row["n"]}

def sources(spark):
    return {"numbers": spark.readStream.schema("n long").json("FOLDER/numbers")}

outputs = {"double": "n long, twice long"}

def sinks(run):
    output = run["double"].writeStream.format("parquet")
    query = output.option("checkpointLocation", "FOLDER/checkpoint").start("FOLDER/doubled")
    Thread(target=end_after_all, args=(run, query), daemon=True).start()

def end_after_all(run, query):
    while query.isActive and sum(each["numInputRows"] for each in query.recentProgress) < 300:
        sleep(0.1)
    run.interrupt()
"""


@pytest.fixture
def run(elastream, spark_session, monkeypatch, tmp_path):
    """Run a module's pipeline; the command line would stop its session, and not this one."""
    monkeypatch.setattr(spark_run, "session", lambda *_, **__: spark_session)
    monkeypatch.setattr(spark_session, "stop", lambda: None)

    def call(module, *options):
        (tmp_path / "mine.py").write_text(module)
        place = ("--state", tmp_path / "state", "--td", "0.5")
        return elastream("run", f"{tmp_path}/mine.py:pipeline", *place, *options)

    return call


def test_events_that_were_set_aside_are_in_the_summary_and_the_last_line(run):
    options = ("--initial", "double=1", "--queue-size", 1000, "--drain-seconds", 30)
    ended = run(FAILING, *options)
    assert ended.code == 0, ended.err
    assert ["events", "set", "aside", "5"] in [line.split() for line in ended.out.splitlines()]
    assert ended.err.splitlines()[-1].startswith(f"elastream: {WHY}: see 'elastream dead-letters ")
    assert ended.err.count("were set aside") == 1
    # Also what was drained after the last whole interval.
    assert "500 events in, 495 out, 5 set aside" in ended.err


def test_too_many_dead_letters_end_with_exit_code_1_and_the_cause(run):
    ended = run(FAILING, "--fail-on-dead-letters", 5, "--json")
    assert ended.code == 1
    assert json.loads(ended.out)["events_set_aside"] == 5
    assert ended.err.splitlines()[-1].startswith(f"elastream: {WHY}, and 5 is the limit: see")


class Gone:
    """The session of a JVM that has died."""

    def stop(self):
        raise ConnectionRefusedError("the JVM is gone")


def test_a_run_whose_spark_has_died_ends_with_the_cause(elastream, monkeypatch, tmp_path):
    def fail(*_, **__):
        raise EngineError("the workers' query ended: Spark does not answer")

    monkeypatch.setattr(spark_run, "session", lambda *_, **__: Gone())
    monkeypatch.setattr(spark_run, "run", fail)
    (tmp_path / "mine.py").write_text(FAILING)
    ended = elastream("run", f"{tmp_path}/mine.py:pipeline", "--state", tmp_path / "state")
    assert ended.code == 1
    assert ended.err.splitlines()[-1] == (
        "elastream: the workers' query ended: Spark does not answer"
    )


def test_dataframes_go_in_and_out_of_a_module_that_names_them(run, spark_session, tmp_path):
    (tmp_path / "numbers").mkdir()
    lines = [json.dumps({"n": n}) for n in range(300)]
    (tmp_path / "numbers" / "all.json").write_text("\n".join(lines))
    ended = run(FRAMES.replace("FOLDER", str(tmp_path)), "--duration", 300, "--json")
    assert ended.code == 0, ended.err
    assert not spark_session.streams.active, "Spark logs a stack trace when it stops before a query"
    rows = spark_session.read.parquet(str(tmp_path / "doubled")).collect()
    assert sorted((row.n, row.twice) for row in rows) == [(n, 2 * n) for n in range(300)]
