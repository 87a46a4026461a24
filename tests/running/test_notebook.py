"""A run in a real notebook kernel: functions of cells, the live table, and an interrupted cell."""

import os
import signal
from threading import Thread
from time import monotonic, sleep

import nbformat
import pytest
from nbclient import NotebookClient

from support.processes import Process, descendants

DECLARE = """
import elastream

pipeline = elastream.Pipeline("orders")
orders = pipeline.source("orders")
TAX = 1.2

def with_tax(total):
    return TAX * total

@pipeline.operator(after=orders, pool=2)
def price(row: dict) -> dict:
    return {"id": row["value"], "total": with_tax(row["value"])}
"""
START = """
spark = elastream.session(pipeline)
stream = spark.readStream.format("rate").option("rowsPerSecond", 50).load().coalesce(1)
run = elastream.run(
    pipeline, {"orders": stream}, td=0.5, outputs={"price": "id long, total double"}
)
query = run["price"].writeStream.format("memory").queryName("prices").start()
run
"""
WAIT = """
from pathlib import Path
import threading
import time
while len(run.recent()) < 3 or not spark.table("prices").count():
    time.sleep(0.1)
Path("waiting").touch()
run.await_termination()
# This client sees what is shown while a cell works; a notebook sees it at any time.
for thread in threading.enumerate():
    if thread.name == "notebook":
        thread.join()
print(run.is_active, run.exception)
"""
LOOK = """
query.processAllAvailable()
print(all(abs(row.total - 1.2 * row.id) < 1e-9 for row in spark.table("prices").collect()))
query.stop()
"""


def printed(cell):
    return "".join(output.text for output in cell.outputs if output.output_type == "stream")


@pytest.mark.xdist_group("spark")
def test_a_run_in_a_notebook(tmp_path):
    cells = [nbformat.v4.new_code_cell(code) for code in (DECLARE, START, WAIT, LOOK)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    resources = {"metadata": {"path": str(tmp_path)}}
    client = NotebookClient(notebook, timeout=180, kernel_name="python3", resources=resources)
    started: list[Process] = []

    def interrupt(cell, cell_index, **_):
        """What the stop button does, once the cell waits."""
        if cell_index != 2:
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
    _, start, wait, look = notebook.cells
    (shown,) = [each for each in start.outputs if each.output_type == "display_data"]
    html = shown.data["text/html"]
    # The cell's output was kept up to date until the run had ended.
    assert "orders: ended (running)" in html
    assert "<td>price</td>" in html
    assert "<svg" in html
    assert printed(wait).splitlines()[-1] == "False None"
    assert printed(look).splitlines()[-1] == "True"
    assert started
    deadline = monotonic() + 30
    while left := [process for process in started if process.alive]:
        assert monotonic() < deadline, left
        sleep(0.1)
