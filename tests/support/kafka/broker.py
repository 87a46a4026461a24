"""One Kafka broker, or several, on loopback: started in seconds, gone with the process.

`make kafka` collects the jars; a broker is one Java process in KRaft mode, with a small heap and a
folder of its own. It keeps its ports and its folder when it is killed and started again.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Self

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

JARS = Path(__file__).parents[3] / ".cache" / "kafka"
SPARK_JARS = JARS.with_name("spark-kafka")
"""Spark's own source and sink."""
PATIENCE = 180.0
"""Seconds that brokers get to start: they take about three on an idle machine."""

# The identity of a cluster: any will do, as long as all of its brokers have the same.
CLUSTER = "elastreamAAAAAAAAAAAAA"


def why_not() -> str | None:
    """Why no broker can be started here, or None."""
    if not list(JARS.glob("kafka_*.jar")):
        return f"there is no Kafka in {JARS}: run 'make kafka'"
    if shutil.which("java") is None:
        return "Kafka needs Java 17 or newer, and there is none"
    return None


@dataclass
class Broker:
    """One process, which is broker and controller."""

    number: int
    folder: Path
    port: int
    controller_port: int
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def log(self) -> Path:
        """What it had to say."""
        return self.folder / "broker.log"

    @property
    def properties(self) -> Path:
        """Its configuration."""
        return self.folder / "server.properties"

    def start(self) -> None:
        """Start it; it answers some seconds later, and ends with the thread that starts it."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                _java("kafka.Kafka", str(self.properties), heap=768),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def kill(self) -> None:
        """At once, as when its machine fails."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Let it hand over what it leads, and end."""
        self._end(signal.SIGTERM)

    def check(self) -> None:
        """An error if it has ended by itself."""
        if self.process is not None and self.process.poll() is not None:
            said = self.log.read_text(errors="replace")[-4_000:]
            raise RuntimeError(f"broker {self.number} ended with {self.process.returncode}: {said}")

    def _end(self, how: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None


class Cluster:
    """Brokers that know one another; a context manager that starts and ends them."""

    def __init__(
        self,
        folder: Path,
        size: int = 1,
        relayed: tuple[int, int] | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        """Where they keep their files, how many, and a second listener of a single one.

        That one listens on the first port, and tells its clients to connect to the second. The host
        is an address of this machine.
        """
        self._relayed = relayed
        self._host = host
        ports = free_ports(2 * size)
        self.brokers = [
            Broker(number, folder / f"broker-{number}", ports.pop(), ports.pop())
            for number in range(1, size + 1)
        ]

    @property
    def address(self) -> str:
        """What clients connect to: HOST:PORT of every broker."""
        return ",".join(f"{self._host}:{broker.port}" for broker in self.brokers)

    def __enter__(self) -> Self:
        for broker in self.brokers:
            broker.folder.mkdir(parents=True)
            broker.properties.write_text(self._configuration(broker))
        _run_all(
            [
                _java(
                    "kafka.tools.StorageTool",
                    *("format", "--cluster-id", CLUSTER, "--config", str(broker.properties)),
                    heap=64,
                )
                for broker in self.brokers
            ]
        )
        try:
            for broker in self.brokers:
                broker.start()
            self.wait()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for broker in self.brokers:
            broker.kill()

    def wait(self) -> None:
        """Until all brokers answer that have been started."""
        started = [broker for broker in self.brokers if broker.process is not None]
        ends = time.monotonic() + PATIENCE
        while not all(_listens(self._host, broker.port) for broker in started):
            _patiently(started, ends)
        admin = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        while not _answers(admin, len(started)):
            _patiently(started, ends)

    def _configuration(self, broker: Broker) -> str:
        settings = self._settings(broker).items()
        return "".join(f"{name}={value}\n" for name, value in settings)

    def _listeners(self, broker: Broker) -> Mapping[str, tuple[str, int]]:
        """By name: how clients have to speak, and the port."""
        listeners = {"PLAINTEXT": ("PLAINTEXT", broker.port)}
        if self._relayed is not None:
            listeners["RELAYED"] = "PLAINTEXT", self._relayed[0]
        return listeners

    def _settings(self, broker: Broker) -> dict[str, object]:
        copies = min(3, len(self.brokers))
        voters = ",".join(f"{b.number}@{self._host}:{b.controller_port}" for b in self.brokers)
        listeners = self._listeners(broker)
        ports = {name: port for name, (_, port) in listeners.items()}
        told = ports if self._relayed is None else {**ports, "RELAYED": self._relayed[1]}
        protocols = [f"{name}:{how}" for name, (how, _) in listeners.items()]
        return {
            "process.roles": "broker,controller",
            "node.id": broker.number,
            "controller.quorum.voters": voters,
            "controller.listener.names": "CONTROLLER",
            "listeners": self._addresses({**ports, "CONTROLLER": broker.controller_port}),
            "advertised.listeners": self._addresses(told),
            "listener.security.protocol.map": ",".join([*protocols, "CONTROLLER:PLAINTEXT"]),
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": broker.folder / "data",
            "auto.create.topics.enable": "false",
            "default.replication.factor": copies,
            "min.insync.replicas": max(1, copies - 1),
            "offsets.topic.replication.factor": copies,
            "offsets.topic.num.partitions": 4,
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": max(1, copies - 1),
            "transaction.state.log.num.partitions": 8,
            "group.initial.rebalance.delay.ms": 0,
            # So that tests of dead brokers and producers take seconds.
            "broker.session.timeout.ms": 3_000,
            "broker.heartbeat.interval.ms": 500,
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1_000,
        }

    def _addresses(self, ports: Mapping[str, int]) -> str:
        return ",".join(f"{name}://{self._host}:{port}" for name, port in ports.items())


def skip_without_kafka() -> None:
    """Skip a test where no broker can be started, but never in CI."""
    if (reason := why_not()) is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)


@cache
def shared_cluster() -> Cluster:
    """One broker for all tests of a process; skipped where there is none, but never in CI."""
    skip_without_kafka()
    folder = tempfile.TemporaryDirectory(prefix="elastream-kafka-")
    cluster = Cluster(Path(folder.name) / "cluster").__enter__()
    atexit.register(folder.cleanup)
    atexit.register(cluster.__exit__)
    return cluster


def _java(name: str, *arguments: str, heap: int) -> list[str]:
    """A Java process that is killed when the one that started it is gone."""
    home = os.environ.get("JAVA_HOME")
    parent = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
    return [
        *parent,
        str(Path(home) / "bin" / "java") if home else "java",
        *(f"-Xmx{heap}m", "-XX:+UseSerialGC", "-Xshare:auto"),
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        "-Dorg.slf4j.simpleLogger.showDateTime=true",
        *("-cp", str(JARS / "*")),
        *(name, *arguments),
    ]


def _run_all(commands: Sequence[Sequence[str]]) -> None:
    """Side by side, and an error with what it had to say if one of them fails."""
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for command in commands
    ]
    for process in running:
        said, _ = process.communicate(timeout=PATIENCE)
        if process.returncode:
            raise RuntimeError(said.decode(errors="replace"))


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on; all of them are held until all are known."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return ports


def _listens(host: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


def _answers(admin: AdminClient, brokers: int) -> bool:
    try:
        return len(admin.list_topics(timeout=2).brokers) >= brokers
    except KafkaException:
        return False


def _patiently(brokers: Sequence[Broker], ends: float) -> None:
    for broker in brokers:
        broker.check()
    if time.monotonic() > ends:
        raise TimeoutError(f"no answer within {PATIENCE:.0f} s; see {brokers[0].log}")
    time.sleep(0.05)
