"""Workers that can be killed and paused: processes, or threads for a backend in one process."""

import os
import signal
import threading
from contextlib import suppress

from tests.support.local_pool import LocalPool

from elastream.engines.spark.backends.members import SupersededError


class ProcessPool(LocalPool):
    """Processes: they are really killed, and really stopped."""

    def kill(self, worker):
        self._send(worker, signal.SIGKILL)

    def pause(self, worker, seconds):
        self._send(worker, signal.SIGSTOP)
        threading.Timer(seconds, self._send, (worker, signal.SIGCONT)).start()

    def _send(self, worker, what):
        with suppress(ProcessLookupError):
            os.kill(self.processes[worker].pid, what)


class ThreadPool:
    """Threads, which cannot be killed: the next one takes the place of one that is still at work.

    For the backend this is the harder case: the dead do not come back.
    """

    def __init__(self, deployment, generation):
        self._deployment, self._generation = deployment, generation
        self.processes = range(len(deployment.members))
        self._threads = []
        for worker in self.processes:
            self.kill(worker)

    def kill(self, worker):
        name = self._deployment.members[worker]
        thread = threading.Thread(target=self._live, args=(name,), daemon=True)
        self._threads.append(thread)
        thread.start()

    def pause(self, worker, seconds):
        self.kill(worker)

    def close(self):
        for thread in self._threads:
            thread.join(30)
            assert not thread.is_alive()

    def _live(self, name):
        backend = self._deployment.backend
        with backend.connect() as connection, suppress(SupersededError):
            self._deployment.member(name, connection, self._generation).run()


POOLS = {"sqlite": ProcessPool, "kafka": ProcessPool, "memory": ThreadPool}
