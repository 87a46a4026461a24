"""What the service costs a running pipeline: a simulated one in real time, with one stream open.

Run it with `python -m benchmarks.control_service`. The same run is measured twice in a process of
its own, without the service and with it; the difference in processor time is what the service adds.
A large history is what a page loads when it opens.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import zlib
from contextlib import nullcontext
from itertools import count
from threading import Thread

import numpy as np

from benchmarks.command import by_hand
from benchmarks.measure import Figure, report, seconds
from elastream.cli.stream_client import LostError, StreamClient
from elastream.control import ControlLoop
from elastream.core.pipeline import Pipeline
from elastream.core.stats import IntervalStats, Latency, OperatorStats, SourceStats
from elastream.core.topology import Topology
from elastream.engines.simulation import PacedClock, SimulationEngine
from elastream.policies.pa_sps import PaSps
from elastream.predictors.linear import Lr
from elastream.service.api import create_app
from elastream.service.control_api import RunningPipeline
from elastream.service.live import Live
from elastream.service.server import listen, serving, url_of
from elastream.workloads import APPLICATIONS, TRACES

APPLICATION, TD, SAMPLE = "twitter-complex", 5.0, 1.0
WARM_UP, MEASURED = 5.0, 30.0
MOST_OF_A_CORE = 0.02
OPERATORS, ROWS, MOST_SECONDS = 50, 3_600, 1.0


def main() -> bool:
    """Print what a core spends on the pipeline, and what the service adds."""
    without, beside = share_of_a_core("without"), share_of_a_core("beside")
    added = beside - without
    taken, size = large_history()
    return report(
        f"Control service: {APPLICATION} in real time, a sample each second, one stream open",
        [
            Figure("the pipeline without it, of a core", f"{without:.2%}"),
            Figure("with it", f"{beside:.2%}"),
            Figure("added", f"{added:.2%}", f"{MOST_OF_A_CORE:.0%}", added <= MOST_OF_A_CORE),
            Figure(
                f"an hour of {OPERATORS} operators, packed: {size / 1e6:.1f} MB",
                f"{1000 * taken:.0f} ms",
                f"{1000 * MOST_SECONDS:.0f} ms",
                taken <= MOST_SECONDS,
            ),
        ],
    )


def share_of_a_core(how: str) -> float:
    """Run it in a process of its own, and listen to it if it tells where."""
    command = [sys.executable, "-m", "benchmarks.control_service", how]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        url = json.loads(process.stdout.readline())
        if url:
            Thread(target=follow, args=(url,), daemon=True).start()
        return float(json.loads(process.stdout.readline()))


def follow(url: str) -> None:
    """Read one stream until it ends."""
    try:
        for _ in StreamClient(url).events():
            pass
    except LostError:
        return


def child(how: str) -> None:
    """The run itself: tell where it can be seen, then what it cost."""
    application = APPLICATIONS[APPLICATION]()
    engine = SimulationEngine(
        application.topology,
        TRACES["spiky"](),
        application.behaviour,
        clock=PacedClock(1.0),
    )
    live = Live(application.topology, engine.clock.now, SAMPLE)
    loop = ControlLoop(engine, PaSps(), Lr(), td=TD, record=live.record)
    service, url = nullcontext(), None
    if how == "beside":
        engine.watch(live.watch)
        running = RunningPipeline("simulation", live, loop.steering, 100, loop.health)
        listening = listen("127.0.0.1", 0)
        url = url_of(listening)
        service = serving(create_app({}, running=running), listening, live.feed.close)
    with service:
        print(json.dumps(url), flush=True)
        list(loop.run(until=WARM_UP))
        began, spent = time.perf_counter(), time.process_time()
        list(loop.run(until=WARM_UP + MEASURED))
        used = (time.process_time() - spent) / (time.perf_counter() - began)
    print(json.dumps(used), flush=True)


def large_history() -> tuple[float, int]:
    """Seconds to put an hour of a large pipeline into packed text, and its size in bytes."""
    pipeline = Pipeline("large")
    previous = pipeline.source("in")
    for number in range(OPERATORS):
        pipeline.add(len, name=f"operator-{number}", after=previous, execution_time=0.001)
        previous = f"operator-{number}"
    clock, random = count(1.0, SAMPLE), np.random.default_rng(0)
    live = Live(pipeline.topology(), lambda: next(clock), SAMPLE)
    for _ in range(ROWS):
        live.watch(window(live.topology, random))

    def packed() -> bytes:
        return zlib.compress(live.history(), 1)

    return seconds(packed, repeats=5), len(packed())


def window(topology: Topology, random: np.random.Generator) -> IntervalStats:
    """A second in which everything is a little different from the second before."""
    events = random.integers(500, 5_000, (len(topology.operators), 3)).tolist()
    return IntervalStats(
        interval=0,
        duration=SAMPLE,
        sources={"in": SourceStats(events[0][0], 0.0, (events[0][0],))},
        operators={
            name: OperatorStats(received, processed, processed, queued, processed / 5_000, 3)
            for name, (received, processed, queued) in zip(topology.by_name, events, strict=True)
        },
        edges={(edge.origin, edge.target): 1_000.0 for edge in topology.edges},
        latency=Latency.of(random.exponential(0.2, 20)),
    )


if __name__ == "__main__":
    if sys.argv[1:] in (["without"], ["beside"]):
        child(sys.argv[1])
    else:
        by_hand(main)
