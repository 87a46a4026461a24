"""A run in a real notebook kernel: functions of cells, the live table, and an interrupted cell."""

import os
import signal
from pathlib import Path
from threading import Thread

import nbformat
import pytest
from nbclient import NotebookClient

from support.processes import Process, descendants
from support.waiting import eventually

README = Path(__file__).parents[2] / "README.md"
FIRST = README.read_text().split("```python\n", 1)[1].split("```", 1)[0]
"""The first program of the README, in the cells that somebody would paste it into."""
DECLARE, START = FIRST.split("spark = ", 1)
START, END = START.split("run.await_termination()", 1)
START = f"spark = {START}run"
READY = """
import threading
import time
from pathlib import Path

from elastream.running.interrupts import INTERRUPTS

while len(run.recent()) < 3 or not any(each["numInputRows"] for each in stored.recentProgress):
    assert stored.isActive, stored.exception()
    time.sleep(0.1)

def tell():
    while not INTERRUPTS._waiting:
        time.sleep(0.01)
    Path("waiting").touch()

threading.Thread(target=tell).start()
"""
WAIT = f"run.await_termination(){END}"
LOOK = """
# This client sees what is shown while a cell works; a notebook sees it at any time.
for thread in threading.enumerate():
    if thread.name == "notebook":
        thread.join()
ids = sorted(row.id for row in spark.read.parquet("prices").collect())
print(run.is_active, run.exception, bool(ids), ids == list(range(len(ids))))
"""


def printed(cell):
    """What it has printed; Spark's complaints about a slow machine are elsewhere."""
    return "".join(
        output.text
        for output in cell.outputs
        if output.output_type == "stream" and output.name == "stdout"
    )


@pytest.mark.xdist_group("spark")
def test_the_first_program_of_the_readme_in_a_notebook(tmp_path):
    cells = [nbformat.v4.new_code_cell(code) for code in (DECLARE, START, READY, WAIT, LOOK)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    resources = {"metadata": {"path": str(tmp_path)}}
    client = NotebookClient(
        notebook, timeout=300, iopub_timeout=60, kernel_name="python3", resources=resources
    )
    started: list[Process] = []

    def interrupt(cell, cell_index, **_):
        """What the stop button does, once the cell waits."""
        if cell_index != 3:
            return
        kernel = client.km.provisioner.pid

        def press():
            eventually((tmp_path / "waiting").exists, 300)
            started.extend(descendants(kernel))
            os.kill(kernel, signal.SIGINT)

        Thread(target=press, daemon=True).start()

    client.on_cell_execute = interrupt
    client.execute()
    _, start, _, wait, look = notebook.cells
    (shown,) = [each for each in start.outputs if each.output_type == "display_data"]
    html = shown.data["text/html"]
    # The cell's output was kept up to date until the run had ended.
    assert "orders: ended" in html
    assert "<td>price</td>" in html
    assert "<svg" in html
    assert printed(wait).splitlines()[-1].startswith("orders: ended")
    assert printed(look).splitlines()[-1] == "False None True True"
    assert started
    eventually(lambda: not [process for process in started if process.alive])
