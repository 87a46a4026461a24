"""A run in a real notebook kernel: functions of cells, the live table, and an interrupted cell."""

import os
import signal
from pathlib import Path
from threading import Thread
from time import monotonic, sleep

import nbformat
import pytest
from nbclient import NotebookClient

from support.processes import Process, descendants

README = Path(__file__).parents[2] / "README.md"
FIRST = README.read_text().split("```python\n", 1)[1].split("```", 1)[0]
"""The first program of the README, in the cells that somebody would paste it into."""
DECLARE, START = FIRST.split("spark = ", 1)
START, END = START.split("run.await_termination()", 1)
START = f"spark = {START}run"
READY = """
import time
from pathlib import Path

while len(run.recent()) < 3 or not any(each["numInputRows"] for each in stored.recentProgress):
    assert stored.isActive, stored.exception()
    time.sleep(0.1)
"""
WAIT = f'Path("waiting").touch()\nrun.await_termination(){END}'
LOOK = """
import threading

# This client sees what is shown while a cell works; a notebook sees it at any time.
for thread in threading.enumerate():
    if thread.name == "notebook":
        thread.join()
ids = sorted(row.id for row in spark.read.parquet("prices").collect())
print(run.is_active, run.exception, bool(ids), ids == list(range(len(ids))))
"""


def printed(cell):
    return "".join(output.text for output in cell.outputs if output.output_type == "stream")


@pytest.mark.xdist_group("spark")
def test_the_first_program_of_the_readme_in_a_notebook(tmp_path):
    cells = [nbformat.v4.new_code_cell(code) for code in (DECLARE, START, READY, WAIT, LOOK)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    resources = {"metadata": {"path": str(tmp_path)}}
    client = NotebookClient(notebook, timeout=180, kernel_name="python3", resources=resources)
    started: list[Process] = []

    def interrupt(cell, cell_index, **_):
        """What the stop button does, once the cell waits."""
        if cell_index != 3:
            return
        kernel = client.km.provisioner.pid

        def press():
            deadline = monotonic() + 120
            while not (tmp_path / "waiting").exists() and monotonic() < deadline:
                sleep(0.1)
            sleep(0.5)
            started.extend(descendants(kernel))
            os.kill(kernel, signal.SIGINT)

        Thread(target=press, daemon=True).start()

    client.on_cell_execute = interrupt
    client.execute()
    _, start, _, wait, look = notebook.cells
    (shown,) = [each for each in start.outputs if each.output_type == "display_data"]
    html = shown.data["text/html"]
    # The cell's output was kept up to date until the run had ended.
    assert "orders: ended (running)" in html
    assert "<td>price</td>" in html
    assert "<svg" in html
    assert printed(wait).splitlines()[-1].startswith("orders: ended (running)")
    assert printed(look).splitlines()[-1] == "False None True True"
    assert started
    deadline = monotonic() + 30
    while left := [process for process in started if process.alive]:
        assert monotonic() < deadline, left
        sleep(0.1)
