"""`make bench-peers`: PyFlink and Bytewax beside elastream, at the same rate.

They are installed from their packages into environments of their own, in `.cache/peers`. What is
measured: latency of every event, processor time per event and operator, and how long nothing comes
out when the parallelism is changed. Bytewax cannot do so: it is stopped and started again.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import by_hand
from benchmarks.measure import Figure, report, reported
from benchmarks.peers.feed import serve
from benchmarks.record import keep
from benchmarks.spark.elasticity import Output
from benchmarks.spark.pipelines import active, all_active, line, running, wait
from benchmarks.spark.processor_time import of_family
from benchmarks.spark.steady import steady
from elastream.engines.spark.driver.session import new_session

RATE, WORKERS, FEWER = 2_000.0, 16, 12
WARM_UP, SECONDS, STALL_SECONDS = 20.0, 15.0, 15.0
HERE = Path(__file__).parent
ENVIRONMENTS = Path(".cache/peers")
PACKAGES = {"bytewax": "bytewax>=0.21", "flink": "apache-flink>=2"}
OPERATORS = 4


def environment(name: str) -> Path:
    """A Python that has the peer; it is made the first time."""
    folder = ENVIRONMENTS / name
    python = folder / "bin" / "python"
    if not (folder / ".installed").exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", PACKAGES[name]], check=True)
        (folder / ".installed").touch()
    return python.absolute()


@contextmanager
def started(words: list[Any], **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process, ended with all that it has started."""
    process = subprocess.Popen(
        [str(word) for word in words],
        env={**os.environ, **variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd=HERE,
    )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def noted(folder: Path) -> np.ndarray:
    """When each event was done, and when it had come."""
    lines = [line.split() for file in folder.glob("*.notes") for line in whole_lines(file)]
    return np.array([(float(done), float(born)) for done, born in lines]).reshape(-1, 2)


def whole_lines(file: Path) -> list[str]:
    """The last one may be half written."""
    return file.read_text().rpartition("\n")[0].splitlines()


def wait_for_events(folder: Path, seconds: float = 120.0) -> None:
    """Until something comes out."""
    deadline = time.monotonic() + seconds
    while not len(noted(folder)):
        if time.monotonic() > deadline:
            raise TimeoutError(f"nothing came out in {seconds:g} s")
        time.sleep(0.1)


def figures(name: str, folder: Path, process: int, change: Callable[[], str]) -> list[Figure]:
    """Measure while it runs, and then while its parallelism changes."""
    wait_for_events(folder)
    time.sleep(WARM_UP)
    cpu, begun = of_family(process), time.time()
    time.sleep(SECONDS)
    cpu, ended = of_family(process) - cpu, time.time()
    events = noted(folder)
    events = events[(events[:, 0] >= begun) & (events[:, 0] < ended)]
    latencies = events[:, 0] - events[:, 1]
    return [
        Figure(
            f"{name}: mean, p99",
            f"{1e3 * latencies.mean():,.0f}, {1e3 * np.quantile(latencies, 0.99):,.0f} ms",
            baseline=True,
        ),
        Figure(
            f"{name}: events per second",
            f"{len(events) / (ended - begun):,.0f}/s",
            baseline=True,
        ),
        Figure(
            f"{name}: processor time per event and operator",
            f"{1e6 * cpu / max(len(events), 1) / OPERATORS:.0f} µs",
            baseline=True,
        ),
        Figure(f"{name}: nothing comes out while its parallelism changes", change(), baseline=True),
    ]


def longest_stall(folder: Path, since: float) -> float:
    """The longest time between two events since then."""
    moments = np.sort(noted(folder)[:, 0])
    later = moments[moments >= since - 0.5]
    return float(np.diff(later).max()) if len(later) > 1 else float("nan")


def elastream() -> list[Figure]:
    """A chain with a pool of sixteen, then twelve active replicas of it."""
    session = new_session(2 * (WORKERS + 1) + 4)
    topology = line(OPERATORS, WORKERS, wait, chain=True)
    found = steady(topology, RATE, session, warm_up=WARM_UP, seconds=SECONDS)
    with running(topology, RATE, session) as run:
        effective = run.engine.topology
        run.engine.apply(all_active(effective))
        time.sleep(WARM_UP)
        output = Output(run, effective.operators[-1].name)
        output.look()
        run.engine.apply(active(effective, {op.name: FEWER for op in effective.operators}))
        stall = output.longest_stall(STALL_SECONDS)
    session.stop()
    each = found.cores / found.throughput / OPERATORS
    return [
        Figure("elastream: mean, p99", f"{1e3 * found.mean:,.0f}, {1e3 * found.p99:,.0f} ms"),
        Figure("elastream: events per second", f"{found.throughput:,.0f}/s"),
        Figure("elastream: processor time per event and operator", f"{1e6 * each:.0f} µs"),
        Figure("elastream: nothing comes out while its parallelism changes", f"{stall:.2f} s"),
    ]


def bytewax() -> list[Figure]:
    """Sixteen workers in one process, then the same with twelve."""
    python = environment("bytewax")

    def words(workers: int) -> list[Any]:
        return [python, "-m", "bytewax.run", "on_bytewax:flow", "-w", workers]

    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder)
        given = {"RATE": str(RATE), "NOTES": folder, "STARTED": str(time.time())}
        with started(words(WORKERS), **given) as process:

            def change() -> str:
                since = time.time()
                os.killpg(process.pid, signal.SIGTERM)
                with started(words(FEWER), **given):
                    time.sleep(STALL_SECONDS)
                    return f"{longest_stall(notes, since):.1f} s, by a restart"

            return figures("Bytewax", notes, process.pid, change)


