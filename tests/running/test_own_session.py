"""A session that somebody made without elastream: what is missing is said, and what to set."""

import os
import subprocess
import sys
import venv
from types import SimpleNamespace

import pytest

import elastream
from elastream.engines.spark.driver.session import TASK_RETRIES, check_python
from elastream.errors import InvalidInputError

PROGRAM = """
from pyspark.sql import SparkSession
import elastream.errors

spark = SparkSession.builder.master("local[12]").config("spark.ui.enabled", "false").getOrCreate()
pipeline = elastream.Pipeline("numbers")
pipeline.add(len, name="count", after=pipeline.source("numbers"), pool=1)
try:
    elastream.run(pipeline, {"numbers": [[{"n": 1}]]}, session=spark)
except elastream.errors.InvalidInputError as error:
    print(error)
"""


@pytest.mark.long
@pytest.mark.xdist_group("spark")
def test_a_session_whose_python_lacks_elastream_is_refused_with_what_to_set(tmp_path):
    venv.create(tmp_path / "other", with_pip=False, symlinks=True)
    other = tmp_path / "other" / "bin"
    # Without PYSPARK_PYTHON, Spark takes the first python3 of the path.
    environment = {**os.environ, "PATH": f"{other}:{os.environ['PATH']}"}
    environment.pop("PYSPARK_PYTHON", None)
    environment.pop("PYTHONPATH", None)
    given = f"import sys\nsys.path[:0] = {[path for path in sys.path if path]!r}\n"
    found = subprocess.run(
        [sys.executable, "-c", given + PROGRAM],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    (said,) = found.stdout.splitlines() or [found.stderr]
    assert said.startswith("Spark runs its tasks with 'python3'")
    assert f"set PYSPARK_PYTHON={sys.executable}" in said


def test_a_python_that_only_executors_have_is_refused_with_what_to_do():
    session = SimpleNamespace(sparkContext=SimpleNamespace(pythonExec="./environment/bin/python"))
    with pytest.raises(InvalidInputError, match=r"'./environment/bin/python', .* unpack the env"):
        check_python(session)


def pool_of(replicas):
    pipeline = elastream.Pipeline("numbers")
    pipeline.add(len, name="count", after=pipeline.source("numbers"), pool=replicas)
    return pipeline


def test_an_existing_session_needs_slots_for_one_generation_only(spark_session):
    """It has 64: two generations of 31 replicas do not fit, and one does."""
    assert elastream.session(pool_of(31)).sparkContext is spark_session.sparkContext
    with pytest.raises(InvalidInputError, match="task slots, and the Spark session has 64"):
        elastream.session(pool_of(64))


SIBLING_PROGRAM = """
import elastream
from prices_of_this_shop import double

pipeline = elastream.Pipeline("numbers")
pipeline.add(double, after=pipeline.source("numbers"), pool=1)
with elastream.run(pipeline, {"numbers": [[{"n": 1}]]}, on_error="fail") as run:
    run.await_termination()
print(run.status())
"""


@pytest.mark.long
@pytest.mark.xdist_group("spark")
def test_replicas_import_a_module_next_to_the_program(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "program.py").write_text(SIBLING_PROGRAM)
    (tmp_path / "there" / "prices_of_this_shop.py").write_text(
        "def double(rows: list):\n    return [{'n': 2 * row['n']} for row in rows]\n"
    )
    found = subprocess.run(
        [sys.executable, tmp_path / "there" / "program.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "1 events in, 1 out" in found.stdout, found.stderr


@pytest.mark.long
@pytest.mark.xdist_group("spark")
def test_a_program_that_another_one_imports_does_not_start_in_the_workers(tmp_path):
    (tmp_path / "shop.py").write_text(
        "import elastream\n"
        "pipeline = elastream.Pipeline('numbers')\n"
        "@pipeline.operator(after=pipeline.source('numbers'))\n"
        "def double(rows: list):\n"
        "    return rows\n"
        "elastream.run(pipeline, {'numbers': [[{'n': 1}]]}).await_termination()\n"
    )
    (tmp_path / "program.py").write_text("import shop\n")
    found = subprocess.run(
        [sys.executable, tmp_path / "program.py"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert f"{tmp_path / 'shop.py'}:6: elastream.run is called when the file" in found.stderr


SETTINGS_PROGRAM = """
import elastream

spark = elastream.session()
print(*(spark.conf.get(f"spark.{name}") for name in ("sql.shuffle.partitions", "task.maxFailures")))
"""


@pytest.mark.long
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize(
    ("submitted", "settings"),
    [
        ([], f"1 {TASK_RETRIES}"),
        (["spark.sql.shuffle.partitions=7", "spark.task.maxFailures=3"], "7 3"),
    ],
)
def test_what_was_submitted_stays(tmp_path, submitted, settings):
    (tmp_path / "program.py").write_text(SETTINGS_PROGRAM)
    options = [word for setting in submitted for word in ("--conf", setting)]
    spark_submit = os.path.join(os.path.dirname(sys.executable), "spark-submit")
    found = subprocess.run(
        [spark_submit, "--master", "local[2]", *options, str(tmp_path / "program.py")],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert settings in found.stdout.splitlines(), found.stderr
