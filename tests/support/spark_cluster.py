"""A real standalone cluster of Spark on this machine: a master and workers, each a process."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import pyspark

from .machines import DISK, Machine
from .processes import Process, descendants

SPARK = Path(pyspark.__file__).parent
PATIENCE = 60.0
EXECUTOR = "CoarseGrainedExecutorBackend"


class StandaloneCluster:
    """A context manager that starts and ends the processes.

    Args:
        folder: Where they keep what they have to say; every worker works in a folder of its own.
        workers: How many, or the machine of each.
        cores: Task slots of each.
        host: The address of the master, and of workers without a machine of their own.
    """

    def __init__(
        self,
        folder: Path,
        workers: int | Sequence[Machine] = 2,
        cores: int = 8,
        host: str = "127.0.0.1",
    ) -> None:
        self._folder = folder
        self._cores = cores
        self._machines = [None] * workers if isinstance(workers, int) else workers
        self._host = host
        self._port = _free_port()
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def master(self) -> str:
        """Spark's URL of it."""
        return f"spark://{self._host}:{self._port}"

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True)
        self._start("master", "master.Master", "--port", str(self._port))
        ends = time.monotonic() + PATIENCE
        while not _listens(self._host, self._port):
            assert time.monotonic() < ends, (self._folder / "master.log").read_text()[-3_000:]
            time.sleep(0.1)
        for number, machine in enumerate(self._machines):
            work = self._folder / f"work-{number}" if machine is None else DISK / "work"
            size = ["--cores", str(self._cores), "--memory", "2g", "--work-dir", str(work)]
            self._start(f"worker-{number}", "worker.Worker", *size, self.master, machine=machine)
        return self

    def __exit__(self, *_: object) -> None:
        below = [each for started in self._processes for each in descendants(started.pid)]
        for started in self._processes:
            started.kill()
            started.wait()
        for process in below:
            process.kill()

    def executors(self) -> list[Process]:
        """Those that run now."""
        below = [each for started in self._processes for each in descendants(started.pid)]
        return [
            each for each in below if f"\0org.apache.spark.executor.{EXECUTOR}\0" in each.command
        ]

    def _start(self, name: str, of: str, *arguments: str, machine: Machine | None = None) -> None:
        """A Java process that ends with this one."""
        parent = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        spark = str(SPARK / "bin" / "spark-class")
        host = self._host if machine is None else machine.address
        here = ["--host", host, "--webui-port", "0"]
        command = [*parent, spark, f"org.apache.spark.deploy.{of}", *here, *arguments]
        if machine is not None:
            command = machine.command(command)
        environment = (os.environ if machine is None else machine.environment) | {
            "SPARK_HOME": str(SPARK),
            "SPARK_LOCAL_IP": host,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -Dspark.master.rest.enabled=false",
        }
        with (self._folder / f"{name}.log").open("wb") as log:
            self._processes.append(
                subprocess.Popen(command, stdout=log, stderr=log, env=environment)
            )


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port: int = held.getsockname()[1]
        return port


def _listens(host: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0
