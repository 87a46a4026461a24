"""The backends that contracts are about, and how a test makes one."""

from elastream.engines.spark.backends import open_backend
from elastream.engines.spark.backends.sqlite import SqliteBackend
from support.kafka.broker import shared_cluster
from support.memory_backend import MemoryBackend


def _kafka(folder):
    """One state for every folder, on the broker that all tests share."""
    name = "".join(letter if letter.isalnum() else "-" for letter in str(folder))
    return open_backend(f"kafka:{shared_cluster().address}/{name}", checkpoint=folder)


BACKENDS = {
    "sqlite": lambda folder: SqliteBackend(folder / "state"),
    "memory": lambda folder: MemoryBackend(str(folder / "state")),
    "kafka": _kafka,
}
"""By name: makes a backend for one test, which may use this folder."""
