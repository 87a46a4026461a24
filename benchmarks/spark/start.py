"""How soon 32 replicas are ready."""

from __future__ import annotations

import time

from benchmarks.command import by_hand
from benchmarks.measure import Figure, report
from benchmarks.spark.pipelines import line, pass_on, running
from elastream.engines.spark.driver.session import new_session

OPERATORS, POOL, TARGET_SECONDS = 4, 8, 10.0


def main() -> bool:
    """Print the figures."""
    began = time.monotonic()
    session = new_session(2 * (OPERATORS * POOL + 1) + 2)
    made = time.monotonic()
    with running(line(OPERATORS, POOL, pass_on), 100.0, session):
        ready = time.monotonic() - made
    session.stop()
    return report(
        f"Spark: the start of {OPERATORS * POOL} replicas",
        [
            Figure("the session", f"{made - began:.1f} s"),
            Figure(
                "from there until all are ready",
                f"{ready:.1f} s",
                f"{TARGET_SECONDS:.0f} s",
                ready <= TARGET_SECONDS,
            ),
        ],
    )


if __name__ == "__main__":
    by_hand(main)
