"""The backends that contracts are about, and how a test makes one."""

from elastream.engines.spark.backends.sqlite import SqliteBackend
from support.memory_backend import MemoryBackend

BACKENDS = {
    "sqlite": lambda folder: SqliteBackend(folder / "state"),
    "memory": lambda folder: MemoryBackend(str(folder / "state")),
}
"""By name: makes a backend for one test, which may use this folder."""