def flink() -> list[Figure]:
    """A parallelism of sixteen, then of twelve, by the adaptive scheduler."""
    python = environment("flink")
    # Threads embed a Python that knows nothing of the environment.
    (packages,) = python.parent.parent.glob("lib/python*/site-packages")
    found: list[Figure] = []
    for mode, bundle in (("thread", 1), ("process", 1), ("process", 10)):
        rest = free_port()
        with tempfile.TemporaryDirectory() as folder:
            port = serve(RATE, 600.0)
            job = [python, "on_flink.py", port, folder, WORKERS, rest, mode, bundle]
            with started(job, PYTHONPATH=str(packages)) as process:

                def change(notes: Path = Path(folder), rest: int = rest) -> str:
                    since = time.time()
                    rescale(rest, FEWER)
                    time.sleep(STALL_SECONDS)
                    return f"{longest_stall(notes, since):.1f} s"

                name = f"PyFlink, {mode} mode, bundles of {bundle}"
                try:
                    found += figures(name, Path(folder), process.pid, change)
                except (TimeoutError, OSError) as error:
                    found.append(Figure(name, f"not measured: {error}"))
    return found


def rescale(rest: int, parallelism: int) -> None:
    """Ask for another parallelism of every part of the job but its source."""
    base = f"http://127.0.0.1:{rest}/jobs"
    (job,) = [each["id"] for each in asked(base)["jobs"] if each["status"] == "RUNNING"]
    bounds = asked(f"{base}/{job}/resource-requirements")
    for of in bounds.values():
        most = min(of["parallelism"]["upperBound"], parallelism)
        of["parallelism"] = {"lowerBound": 1, "upperBound": most}
    body = json.dumps(bounds).encode()
    head = {"Content-Type": "application/json"}
    url = f"{base}/{job}/resource-requirements"
    urllib.request.urlopen(urllib.request.Request(url, body, head, method="PUT"), timeout=10)


def asked(url: str) -> Any:
    """What the job's manager says."""
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)


def free_port() -> int:
    """One that nobody uses."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


PEERS = {"elastream": elastream, "bytewax": bytewax, "flink": flink}


def main(*names: str) -> bool:
    """Print those of these names, or all, side by side."""
    found = [figure for name in names or PEERS for figure in PEERS[name]()]
    met = report(f"Peers: {OPERATORS} functions of 1 ms, {RATE:,.0f} events/s", found)
    print(f"kept in {keep(reported)}: commit it to publish the figures, also those that we lose")
    return met


if __name__ == "__main__":
    by_hand(main, PEERS)
