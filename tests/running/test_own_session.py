"""A session that somebody made without elastream: what is missing is said, and what to set."""

import os
import subprocess
import sys
import venv

import pytest

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
