"""Workers as plain processes: what Spark's tasks run, without Spark.

A supervisor starts a process again that has died, as Spark does with a task.
"""

import multiprocessing
import os
import signal
import threading
import time
from contextlib import suppress

from pyspark.sql.datasource import InputPartition

from elastream.engines.spark.worker.pool import PoolReader

LOOK_SECONDS = 0.02
SPAWN = multiprocessing.get_context("forkserver")


def live(deployment, generation, workers, worker):
    """The life of one worker, as a Spark task lives it."""
    for _ in PoolReader(deployment, generation, workers).read(InputPartition(worker)):
        pass


class LocalPool:
    """One generation of workers."""

    def __init__(self, deployment, generation):
        self._text = deployment.to_text()
        self._generation = generation
        self._count = len(deployment.members)
        self._closed = threading.Event()
        self.processes = [self._started(worker) for worker in range(self._count)]
        self._thread = threading.Thread(target=self._supervise, daemon=True)
        self._thread.start()

    def close(self):
        """Wait for all workers to end by themselves; those that do not are killed."""
        self._closed.set()
        self._thread.join()
        deadline = time.monotonic() + 10
        for process in self.processes:
            process.join(max(deadline - time.monotonic(), 0.1))
            if process.is_alive():
                with suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
                process.join()

    def _started(self, worker):
        arguments = (self._text, self._generation, self._count, worker)
        process = SPAWN.Process(target=live, args=arguments)  # Not a daemon: it may fork.
        process.start()
        return process

    def _supervise(self):
        while not self._closed.wait(LOOK_SECONDS):
            for worker, process in enumerate(self.processes):
                if process.exitcode not in (None, 0) and not self._closed.is_set():
                    self.processes[worker] = self._started(worker)
