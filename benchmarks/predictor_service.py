"""What the service bears: 200 `lr` requests per second from 8 clients on loopback, no error.

Run it with `python -m benchmarks.predictor_service`. The service runs in a process of its own; a
second round without a pace shows how much room is left, and `basic` is the baseline: the same way
there and back, with no model at its end.
"""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from statistics import median, quantiles
from threading import Barrier
from time import perf_counter, sleep

from benchmarks.command import by_hand
from benchmarks.measure import Figure, report

CLIENTS, RATE, SECONDS = 8, 200, 5
BODY = json.dumps({"samples": [1_000 + 7 * tick % 90 for tick in range(100)], "horizon": 6})


def main() -> bool:
    """Print the rate, the errors and the latency of each round."""
    each = RATE * SECONDS // CLIENTS
    with running_service() as port:
        figures = [
            round_of("lr", port, each, pause=CLIENTS / RATE),
            round_of("lr", port, each, pause=0),
            round_of("basic", port, each, pause=0),
        ]
    return report(f"Predictor service: {CLIENTS} clients on loopback", figures)


@contextmanager
def running_service() -> Iterator[int]:
    """The service on a free port, until the block ends."""
    command = [sys.executable, "-m", "elastream", "serve", "--port", "0", "--models", "lr,basic"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            found = re.search(r"http://127\.0\.0\.1:(\d+)", process.stderr.readline())
            if found is None:
                sys.exit(f"the service did not start: {process.stderr.read()}")
            yield int(found[1])
        finally:
            process.send_signal(signal.SIGINT)


def round_of(model: str, port: int, each: int, pause: float) -> Figure:
    """One round: every client asks `each` times, `pause` seconds apart."""
    ready = Barrier(CLIENTS)
    started = perf_counter()
    with ThreadPoolExecutor(CLIENTS) as pool:
        rounds = [pool.submit(ask, model, port, each, pause, ready) for _ in range(CLIENTS)]
        answers = [answer for client in rounds for answer in client.result()]
    rate = len(answers) / (perf_counter() - started)
    errors = sum(status != 200 for status, _ in answers)
    took = [milliseconds for _, milliseconds in answers]
    measured = f"{rate:.0f}/s, {errors} errors, p50 {median(took):.1f}, "
    measured += f"p99 {quantiles(took, n=100)[98]:.1f} ms"
    if not pause:
        return Figure(f"{model} as fast as it goes", measured)
    # The last answers are under way when the clock stops, which costs a little of the rate.
    met = not errors and rate >= 0.97 * RATE
    return Figure(f"{model} at {RATE}/s", measured, f"{RATE}/s, 0 errors", met)


def ask(model: str, port: int, each: int, pause: float, ready: Barrier) -> list[tuple[int, float]]:
    """One client on one connection: the status and the milliseconds of every answer."""
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    answers = []
    ready.wait()
    due = perf_counter()
    for _ in range(each):
        started = perf_counter()
        connection.request("POST", f"/predict/{model}", BODY, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        answers.append((answer.status, 1_000 * (perf_counter() - started)))
        due += pause
        sleep(max(0.0, due - perf_counter()))
    connection.close()
    return answers


if __name__ == "__main__":
    by_hand(main)
