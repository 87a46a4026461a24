import subprocess
import sys

import pytest

from elastream.cli.choices import executors_from
from elastream.errors import InvalidInputError

PROGRAM = """
import sys
import threading
import time
from pyspark.sql import SparkSession

session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
rows = session.readStream.format("rate").option("rowsPerSecond", 50).load()
writer = rows.writeStream.format("noop").queryName("ticks").trigger(processingTime="1 second")
query = writer.option("checkpointLocation", sys.argv[1]).start()
end = time.monotonic() + 180
while not any(progress.numInputRows for progress in query.recentProgress):
    assert query.isActive and time.monotonic() < end
    time.sleep(0.1)
while not any(thread.name == "elastream-attach" for thread in threading.enumerate()):
    assert time.monotonic() < end
    time.sleep(0.1)
print("rows came")
query.stop()
session.stop()
sys.exit(7)
"""


def run(*words, cwd=None):
    return subprocess.run(
        [sys.executable, "-m", "elastream", "attach", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        cwd=cwd,
    )


@pytest.mark.xdist_group("spark")
def test_a_program_runs_as_it_is_and_its_query_is_watched(tmp_path):
    program = tmp_path / "job.py"
    program.write_text(PROGRAM)
    words = ["--advice-only", "--guard", "cooldown:up=10,down=60", "--serve", "--port", "0"]
    words += ["--history", str(tmp_path / "kept"), str(program), "--"]
    kept = tmp_path / "kept" / "ticks.db"
    done = run(*words, str(tmp_path / "checkpoint"))
    assert done.returncode == 7, done.stderr
    assert "rows came" in done.stdout
    assert "scaling ticks: 1 to 8 executors" in done.stderr
    assert "watch and steer ticks at http://127.0.0.1:" in done.stderr
    assert kept.stat().st_size > 0


@pytest.mark.parametrize("text", ["8", "1:", "a:b", "1-8", ""])
def test_bounds_that_make_no_sense_are_refused(text):
    with pytest.raises(InvalidInputError, match="as 1:8"):
        executors_from(text)


@pytest.mark.parametrize(
    "words", [["--executors", "8:1"], ["--executors", "0:4"], ["--target", "2"], ["--td", "0"]]
)
def test_what_cannot_be_meant_is_refused_before_the_program_runs(elastream, tmp_path, words):
    program = tmp_path / "job.py"
    program.write_text("print('it ran')")
    done = elastream("attach", *words, program)
    assert done.code == 2
    assert words[0].strip("-") in done.err
    assert "it ran" not in done.out


def test_a_program_without_a_query_is_told_so(elastream, tmp_path):
    program = tmp_path / "job.py"
    program.write_text("print('it ran')")
    done = elastream("attach", program)
    assert (done.code, done.out) == (0, "it ran\n")
    assert "no streaming query of this program was seen" in done.err


LOGS = """
import logging

logging.basicConfig(level=logging.INFO, filename="job.log")
logging.getLogger("job").info("begun")
logging.getLogger("elastream").info("scaling")
"""


def test_a_program_logs_as_it_is_set_up_to(tmp_path):
    program = tmp_path / "job.py"
    program.write_text(LOGS)
    done = run(str(program), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "job.log").read_text() == "INFO:job:begun\n"
    assert "elastream: scaling" in done.stderr
    assert "begun" not in done.stderr


@pytest.mark.parametrize(
    ("raised", "shown"),
    [
        ("EOFError('no line')", "EOFError: no line"),
        ("OSError(errno.EPIPE, 'gone')", "BrokenPipeError: [Errno 32] gone"),
        ("InvalidInputError('of a call')", "InvalidInputError: of a call"),
    ],
)
def test_an_error_of_the_program_is_shown_as_python_does(elastream, tmp_path, raised, shown):
    program = tmp_path / "job.py"
    errors = "import errno\nfrom elastream.errors import InvalidInputError\n"
    program.write_text(f"{errors}raise {raised}")
    done = elastream("attach", program)
    assert done.code == 1
    assert "Traceback (most recent call last)" in done.err
    assert f'File "{program}", line 3' in done.err
    assert shown in done.err


@pytest.mark.parametrize("code", [0, 7])
def test_a_program_that_exits_keeps_its_code(elastream, tmp_path, code):
    program = tmp_path / "job.py"
    program.write_text(f"raise SystemExit({code})")
    assert elastream("attach", program).code == code


def test_a_program_that_is_not_there_is_a_mistake(tmp_path):
    done = run(str(tmp_path / "none.py"))
    assert done.returncode == 2
    assert "there is no such program" in done.stderr
