"""What the peers share: four functions of 1 ms, notes of latencies, and a feed over a socket.

Only the standard library: it runs in the environments of the peers, too.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from pathlib import Path

SERVICE_SECONDS = 0.001
TICK_SECONDS = 0.005


def step(event: tuple[int, float]) -> tuple[int, float]:
    """Work that takes time and no processor, as in `benchmarks/spark`."""
    time.sleep(SERVICE_SECONDS)
    return event


_NOTES: dict[int, object] = {}


def note(event: tuple[int, float], folder: str) -> tuple[int, float]:
    """Write down when an event was done, and when it had come."""
    file = _NOTES.get(os.getpid())
    if file is None:
        file = _NOTES[os.getpid()] = (Path(folder) / f"{os.getpid()}.notes").open("a", 1)
    file.write(f"{time.time()} {event[1]}\n")  # type: ignore[attr-defined]
    return event


def due(rate: float, started: float, sent: int) -> list[tuple[int, float]]:
    """The events that have come since, each with the time when it did."""
    now = int((time.time() - started) * rate)
    return [(number, started + number / rate) for number in range(sent, now)]


def feed(server: socket.socket, rate: float, seconds: float) -> None:
    """Send events as lines to whoever connects, at a rate; a second connection gets the rest."""
    started, sent = time.time(), 0
    while time.time() - started < seconds:
        connection, _ = server.accept()
        if sent == 0:
            started = time.time()
        try:
            while time.time() - started < seconds:
                events = due(rate, started, sent)
                lines = "".join(f"{number},{born}\n" for number, born in events)
                connection.sendall(lines.encode())
                sent += len(events)
                time.sleep(TICK_SECONDS)
        except OSError:
            continue
        connection.close()


def serve(rate: float, seconds: float) -> int:
    """Feed from a thread; returns the port."""
    server = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=feed, args=(server, rate, seconds), daemon=True).start()
    return int(server.getsockname()[1])


def parsed(line: str) -> tuple[int, float]:
    """An event, from its line."""
    number, _, born = line.partition(",")
    return int(number), float(born)
