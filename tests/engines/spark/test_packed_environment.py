"""An environment that Spark sends to its executors, as `docs/cluster.md` says."""

import sysconfig
import tarfile
import venv
from pathlib import Path

import pytest

import elastream
from support.numbers_program import Program, processed
from support.spark_cluster import StandaloneCluster

PIPELINE = """
import sys
from pathlib import Path

import pyarrow as pa

from elastream import Pipeline

pipeline = Pipeline("numbers")


@pipeline.operator(after=pipeline.source("numbers"), pool=2)
def double(rows: list) -> list:
    with (Path({folder!r}) / "seen").open("a") as seen:
        seen.write(sys.executable + "\\n")
    return rows


sources = {{"numbers": lambda first, count: pa.table({{"n": range(first, first + count)}})}}
"""


def pack(folder):
    """An environment in a folder, and the archive of it; it borrows what is installed here."""
    environment = folder / "environment"
    venv.create(environment, symlinks=True)
    paths = {"base": str(environment), "platbase": str(environment)}
    packages = Path(sysconfig.get_path("purelib", "venv", vars=paths))
    borrowed = Path(elastream.__file__).parent.parent, sysconfig.get_path("purelib")
    (packages / "borrowed.pth").write_text("".join(f"{path}\n" for path in borrowed))
    with tarfile.open(folder / "environment.tar.gz", "w:gz") as archive:
        archive.add(environment, ".")


@pytest.mark.long
def test_executors_run_the_python_of_the_archive(tmp_path, monkeypatch):
    pack(tmp_path)
    monkeypatch.setenv("PYSPARK_PYTHON", "./environment/bin/python")
    program = Program(tmp_path, rate=20, seconds=5, pipeline=PIPELINE)
    settings = ("spark.archives=environment.tar.gz#environment", "spark.executor.memory=512m")
    options = [word for setting in settings for word in ("--conf", setting)]
    with StandaloneCluster(tmp_path / "spark", 2, 4) as cluster:
        program.finish(tmp_path / "state", "--master", cluster.master, *options)
    assert processed(tmp_path / "state") == program.events
    seen = {Path(line) for line in (tmp_path / "seen").read_text().splitlines()}
    assert seen
    assert all(path.is_relative_to(tmp_path / "spark") for path in seen), seen
