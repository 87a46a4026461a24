import json
import os
import runpy
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic, sleep
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet
import pytest

from support.processes import descendants

ROOT = Path(__file__).parent.parent
FIRST = ROOT / "examples" / "first_pipeline.py"


def test_the_readme_shows_the_first_pipeline_as_it_is():
    code = FIRST.read_text().split('"""\n\n', 1)[1]
    assert code in (ROOT / "README.md").read_text()


def test_the_first_pipeline_does_what_it_says():
    example = runpy.run_path(str(FIRST))
    topology = example["pipeline"].topology()
    priced = topology.by_name["price"].function(example["sources"]["orders"](0, 20))
    assert priced["total"][7].as_py() == 8 * 19.9
    (condition,) = (edge.when for edge in topology.incoming["alert"])
    large = priced.filter(condition(priced))
    assert large.num_rows == 6
    told = topology.by_name["alert"].function(large.to_pylist())
    assert told[0] == {"id": 7, "text": "a large order: 159.20"}
    assert isinstance(priced, pa.Table)


def test_policies_are_compared_in_a_few_lines(capsys):
    runpy.run_path(str(ROOT / "examples" / "compare_policies.py"))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["presps", "pa-sps", "autoscale+"]
    assert "elastream.engines.simulation" in sys.modules


def test_dataframes_go_through_a_pipeline_and_into_windows(spark_session, tmp_path, capsys):
    example = runpy.run_path(str(ROOT / "examples" / "dataframes.py"))
    with ThreadPoolExecutor(1) as elsewhere:  # In this thread no session is active.
        elsewhere.submit(example["run"], spark_session, tmp_path, enough=6000).result()
    rows = spark_session.read.parquet(str(tmp_path / "hot")).collect()
    assert "windows in" in capsys.readouterr().out
    assert rows
    assert all(row.celsius > 30 for row in rows)


def test_the_readme_shows_the_first_run_as_it_is():
    code = (ROOT / "examples" / "first_run.py").read_text().split('"""\n\n', 1)[1]
    assert code in (ROOT / "README.md").read_text()


def press_ctrl_c(started):
    """A terminal interrupts the whole group: Spark's processes, too."""
    os.killpg(started.pid, signal.SIGINT)


def committed(folder):
    """The files that Spark has committed: a query that is stopped may leave half of another one."""
    logs = (folder / "_spark_metadata").glob("[0-9]*")
    lines = [line for log in logs for line in log.read_text().splitlines()[1:]]
    return sorted({urlsplit(json.loads(line)["path"]).path for line in lines})


def rows_in(file):
    return pyarrow.parquet.read_metadata(file).num_rows


def interrupt_the_program(started):
    """Under `spark-submit` Java is the parent, and Ctrl-C would end it: only tell the program."""
    (program,) = [
        each
        for each in descendants(started.pid)
        if each.command.startswith(sys.executable) and "first_run.py" in each.command
    ]
    os.kill(program.number, signal.SIGINT)


SUBMITTED = [str(Path(sys.executable).with_name("spark-submit")), "--master", "local[16]"]


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize(
    ("command", "interrupt"),
    [
        pytest.param([sys.executable], press_ctrl_c, id="python"),
        pytest.param(SUBMITTED, interrupt_the_program, id="spark-submit", marks=pytest.mark.long),
    ],
)
def test_the_first_run_ends_when_interrupted_with_everything_stored(tmp_path, command, interrupt):
    said = tmp_path / "said"
    with said.open("w") as log:
        started = subprocess.Popen(
            [*command, str(ROOT / "examples" / "first_run.py")],
            cwd=tmp_path,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        deadline = monotonic() + 300
        while not any(map(rows_in, committed(tmp_path / "prices"))):
            assert started.poll() is None, said.read_text()
            assert monotonic() < deadline, said.read_text()
            sleep(0.2)
        interrupt(started)
        started.wait(300)
    finally:
        if started.poll() is None:
            os.killpg(started.pid, signal.SIGKILL)
            started.wait()
    text = said.read_text()
    assert started.returncode == 0, text
    lines = text.splitlines()
    assert [line for line in lines if line.startswith("orders: ended, ")]
    told = [line for line in lines if line.startswith("elastream: ")]
    assert told == ["elastream: draining; Ctrl-C again stops at once"]
    # PySpark's own servers may complain while the program exits; nobody's query was cancelled.
    assert "KeyboardInterrupt" not in text
    assert command == SUBMITTED or "cancelled" not in text
    stored = pyarrow.parquet.read_table(committed(tmp_path / "prices"))["id"].to_pylist()
    assert stored
    assert sorted(stored) == list(range(len(stored)))
