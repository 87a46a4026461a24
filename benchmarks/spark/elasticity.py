"""How soon a plan takes effect, and how long events wait for it and for a new generation."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from pyspark.sql import SparkSession

from benchmarks.command import by_hand
from benchmarks.measure import Figure, report
from benchmarks.spark.pipelines import Running, active, all_active, line, running, wait
from elastream.engines.spark.driver.session import new_session

POOL, RATE, ROUNDS = 8, 600.0, 25
SETTLE_SECONDS, LOOK_SECONDS = 1.0, 0.005
ACTIVATION_MS, STALL_MS, BOUNDARY_MS = 500.0, 250.0, 500.0
GENERATION_SECONDS, GENERATIONS, MEMBERS = 25.0, 3, 16


@dataclass
class Output:
    """Watches how much an operator has processed, and how long it stood still."""

    run: Running
    operator: str
    longest: float = 0.0
    """The longest time without progress, from the first look to the last one that saw some."""
    _done: int = -1
    _since: float = 0.0

    def look(self) -> tuple[float, dict[int, int]]:
        """The time, and what each replica has processed so far."""
        now, replicas = time.monotonic(), self.run.processed(self.operator)
        done = sum(replicas.values())
        if done > self._done:
            if self._done >= 0:
                self.longest = max(self.longest, now - self._since)
            self._done, self._since = done, now
        return now, replicas

    def looks(self, seconds: float) -> Iterator[tuple[float, dict[int, int]]]:
        """For so long, the time and what each replica has processed so far, again and again."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            yield self.look()
            time.sleep(LOOK_SECONDS)

    def longest_stall(self, seconds: float) -> float:
        """Look on for so long; the longest time without progress since the first look."""
        for _ in self.looks(seconds):
            pass
        return max(self.longest, time.monotonic() - self._since)


def activations(session: SparkSession) -> tuple[list[float], float]:
    """From plan to first event, for every replica that was turned on; and the longest stall."""
    topology = line(2, POOL, wait)
    taken: list[float] = []
    stall = 0.0
    with running(topology, RATE, session) as run:
        first = Output(run, "step0")
        for _ in range(ROUNDS):
            run.engine.apply(active(topology, {"step0": 2, "step1": 2}))
            stall = max(stall, Output(run, "step1").longest_stall(SETTLE_SECONDS))
            before = run.processed("step0")
            second = Output(run, "step1")
            started, _ = second.look()
            run.engine.apply(all_active(topology))
            waiting = set(range(2, POOL))
            for now, replicas in first.looks(2.0):
                second.look()
                begun = {n for n in waiting if replicas.get(n, 0) > before.get(n, 0)}
                taken += [now - started] * len(begun)
                waiting -= begun
                if not waiting:
                    break
            taken += [2.0] * len(waiting)
            stall = max(stall, second.longest_stall(SETTLE_SECONDS))
    return taken, stall


def boundary(session: SparkSession) -> float:
    """The longest time without output while generations change, with 16 replicas."""
    topology = line(4, MEMBERS // 4, wait)
    with running(topology, RATE, session, generation=GENERATION_SECONDS) as run:
        run.engine.apply(all_active(topology))
        time.sleep(3.0)
        return Output(run, "step3").longest_stall(GENERATION_SECONDS * GENERATIONS)


def main() -> bool:
    """Print the figures."""
    session = new_session(2 * (2 * POOL + 2) + 2)
    taken, stall = activations(session)
    pause = boundary(session)
    session.stop()
    p99 = 1e3 * float(np.quantile(taken, 0.99))
    middle = 1e3 * float(np.median(taken))
    return report(
        "Spark: changes while events flow",
        [
            Figure(
                f"from plan to the first event of a new replica, p99 of {len(taken)}",
                f"{p99:.0f} ms",
                f"{ACTIVATION_MS:.0f} ms",
                p99 <= ACTIVATION_MS,
            ),
            Figure("median", f"{middle:.0f} ms"),
            Figure(
                f"longest stall of the output in {2 * ROUNDS} plans",
                f"{1e3 * stall:.0f} ms",
                f"{STALL_MS:.0f} ms",
                1e3 * stall <= STALL_MS,
            ),
            Figure(
                f"longest pause at a generation's end, {MEMBERS} replicas",
                f"{1e3 * pause:.0f} ms",
                f"{BOUNDARY_MS:.0f} ms",
                1e3 * pause <= BOUNDARY_MS,
            ),
        ],
    )


if __name__ == "__main__":
    by_hand(main)
